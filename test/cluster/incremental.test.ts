/** Whatever happened on the way, the zones are what the objects make them. */
import * as fc from 'fast-check'
import { test } from 'tap'
import { parseNetwork } from '../../src/base/network.ts'
import type { ClusterOptions, ClusterZones } from '../../src/cluster/cluster-zones.ts'
import type { ObjectEvent } from '../../src/cluster/object-event.ts'
import type { ObjectKind } from '../../src/cluster/objects.ts'
import { nameToText, parseName } from '../../src/wire/name.ts'
import { rrset } from '../support/records.ts'
import { eventsFor, recordLines, zonesFor } from './fixture.ts'
import type { Raw } from './fixture.ts'

const namespaces = ['shop', 'kube-system'] as const
const serviceNames = ['web', 'kube-dns', 'svc'] as const
const addresses = ['10.0.0.1', '10.0.0.2', 'fd00::1', '192.0.2.1'] as const

/** Few names and addresses, so that objects meet, replace and contradict one another. */
const anyName = fc.constantFrom(...serviceNames)
const anyNamespace = fc.constantFrom(...namespaces)
const anyAddress = fc.constantFrom(...addresses)
const anyPorts = fc.subarray([{ name: 'http', port: 80 }, { name: 'dns', port: 53, protocol: 'UDP' }, { port: 9 }])
const anyAnnotations = fc.constantFrom({}, { 'peerdns.io/ttl': '9s' }, { 'peerdns.io/ttl': 'x' })
const anyMetadata = fc.record({ name: anyName, namespace: anyNamespace, annotations: anyAnnotations })

const anyService = fc
  .tuple(
    anyMetadata,
    fc.oneof(
      fc.record({
        clusterIP: fc.constantFrom('None', '', ...addresses),
        ports: anyPorts,
        publishNotReadyAddresses: fc.boolean()
      }),
      fc.constant({ type: 'ExternalName', externalName: 'db.example.org' }),
      fc.constant({ clusterIP: 'malformed' })
    )
  )
  .map(([metadata, spec]): Raw => ({ apiVersion: 'v1', kind: 'Service', metadata, spec }))

const anyEndpoint = fc.record(
  {
    addresses: fc.array(anyAddress, { maxLength: 2 }),
    hostname: fc.constantFrom('cat', 'dog', '10-0-0-2'),
    conditions: fc.record({ ready: fc.boolean(), serving: fc.boolean() })
  },
  { requiredKeys: ['addresses'] }
)
const anySlice = fc
  .tuple(
    fc.constantFrom('s1', 's2', 's3'),
    anyNamespace,
    fc.constantFrom('kubernetes.io/service-name', 'multicluster.kubernetes.io/service-name'),
    anyName,
    fc.constantFrom({}, { 'multicluster.kubernetes.io/source-cluster': 'east' }),
    anyPorts,
    fc.option(fc.array(anyEndpoint, { maxLength: 3 }))
  )
  .map(([name, namespace, label, serviceName, cluster, ports, endpoints]): Raw => {
    const metadata = { name, namespace, labels: { [label]: serviceName, ...cluster } }
    return { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata, ports, endpoints }
  })

const anyEndpoints = fc
  .tuple(anyMetadata, fc.array(anyAddress, { maxLength: 2 }), fc.array(anyAddress, { maxLength: 1 }), anyPorts)
  .map(([metadata, ready, notReady, ports]): Raw => {
    const listOf = (ips: string[]): Raw[] => ips.map((ip) => ({ ip }))
    const subsets = [{ addresses: listOf(ready), notReadyAddresses: listOf(notReady), ports }]
    return { apiVersion: 'v1', kind: 'Endpoints', metadata, subsets }
  })

const anyImport = fc
  .tuple(anyMetadata, fc.constantFrom('Headless', 'ClusterSetIP'), fc.array(anyAddress, { maxLength: 2 }), anyPorts)
  .map(([metadata, type, ips, ports]): Raw => {
    return { apiVersion: 'multicluster.x-k8s.io/v1alpha1', kind: 'ServiceImport', metadata, spec: { type, ips, ports } }
  })

const anyPod = fc
  .tuple(anyMetadata, fc.constantFrom('Running', 'Succeeded'), fc.array(anyAddress, { maxLength: 2 }))
  .map(([metadata, phase, ips]): Raw => {
    return { apiVersion: 'v1', kind: 'Pod', metadata, status: { phase, podIPs: ips.map((ip) => ({ ip })) } }
  })

const anyNamespaceObject = anyNamespace.map((name): Raw => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name }
}))

const anyPut = fc
  .oneof(
    { weight: 3, arbitrary: anyService },
    { weight: 4, arbitrary: anySlice },
    anyEndpoints,
    anyImport,
    anyPod,
    anyNamespaceObject
  )
  .map((raw): ObjectEvent => eventsFor([raw])[0]!)

const deletionOf = (event: ObjectEvent): ObjectEvent & { type: 'delete' } => {
  if (event.type === 'delete') return event
  const { kind, namespace, name } = event.type === 'put' ? event.object : event.identity
  return { type: 'delete', kind: kind as ObjectKind, namespace, name }
}
const anyEvent = fc.oneof({ weight: 3, arbitrary: anyPut }, anyPut.map(deletionOf))
const anyHistory = fc.array(fc.array(anyEvent, { maxLength: 6 }), { maxLength: 12 })

const variants: Partial<ClusterOptions>[] = [
  {},
  { pods: 'verified', importsInZone: true },
  {
    pods: 'verified',
    records: [
      rrset('web.shop.svc.cluster.local', 'CNAME', 9, 'x.example.org'),
      rrset('cat.web.kube-system.svc.cluster.local', 'A', 9, '192.0.2.77'),
      rrset('ns.dns.cluster.local', 'A', 9, '192.0.2.78'),
      rrset('10-0-0-1.shop.pod.cluster.local', 'A', 9, '192.0.2.79'),
      rrset('1.0.0.10.in-addr.arpa', 'PTR', 9, 'x.example.org')
    ]
  },
  {
    reverse: ['10.0.0.1/32', '10.0.0.0/24', 'fd00::/8'].map(parseNetwork),
    records: [
      rrset('10-0-0-1.web.shop.svc.cluster.local', 'A', 9, '192.0.2.77'),
      rrset('10-0-0-2.web.shop.svc.cluster.local', 'CNAME', 9, 'x.example.org'),
      rrset('10-0-0-1.svc.shop.svc.cluster.local', 'TXT', 9, 'by hand')
    ]
  },
  { reverse: ['10.0.0.1/32', '192.0.2.0/24'].map(parseNetwork) }
]

/** All that a zone says: records, how many names exist, Service states. */
function picture(zones: ClusterZones): unknown {
  return zones.zones.all().map((zone) => ({
    apex: nameToText(zone.apex),
    records: recordLines(zone),
    names: zone.sizes.names,
    states: namespaces.flatMap((namespace) =>
      serviceNames.map((name) => zone.serviceState(parseName(`${name}.${namespace}.svc.${nameToText(zone.apex)}`)))
    ),
    namespaces: namespaces.map((namespace) => zone.exists(parseName(`${namespace}.svc.${nameToText(zone.apex)}`)))
  }))
}

test('ClusterZones equal those made from the last objects alone, and deletions leave nothing behind', async (t) => {
  for (const [at, options] of variants.entries()) {
    const empty = picture(zonesFor([], options))
    fc.assert(
      fc.property(anyHistory, fc.nat({ max: 12 }), (history, loadedBatches) => {
        const zones = zonesFor([], options)
        if (loadedBatches > 0) zones.deferServices()
        const last = new Map<string, ObjectEvent>()
        const readWhole = (): void => {
          while (zones.writeDeferred(1, 0));
          zones.markSynced()
        }
        for (const [number, batch] of history.entries()) {
          if (number === loadedBatches) readWhole()
          zones.apply(batch, 0)
          for (const event of batch) {
            const { kind, namespace, name } = deletionOf(event)
            const key = [kind, namespace, name].join('/')
            if (event.type === 'put') last.set(key, event)
            else last.delete(key)
          }
        }
        if (loadedBatches >= history.length) readWhole()
        const fresh = zonesFor([], options)
        fresh.apply([...last.values()].reverse(), 0)
        t.strictSame(picture(zones), picture(fresh))
        t.same(zones.counts(), fresh.counts())

        zones.apply([...last.values()].map(deletionOf), 0)
        t.strictSame(picture(zones), empty)
        t.ok(Object.values(zones.counts()).every((count) => count === 0))
        return t.passing()
      }),
      { numRuns: 150, seed: 5 + at }
    )
  }
})
