/**
 * Two real clusters' objects: every Service, endpoint and port answers as its objects say, and nothing else is there.
 *
 * What to expect is read from the raw YAML by the plain code below, which shares nothing with the code under test.
 */
import { test } from 'tap'
import { nameToText } from '../../src/wire/name.ts'
import { ask, readYamlFile, recordLines, reverseNameOf, stateOf, zonesFor } from './fixture.ts'

type Item = {
  kind: string
  metadata: { name: string; namespace: string; labels?: Record<string, string> }
  spec: {
    type?: string
    clusterIP?: string
    externalName?: string
    ips?: string[]
    ports?: Port[]
  }
  endpoints: { addresses: string[]; hostname?: string; conditions: { ready: boolean } }[] | null
  ports: Port[] | null
}
type Port = { name: string; port: number; protocol: string }
type Expected = { name: string; type: string; data: string[] }

const host = (endpoint: { addresses: string[]; hostname?: string }): string =>
  endpoint.hostname ?? endpoint.addresses[0]!.replaceAll('.', '-')

/** Records of a name with a virtual address, and of the endpoints behind it. */
function expectVirtual(owner: string, address: string, ports: Port[], slices: Item[]): Expected[] {
  const srv = ports.map((port) => ({ ...port, data: `${port.port} ${owner}` }))
  const distinct = [...new Set(srv.map(({ data }) => data))]
  return [
    { name: owner, type: 'A', data: [address] },
    { name: reverseNameOf(address), type: 'PTR', data: [owner] },
    ...srv.map(({ name, protocol, data }) => ({
      name: `_${name}._${protocol.toLowerCase()}.${owner}`,
      type: 'SRV',
      data: [`0 100 ${data}`]
    })),
    { name: owner, type: 'SRV', data: distinct.map((data) => `0 ${Math.floor(100 / distinct.length)} ${data}`) },
    ...expectEndpoints(owner, slices)
  ]
}

function expectEndpoints(owner: string, slices: Item[]): Expected[] {
  return slices
    .flatMap((slice) => slice.endpoints ?? [])
    .flatMap((endpoint) => [
      { name: `${host(endpoint)}.${owner}`, type: 'A', data: [endpoint.addresses[0]!] },
      { name: reverseNameOf(endpoint.addresses[0]!), type: 'PTR', data: [`${host(endpoint)}.${owner}`] }
    ])
}

function expectHeadless(owner: string, slices: Item[]): Expected[] {
  const endpoints = slices.flatMap((slice) => slice.endpoints ?? [])
  const [port] = slices[0]!.ports!
  const weight = Math.floor(100 / endpoints.length)
  const srv = endpoints.map((endpoint) => `0 ${weight} ${port!.port} ${host(endpoint)}.${owner}`)
  return [
    { name: owner, type: 'A', data: endpoints.map((endpoint) => endpoint.addresses[0]!) },
    { name: owner, type: 'SRV', data: srv },
    { name: `_${port!.name}._tcp.${owner}`, type: 'SRV', data: srv },
    ...expectEndpoints(owner, slices)
  ]
}

function expectAll(items: Item[]): Expected[] {
  const of = (kind: string): Item[] => items.filter((item) => item.kind === kind)
  const nameOf = ({ metadata }: Item, zone: string): string => `${metadata.name}.${metadata.namespace}.svc.${zone}.`
  const services = of('Service').flatMap((service): Expected[] => {
    const owner = nameOf(service, 'cluster.local')
    const slices = of('EndpointSlice').filter(
      (slice) =>
        slice.metadata.namespace === service.metadata.namespace &&
        slice.metadata.labels?.['kubernetes.io/service-name'] === service.metadata.name
    )
    const { type, clusterIP, externalName, ports } = service.spec
    if (type === 'ExternalName') return [{ name: owner, type: 'CNAME', data: [`${externalName}.`] }]
    if (clusterIP === 'None') return expectHeadless(owner, slices)
    return expectVirtual(owner, clusterIP!, ports!, slices)
  })
  const imports = of('ServiceImport').flatMap((serviceImport) => {
    const { ips, ports } = serviceImport.spec
    const inZone = expectVirtual(nameOf(serviceImport, 'cluster.local'), ips![0]!, ports!, [])
    const inClusterset = expectVirtual(nameOf(serviceImport, 'clusterset.local'), ips![0]!, ports!, [])
    return inZone.concat(inClusterset.filter(({ type }) => type !== 'PTR'))
  })
  // Two Services with the same endpoints share their PTR records.
  const merged = new Map<string, Expected>()
  for (const { name, type, data } of services.concat(imports)) {
    const known = merged.get(`${name} ${type}`)?.data ?? []
    merged.set(`${name} ${type}`, { name, type, data: [...new Set(known.concat(data))].sort() })
  }
  return [...merged.values()]
}

for (const file of ['cluster-a', 'cluster-b'] as const) {
  test(`every Service, endpoint and port of ${file}.yaml answers as its objects say`, async (t) => {
    const raw = readYamlFile(new URL(`../data/${file}.yaml`, import.meta.url).pathname)
    const items = raw as unknown as Item[]
    const zones = zonesFor(raw, { importsInZone: true })
    t.same(zones.leftOut(), [])
    t.equal(
      items
        .filter(({ kind }) => kind === 'EndpointSlice')
        .every(({ endpoints }) =>
          (endpoints ?? []).every((endpoint) => endpoint.conditions.ready && endpoint.addresses.length === 1)
        ),
      true,
      'what the plain code below takes for granted'
    )

    const expected = expectAll(items)
    t.ok(expected.length > 100, `${expected.length} answers`)
    for (const { name, type, data } of expected) t.same(ask(zones, name, type), data, `${name} ${type}`)

    // And nothing else but what any cluster has.
    const dnsAddress = items.find(({ metadata }) => metadata.name === 'kube-dns')!.spec.clusterIP!
    const wanted = new Set(expected.flatMap(({ name, type, data }) => data.map((text) => `${name} 5 ${type} ${text}`)))
    for (const zone of zones.zones.all())
      wanted.add(
        `${nameToText(zone.apex)} 5 NS ns.dns.${zone.apex === zones.clustersetZone.apex ? 'clusterset' : 'cluster'}.local.`
      )
    for (const zone of ['cluster.local.', 'clusterset.local.']) {
      wanted.add(`ns.dns.${zone} 5 A ${dnsAddress}`)
      wanted.add(`dns-version.${zone} 28800 TXT "${zone === 'cluster.local.' ? '1.1.0' : '1.0.0'}"`)
    }
    t.same(zones.zones.all().flatMap(recordLines).sort(), [...wanted].sort())

    for (const { metadata } of items.filter(({ kind }) => kind === 'Namespace')) {
      t.same(ask(zones, `${metadata.name}.svc.cluster.local`, 'A'), ['NODATA'], metadata.name)
    }
    t.equal(stateOf(zones, 'kube-dns.kube-system.svc.cluster.local'), 'empty', 'endpoints: null')
    t.equal(stateOf(zones, 'postgres.data.svc.cluster.local'), 'present')
    t.equal(stateOf(zones, 'billing.data.svc.cluster.local'), 'unknown')
  })
}

test('cluster A answers its imports in its own zone', async (t) => {
  const zones = zonesFor(readYamlFile(new URL('../data/cluster-a.yaml', import.meta.url).pathname), {
    importsInZone: true
  })
  const api = 'api.backend.svc.cluster.local.'
  t.same(ask(zones, api, 'A'), ['172.30.1.0'])
  t.same(ask(zones, `_http._tcp.${api}`, 'SRV'), [`0 100 8080 ${api}`])
  t.same(ask(zones, 'web.backend.svc.cluster.local', 'A'), ['172.30.2.0'])
  t.equal(stateOf(zones, api), 'unknown', 'an import has no slice object')
  t.same(ask(zones, 'api.backend.svc.clusterset.local', 'A'), ['172.30.1.0'])
})
