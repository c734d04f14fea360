/** BIND, Knot and NSD as secondaries of ours: equal, record by record, after 1,000 random changes of objects. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { eventForReduced, type ObjectEvent } from '../../src/cluster/object-event.ts'
import { reduceObject } from '../../src/cluster/objects.ts'
import { freePort } from '../support/free-port.ts'
import { clusterB, delay, startInProcess, until } from '../support/in-process.ts'
import { externalName, namespace, service, slice } from '../support/objects.ts'
import {
  axfr,
  startSecondary,
  whyNoSecondary,
  type SecondaryKey,
  type SecondaryKind
} from '../support/foreign-secondary.ts'

const allZones = ['cluster.local', 'backend.svc.cluster.local', '10.in-addr.arpa', 'clusterset.local']
const changes = 1_000
const longestMs = 30_000
const secret = 'c2VjcmV0IG9mIHRyYW5zZmVycyBvbmx5Lg=='

function put(object: object): ObjectEvent {
  const event = eventForReduced(reduceObject(object))
  if (event === null) throw new Error('no such object')
  return event
}

function imported(name: string, ip: string): object {
  const [label, space] = name.split('.') as [string, string]
  return {
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceImport',
    metadata: { name: label, namespace: space },
    spec: { type: 'ClusterSetIP', ips: [ip], ports: [{ name: 'http', port: 80, protocol: 'TCP' }] }
  }
}

/** What stays as it is, so that differences are less than the zone. */
const still = Array.from({ length: 300 }, (_, at) => {
  const [name, ip] = [`still-${at}.${at % 2 === 0 ? 'backend' : 'quiet'}`, `10.8.${at >> 7}.${at & 127}`]
  return [...service(name, ip, { ready: [`10.1.0.${at % 250}`] }), ...(at < 100 ? [imported(name, ip)] : [])]
}).flat()

/** Random changes of what a cluster has: Services come, change their address, their endpoints, and go. */
function changer(seed: number): () => ObjectEvent[] {
  let random = seed
  const draw = (below: number): number => (random = (random * 48_271) % 0x7fff_ffff) % below
  return () => {
    const name = `s${draw(12)}.${['backend', 'shop', 'data'][draw(3)]!}`
    const [label, space] = name.split('.') as [string, string]
    const addresses = [...new Set(Array.from({ length: draw(5) }, () => `10.0.${draw(4)}.${draw(50)}`))]
    const kind = draw(12)
    if (kind === 10) return [put(imported(name, `10.7.${draw(4)}.${draw(250)}`))]
    if (kind === 11) return [{ type: 'delete', kind: 'ServiceImport', namespace: space, name: label }]
    if (kind === 0) {
      return ['Service', 'EndpointSlice'].map((kind) => ({
        type: 'delete',
        kind: kind as 'Service',
        namespace: space,
        name: kind === 'Service' ? label : `${label}-1`
      }))
    }
    if (kind === 1) return [put(externalName(name, `host${draw(9)}.example.org`))]
    if (kind < 6) return [put(slice(name, addresses.length === 0 ? ['10.0.9.9'] : addresses, addresses.length > 0))]
    const clusterIP = kind < 8 ? 'None' : `10.9.${draw(4)}.${draw(250)}`
    return service(name, clusterIP, { ready: addresses, ttl: `${5 + draw(3)}s` }).map(put)
  }
}

for (const algorithm of [null, 'hmac-sha256', 'hmac-sha512']) {
  const kinds = (['bind', 'knot', 'nsd'] as readonly SecondaryKind[]).filter((kind) => whyNoSecondary(kind) === null)
  const missing = ['bind', 'knot', 'nsd']
    .map((kind) => whyNoSecondary(kind as SecondaryKind))
    .find((why) => why !== null)
  // Once is enough for the clusterset zone.
  const zones = algorithm === null ? allZones : allZones.slice(0, 3)
  const skip = kinds.length === 0 ? (missing ?? true) : false
  void test(`secondaries of ours: ${algorithm ?? 'without key'}`, { skip }, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'peerdns-secondaries-'))
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'key'), secret)
    const key: SecondaryKey | null = algorithm === null ? null : { name: 'key.example', algorithm, secret }
    const ports = new Map<SecondaryKind, number>()
    for (const kind of kinds) ports.set(kind, await freePort())
    const keys = key === null ? '[]' : `[{name: key.example, algorithm: ${algorithm}, file: ${join(folder, 'key')}}]`
    const notify = `[${[...ports.values()].map((port) => `"127.0.0.1:${port}"`).join(', ')}]`
    const server = await startInProcess(
      t,
      clusterB(`forward: []\ntransfer: {allow: [127.0.0.1], keys: ${keys}, notify: ${notify}}\n`),
      { objects: [namespace('backend'), ...still] }
    )
    const { primary } = server.server.zonesOut
    const secondaries = kinds.map((kind) => ({
      kind,
      secondary: startSecondary(t, kind, { port: ports.get(kind)!, primaryPort: server.port, zones, key })
    }))
    for (const { kind, secondary } of secondaries) {
      for (const zone of zones) {
        const has = await until(async () => (await secondary.records(zone)).length > 1, longestMs)
        t.ok(has, `${kind} has taken ${zone}`)
        if (!has) t.comment(secondary.log().slice(-3_000))
      }
    }
    const wholeAtFirst = primary.stats.wholeTotal

    const change = changer(20_261_130 + (algorithm?.length ?? 0))
    for (let done = 0; done < changes; done++) {
      server.server.view.zones.apply(change(), Date.now())
      if (done % 5 === 0) await delay(10)
    }
    await delay(100)
    for (const zone of zones) {
      const want = await axfr(server.port, zone, key)
      t.ok(want.length > (zone === 'clusterset.local' ? 200 : 300), `${zone}: ${want.length} records`)
      for (const { kind, secondary } of secondaries) {
        const isEqual = await until(
          async () => (await secondary.records(zone)).join('\n') === want.join('\n'),
          longestMs
        )
        t.same(await secondary.records(zone), want, `${kind}: ${zone}`)
        if (!isEqual) t.comment(secondary.log().slice(-3_000))
      }
    }
    t.comment(JSON.stringify(primary.stats))
    t.ok(primary.stats.differencesTotal >= 3 * kinds.length, 'by differences')
    t.ok(primary.stats.wholeTotal - wholeAtFirst <= 3 * zones.length * kinds.length, 'hardly ever whole again')
    t.match(primary.stats, { brokenTotal: 0, badSignaturesTotal: 0 })
    t.ok(primary.stats.notifyAnsweredTotal > 0)
  })
}
