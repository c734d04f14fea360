/**
 * Two real clusters, each behind a server of its own: everything answers over the wire as its objects say, asked with
 * dns2. Then one of them peers two namespaces to the other.
 *
 * What to expect is read from the raw YAML by the plain code below, which shares nothing with the code under test.
 */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { parse } from 'yaml'
import { ask, askPlain, startInProcess, type InProcessServer, type Where } from './support/in-process.ts'

const data = join(dirname(fileURLToPath(import.meta.url)), 'data')

type Port = { name?: string; port: number; protocol?: string }
type Item = {
  kind: string
  metadata: { name: string; namespace: string; labels?: Record<string, string> }
  spec: { type?: string; clusterIP?: string; externalName?: string; ips?: string[]; ports?: Port[] }
  endpoints: { addresses: string[]; hostname?: string }[] | null
  ports: Port[] | null
}
type Expected = { name: string; type: string; data: string[] }

const itemsOf = (letter: string): Item[] =>
  (parse(readFileSync(join(data, `cluster-${letter}.yaml`), 'utf8')) as { items: Item[] }).items

const fullName = ({ metadata }: Item, zone = 'cluster.local'): string =>
  `${metadata.name}.${metadata.namespace}.svc.${zone}`
const reverseName = (address: string): string => `${address.split('.').reverse().join('.')}.in-addr.arpa`
const srvName = ({ name, protocol }: Port, owner: string): string =>
  `_${name}._${(protocol ?? 'TCP').toLowerCase()}.${owner}`

/** Every Service and import with its address and ports, every endpoint with its name, forwards and backwards. */
function expectedOf(items: Item[]): Expected[] {
  const expected: Expected[] = []
  const pointers = new Map<string, Set<string>>()
  const point = (address: string, name: string): void => {
    pointers.set(address, (pointers.get(address) ?? new Set()).add(name))
  }
  for (const item of items) {
    const owner = fullName(item)
    const address = item.kind === 'Service' ? item.spec.clusterIP : item.spec?.ips?.[0]
    if (item.kind === 'Service' && item.spec.type === 'ExternalName') {
      expected.push({ name: owner, type: 'CNAME', data: [item.spec.externalName!] })
    }
    if ((item.kind !== 'Service' && item.kind !== 'ServiceImport') || address === undefined) continue
    if (address !== 'None') {
      const names = item.kind === 'Service' ? [owner] : [owner, fullName(item, 'clusterset.local')]
      for (const name of names) {
        expected.push({ name, type: 'A', data: [address] }, { name, type: 'AAAA', data: [] })
        for (const port of item.spec.ports!) {
          expected.push({ name: srvName(port, name), type: 'SRV', data: [`0 100 ${port.port} ${name}`] })
        }
      }
      point(address, owner)
    }
    const slices = items.filter(
      ({ kind, metadata }) =>
        kind === 'EndpointSlice' &&
        metadata.namespace === item.metadata.namespace &&
        metadata.labels?.['kubernetes.io/service-name'] === item.metadata.name
    )
    const endpoints = slices.flatMap((slice) => slice.endpoints ?? [])
    const hosts = endpoints.map(({ addresses, hostname }) => ({
      name: `${hostname ?? addresses[0]!.replaceAll('.', '-')}.${owner}`,
      address: addresses[0]!
    }))
    for (const host of hosts) {
      expected.push({ name: host.name, type: 'A', data: [host.address] })
      point(host.address, host.name)
    }
    if (address !== 'None' || hosts.length === 0) continue
    expected.push({ name: owner, type: 'A', data: hosts.map((host) => host.address) })
    const weight = Math.floor(100 / hosts.length)
    for (const port of slices[0]!.ports!) {
      const data = hosts.map(({ name }) => `0 ${weight} ${port.port} ${name}`)
      expected.push({ name: srvName(port, owner), type: 'SRV', data })
    }
  }
  for (const [address, names] of pointers) expected.push({ name: reverseName(address), type: 'PTR', data: [...names] })
  return expected
}

const config = (letter: string, importsInZone: boolean, rest: string): string => `
cluster:
  name: cluster-${letter}
  importsInZone: ${importsInZone}
  reverse: [10.0.0.0/8, 172.16.0.0/12]
  source: {manifests: ["${join(data, `cluster-${letter}.yaml`)}"]}
forward: []
${rest}`

async function checkAll(t: Test, where: Where, expected: readonly Expected[], what: string): Promise<void> {
  for (const { name, type, data } of expected) {
    const reply = await askPlain(where, name, type)
    t.same({ rcode: reply.rcode, data: reply.data, aa: reply.aa }, { rcode: 0, data: data.toSorted(), aa: true }, `${what}: ${name} ${type}`) // prettier-ignore
  }
}

const startA = (t: Test): Promise<InProcessServer> => startInProcess(t, config('a', true, ''))

test('each cluster alone answers as its objects say', async (t) => {
  for (const letter of ['a', 'b']) {
    const server = letter === 'a' ? await startA(t) : await startInProcess(t, config('b', true, ''))
    const expected = expectedOf(itemsOf(letter))
    t.ok(expected.length > 80, `${letter}: ${expected.length} answers`)
    t.ok(['A', 'AAAA', 'SRV', 'PTR', 'CNAME'].every((type) => expected.some((one) => one.type === type)))
    await checkAll(t, server, expected, letter)
    t.same(server.server.inspect.source().problems, [])
    await server.stop()
  }
})

test('b peers backend to a, and shop to itself first', async (t) => {
  const a = await startA(t)
  const b = await startInProcess(
    t,
    config(
      'b',
      false,
      `peers: {cluster-a: {servers: ["${a.text}"]}}
policies:
  - {name: backend-from-a, dnsName: backend.svc.cluster.local, targets: [cluster-a]}
  - {name: shop, dnsName: shop.svc.cluster.local, targets: [local, cluster-a]}
`
    )
  )
  const api = 'api.backend.svc.cluster.local'
  const payment = 'paymentservice.shop.svc.cluster.local'
  const paymentOfA = itemsOf('a').find((item) => item.kind === 'Service' && fullName(item) === payment)!
  t.notOk(itemsOf('b').some((item) => item.kind === 'Service' && fullName(item) === payment), 'b has no such Service') // prettier-ignore
  for (const again of ['', ' (from memory)']) {
    t.same((await askPlain(a, api)).data, ['172.30.1.0'], `a: api${again}`)
    t.same((await askPlain(b, api)).data, ['172.30.1.0'], `b: api${again}`)
    t.same((await askPlain(b, `_http._tcp.${api}`, 'SRV')).data, [`0 100 8080 ${api}`], `b: its port${again}`)
    t.same((await askPlain(b, payment)).data, [paymentOfA.spec.clusterIP], `b: payment of a${again}`)
    t.same((await askPlain(b, payment, 'AAAA')).rcode, 0, `b: NODATA of a${again}`)
  }
  t.equal((await ask(b, payment)).flags.aa, false)

  const all = expectedOf(itemsOf('b'))
  const below = (suffix: string) => (one: Expected) => one.name.endsWith(suffix)
  const own = all.filter((one) => below('.shop.svc.cluster.local')(one))
  t.ok(own.length > 20, `${own.length} answers in b's shop`)
  await checkAll(t, b, own, "what b has itself in shop stays b's")
  await checkAll(t, b, all.filter(below('.data.svc.cluster.local')), 'what no policy is for')

  const ofA = expectedOf(itemsOf('a')).filter(below('.backend.svc.cluster.local'))
  t.ok(ofA.length > 10, `${ofA.length} answers in a's backend`)
  for (const { name, type, data } of ofA) {
    t.same((await askPlain(b, name, type)).data, data.toSorted(), `b gives a's backend: ${name} ${type}`)
  }
})
