/**
 * A server as one writes it with dns2 in an hour: its UDP server, records in a Map, NXDOMAIN with SOA for the rest.
 *
 *     node bench/rivals/dns2-server.ts PORT RECORDS.json
 */
import { readFileSync } from 'node:fs'
import { createServer, Packet } from 'dns2'
import { zone, type BenchRecord } from '../dataset.ts'

const [port, file] = process.argv.slice(2)
const { ttlSeconds, records } = JSON.parse(readFileSync(file!, 'utf8')) as {
  ttlSeconds: number
  records: BenchRecord[]
}

/** dns2 takes plain objects, as its manual shows them; its types ask for a class. */
type Answer = InstanceType<typeof Packet>['answers'][number]
type PlainAnswer = Omit<Answer, 'toBuffer'>

const answers = new Map<string, PlainAnswer[]>()
for (const { owner, type, data } of records) {
  const common = { name: owner, type: Packet.TYPE[type], class: Packet.CLASS.IN, ttl: ttlSeconds }
  const key = `${owner} ${Packet.TYPE[type]}`
  answers.set(key, [...(answers.get(key) ?? []), { ...common, ...rdataOf(type, data) }])
}
const owners = new Set(records.map(({ owner }) => owner))

const soa: PlainAnswer = {
  name: zone,
  type: Packet.TYPE.SOA,
  class: Packet.CLASS.IN,
  ttl: ttlSeconds,
  primary: `ns.dns.${zone}`,
  admin: `hostmaster.${zone}`,
  serial: 1,
  refresh: 7200,
  retry: 1800,
  expiration: 86400,
  minimum: ttlSeconds
}

function rdataOf(type: BenchRecord['type'], data: string): object {
  if (type === 'A') return { address: data }
  const [priority, weight, port, target] = data.split(' ')
  return { priority: Number(priority), weight: Number(weight), port: Number(port), target: target!.slice(0, -1) }
}

const server = createServer({
  udp: true,
  handle: (request, send) => {
    const response = Packet.createResponseFromRequest(request)
    const question = request.questions[0]
    if (question === undefined || request.errors.length > 0) {
      response.header.rcode = Packet.RCODE.FORMERR
      void send(response)
      return
    }
    const name = question.name.toLowerCase()
    const found = answers.get(`${name} ${question.type}`)
    response.header.aa = 1
    if (found === undefined) {
      response.authorities.push(soa as Answer)
      if (!owners.has(name)) response.header.rcode = Packet.RCODE.NXDOMAIN
    } else {
      for (const answer of found) response.answers.push(answer as Answer)
    }
    void send(response)
  }
})
await server.listen({ udp: { port: Number(port), address: '127.0.0.1' } })
