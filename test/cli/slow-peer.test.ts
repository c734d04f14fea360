/**
 * The real command, with the heap flags of the image, beside a peer that answers after seconds: what waits is bounded
 * by the limits, and memory by what waits. Users met a memory that grows with each name (coredns#2593).
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { heapFlagsOfImage, startServerProcess, type ServerProcess } from '../support/server-process.ts'
import { queryOctets, until } from '../support/in-process.ts'
import { sleep } from '../support/loop-clock.ts'
import { startStubPeer } from '../support/stub-peer.ts'

/**
 * `peers.X.maxInFlight` here: so few that they are reached while the first of them still waits, also on a machine that
 * has hardly any time for us. What one question in flight may take, with its sockets, timers, and names.
 */
const maxInFlight = 100
const octetsOfOne = 16 * 1024
/** What the collector may leave lying about, the young generation and the answers of the cache among it. */
const slackOctets = 30 * 1024 * 1024
const rounds = 10
const namesOfRound = 1_500
const roundMs = 600

const config = (
  peer: string
): string => `cluster: {name: b, source: {manifests: ["${import.meta.dirname}/../../config/cluster-b"]}}
listen: ["{listen}"]
admin: "{admin}"
forward: []
cache: {maxBytes: 4MiB}
peers: {a: {servers: ["${peer}"], maxInFlight: ${maxInFlight}, probe: {every: 1h, timeout: 10s, fall: 100, rise: 1}}}
policies: [{name: p, dnsName: south.example, targets: [a]}]
`

const rssOctets = ({ process: { pid } }: ServerProcess): number =>
  Number(/VmRSS:\s*(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024

async function metric({ adminUrl }: ServerProcess, name: string, label = ''): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  return text
    .split('\n')
    .filter((line) => (line.startsWith(`${name} `) || line.startsWith(`${name}{`)) && line.includes(label))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

test(
  'a peer that answers after seconds: what waits is bounded, and memory with it',
  { timeout: 120_000 },
  async (t) => {
    const south = await startStubPeer({ zone: 'south.example', records: [] })
    t.teardown(async () => south.stop())
    // Later than anybody waits for it.
    south.fault = 'slow'
    south.delayMs = 3_000
    const server = await startServerProcess(config(south.text), heapFlagsOfImage())
    t.teardown(async () => server.stop())
    const client = createSocket('udp4')
    t.teardown(() => void client.close())
    let answers = 0
    let ownAnswers = 0
    client.on('message', (octets) => {
      // The local name alone has an answer.
      if (octets.readUInt16BE(6) > 0) ownAnswers++
      else answers++
    })
    client.bind(0, '127.0.0.1')
    await once(client, 'listening')
    const send = (name: string): void => client.send(queryOctets(name), server.port, '127.0.0.1')
    const ownName = 'web.backend.svc.cluster.local'
    const rss: number[] = []
    let mostWaiting = 0
    for (let round = 0; round < rounds; round++) {
      for (let at = 0; at < namesOfRound; at += 50) {
        for (let name = at; name < at + 50; name++) send(`n${round}-${name}.south.example`)
        await sleep((roundMs * 50) / namesOfRound)
      }
      const before = ownAnswers
      // Datagrams may be lost where the machine is busy.
      const isAnswered = async (): Promise<boolean> => {
        send(ownName)
        await sleep(20)
        return ownAnswers > before
      }
      t.ok(await until(isAnswered, 10_000), 'names of our own are answered as ever')
      mostWaiting = Math.max(mostWaiting, await metric(server, 'peerdns_queries_in_flight'))
      rss.push(rssOctets(server))
    }
    t.ok(
      mostWaiting > 0 && mostWaiting <= maxInFlight,
      `${mostWaiting} questions waited at the most; the limit is ${maxInFlight}`
    )
    t.ok(
      await until(async () => (await metric(server, 'peerdns_queries_in_flight')) === 0, 30_000),
      'none waits for ever'
    )
    // How many there are is a matter of how fast the machine is.
    t.ok(answers > 0, `${answers} of ${rounds * namesOfRound} were told, most of them at once`)
    t.ok(
      (await metric(server, 'peerdns_peer_questions_total', 'result="overloaded"')) > 0,
      'what was not asked is counted'
    )
    // Once code is compiled, and the limit was reached.
    const warm = rss.slice(3)
    const allowed = maxInFlight * octetsOfOne + slackOctets
    const grown = Math.max(...warm) - warm[0]!
    const inMiB = rss.map((octets) => Math.round(octets / 2 ** 20)).join(' ')
    t.comment(`RSS after each round, in MiB: ${inMiB}; ${mostWaiting} waited at the most`)
    t.ok(grown <= allowed, `RSS after each round, in MiB: ${inMiB}; ${Math.round(allowed / 2 ** 20)} more are allowed`)
  }
)
