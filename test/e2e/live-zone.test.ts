/**
 * Two clusters, each with its peerdns, peered with each other: whatever happens to the objects, answers equal what the
 * API servers hold, at once for a server's own cluster and within TTL + 1 s across the peer.
 */
import { test, type Test } from 'tap'
import { startCluster } from './support/cluster.ts'
import { podsAreUp, publishedEndpoints, type World, type ZoneRules } from './support/expected.ts'
import type { KubeObject } from './support/kinds.ts'
import { durationsText, tell } from './support/live-figures.ts'
import { LiveServer } from './support/live-server.ts'
import {
  ownDeadlineMs,
  peerDeadlineMs,
  Walker,
  type Peering,
  type Walked,
  type WalkOptions
} from './support/live-walker.ts'
import { whyNoClusters } from './support/part.ts'
import { freePort } from '../support/free-port.ts'
import { recordedCluster } from './support/recorded-cluster.ts'

const skip = whyNoClusters() ?? false

const rulesOfA: ZoneRules = { clusterName: 'a', importsInZone: true, pods: 'insecure' }
const rulesOfB: ZoneRules = { clusterName: 'b', importsInZone: false, pods: 'verified' }
const peeringsOfA: readonly Peering[] = [{ dnsName: 'shop.svc.cluster.local', order: ['own', 'peer'] }]
const peeringsOfB: readonly Peering[] = [
  { dnsName: 'backend.svc.cluster.local', order: ['peer', 'own'] },
  { dnsName: 'shop.svc.cluster.local', order: ['own', 'peer'] }
]

/** The configuration of what a walker knows as peerings. */
function peeredWith(port: number, peerings: readonly Peering[]): string {
  const policies = peerings.map(({ dnsName, order }, at) => {
    const targets = order.map((which) => (which === 'own' ? 'local' : 'other')).join(', ')
    return `  - {name: p${at}, dnsName: ${dnsName}, targets: [${targets}]}\n`
  })
  return `peers: {other: {servers: ["127.0.0.1:${port}"]}}\npolicies:\n${policies.join('')}`
}

test('two clusters that are peered', { skip, timeout: 280_000 }, async (t) => {
  const [a, b] = await Promise.all([
    startCluster({
      name: 'a',
      serviceCidr: '172.30.0.0/16',
      podCidr: '10.0.0.0/16',
      region: 'us-central1',
      serviceImports: ['v1beta1', 'v1alpha1']
    }),
    startCluster({ name: 'b', serviceCidr: '10.1.0.0/16', podCidr: '10.8.0.0/16', region: 'us-west1' })
  ])
  t.teardown(async () => Promise.all([a.stop(), b.stop()]))
  const [portOfA, portOfB] = [await freePort(), await freePort()]
  // The servers are there first: they follow the clusters from nothing on.
  const [serverOfA, serverOfB] = await Promise.all([
    LiveServer.start(a, {
      port: portOfA,
      clusterKeys: 'importsInZone: true',
      more: peeredWith(portOfB, peeringsOfA)
    }),
    LiveServer.start(b, { port: portOfB, pods: 'verified', more: peeredWith(portOfA, peeringsOfB) })
  ])
  const walkerOfA = new Walker({
    server: serverOfA,
    own: a.api,
    ownRules: rulesOfA,
    peer: b.api,
    peerRules: rulesOfB,
    peerings: peeringsOfA
  })
  const walkerOfB = new Walker({
    server: serverOfB,
    own: b.api,
    ownRules: rulesOfB,
    peer: a.api,
    peerRules: rulesOfA,
    peerings: peeringsOfB
  })

  const tookMs: number[] = []
  /** Until both servers say what both clusters hold, where `isReached` says that those have got there. */
  const bothEqual = async (
    t: Test,
    isReached: (a: World, b: World) => boolean,
    options: WalkOptions = {}
  ): Promise<void> => {
    const [ofA, ofB] = await Promise.all([
      walkerOfA.untilEqual((own, peer) => isReached(own, peer!), options),
      walkerOfB.untilEqual((own, peer) => isReached(peer!, own), options)
    ])
    t.same(ofA.problems.slice(0, 10), [], `A: ${shown(ofA)}`)
    t.same(ofB.problems.slice(0, 10), [], `B: ${shown(ofB)}`)
    tookMs.push(ofA.tookMs, ofB.tookMs)
    t.comment(`A: ${shown(ofA)}; B: ${shown(ofB)}`)
  }

  await t.test('the recorded clusters appear', async (t) => {
    await Promise.all([a.api.applyAll(recordedCluster('a').all), b.api.applyAll(recordedCluster('b').all)])
    const isWhole = (a: World, b: World) =>
      podsAreUp(a, recordedCluster('a').workloads) && podsAreUp(b, recordedCluster('b').workloads)
    await bothEqual(t, isWhole)
    await bothEqual(t, isWhole, { transport: 'tcp' })
  })

  await t.test('Deployments: scaled up, down, to zero and back', async (t) => {
    const api = { namespace: 'backend', name: 'api' }
    const adservice = { namespace: 'shop', name: 'adservice' }
    for (const [ofA, ofB] of [
      [5, 6],
      [1, 1],
      [0, 0],
      [2, 3]
    ] as const) {
      await Promise.all([a.api.scale('Deployment', api, ofA), b.api.scale('Deployment', adservice, ofB)])
      t.comment(`${ofA} and ${ofB} replicas`)
      const isReached = (a: World, b: World) =>
        readyOf(a, 'backend', 'api-headless') === ofA && readyOf(b, 'shop', 'adservice') === ofB
      await bothEqual(t, isReached)
    }
  })

  await t.test('a rollout replaces every pod, a StatefulSet its pods under the same names', async (t) => {
    const rollout = async (cluster: typeof a, namespace: string, workload: string) => {
      await cluster.kubectl([`--namespace=${namespace}`, 'rollout', 'restart', workload])
      await cluster.kubectl([`--namespace=${namespace}`, 'rollout', 'status', workload, '--timeout=60s'])
    }
    const name = 'postgres-0.postgres.data.svc.cluster.local'
    const ask = async () => (await serverOfA.client.ask({ name, type: 'A' })).answer
    const before = await ask()
    await Promise.all([
      rollout(a, 'backend', 'deployment/api'),
      rollout(a, 'data', 'statefulset/postgres'),
      rollout(b, 'shop', 'deployment/frontend'),
      rollout(b, 'data', 'statefulset/postgres')
    ])
    await bothEqual(t, (a, b) => [a, b].every((world) => readyOf(world, 'data', 'postgres') === 3))
    // kwok gives a new pod the address that became free last, so it is told another one.
    const key = { namespace: 'data', name: 'postgres-0' }
    const moved = { status: { podIP: '10.0.99.1', podIPs: [{ ip: '10.0.99.1' }] } }
    await a.api.patch('Pod', key, moved, 'status')
    await bothEqual(t, ({ slices }) =>
      slices.some(({ endpoints }) => endpoints?.some(({ addresses }) => addresses.includes('10.0.99.1')))
    )
    t.same([before.length, await ask()], [1, [`${name} A 10.0.99.1`]], 'another address at the same name')
  })

  await t.test('readiness: a pod that is not ready leaves, and comes back', async (t) => {
    const pods = await a.api.list('Pod', { namespace: 'backend', labelSelector: 'app=api' })
    const key = { namespace: 'backend', name: pods[0]?.metadata?.name ?? '' }
    for (const isReady of [false, true, false, true]) {
      await a.api.setPodReady(key, isReady)
      await bothEqual(t, (a) => readyOf(a, 'backend', 'api-headless') === (isReady ? 2 : 1))
    }
  })

  await t.test('Services: deleted; deleted and made again at once, as another object', async (t) => {
    const key = { namespace: 'shop', name: 'redis-cart' }
    const isGone = (a: World) => !a.services.some(({ metadata }) => metadata?.name === key.name)
    await a.api.delete('Service', key)
    // The peer has one of that name.
    await bothEqual(t, isGone)
    for (const namespace of ['shop', 'backend']) {
      const name = `again-${namespace}`
      const remade = (clusterIP: string): KubeObject => ({
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name, namespace },
        spec: { clusterIP, selector: { app: 'frontend' }, ports: [{ name: 'http', port: 80 }] }
      })
      await a.api.create(remade('172.30.7.7'))
      await bothEqual(t, (a) => hasService(a, name))
      await a.api.delete('Service', { namespace, name })
      await a.api.create(remade(namespace === 'shop' ? 'None' : '172.30.7.8'))
      await bothEqual(t, (a) => hasService(a, name))
    }
  })

  await t.test('a namespace goes with all that is in it, and comes again', async (t) => {
    await b.api.delete('Namespace', { name: 'shop' })
    const isGone = (_: World, b: World) => !b.namespaces.some(({ metadata }) => metadata?.name === 'shop')
    await bothEqual(t, isGone)
    const { namespaces, services, workloads } = recordedCluster('b')
    const ofShop = [...services, ...workloads].filter(({ metadata }) => metadata.namespace === 'shop')
    await b.api.applyAll([...namespaces.filter(({ metadata }) => metadata.name === 'shop'), ...ofShop])
    await bothEqual(t, (_, b) => readyOf(b, 'shop', 'adservice') > 0 && readyOf(b, 'shop', 'redis-cart') > 0)
  })

  await t.test('ServiceImports: the CRD comes while the server runs, and goes', async (t) => {
    // It is looked for every 20 to 25 s; a busy machine may take longer to list.
    const deadlineMs = 60_000
    const apiVersion = 'multicluster.x-k8s.io/v1beta1'
    const ports = [{ name: 'http', port: 80, protocol: 'TCP' }]
    await b.setServiceImports(['v1beta1'])
    const metadata = { name: 'vip', namespace: 'backend' }
    const spec = { type: 'ClusterSetIP', ips: ['10.1.200.1'], ports }
    await b.api.create({ apiVersion, kind: 'ServiceImport', metadata, spec })
    const untilEqual = async (isReached: (b: World) => boolean, deadlineMs?: number) => {
      const walked = await walkerOfB.untilEqual(isReached, deadlineMs === undefined ? {} : { deadlineMs })
      t.same(walked.problems.slice(0, 10), [], shown(walked))
      return walked
    }
    const asV1beta1 = b.api.list('ServiceImport', { apiVersion })
    t.equal((await asV1beta1).length, 1)
    const appeared = await untilEqual(({ imports }) => imports.length === 1, deadlineMs)
    tell(`an import is answered ${Math.round(appeared.tookMs)} ms after its CRD has come`)
    await b.api.create({
      apiVersion,
      kind: 'ServiceImport',
      metadata: { ...metadata, name: 'far' },
      spec: { type: 'Headless', ports }
    })
    const imported = (cluster: string, address: string): KubeObject => ({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: `far-${cluster}`,
        namespace: 'backend',
        labels: {
          'multicluster.kubernetes.io/service-name': 'far',
          'multicluster.kubernetes.io/source-cluster': cluster
        }
      },
      addressType: 'IPv4',
      endpoints: [{ addresses: [address], hostname: 'far-0', conditions: { ready: true } }],
      ports
    })
    for (const slice of [imported('east', '10.9.0.1'), imported('west', '10.9.0.2'), imported('east', '10.9.0.3')]) {
      await b.api.apply(slice)
      await untilEqual(({ imports }) => imports.length === 2)
    }
    await b.setServiceImports([])
    await untilEqual(({ imports }) => imports.length === 0, deadlineMs + 5000)
  })

  await t.test('change to answer: the first right answer after the reply to a change', async (t) => {
    const headless = (name: string): KubeObject => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace: 'backend' },
      spec: { clusterIP: 'None', ports: [{ name: 'http', port: 80 }] }
    })
    const slice = (name: string, address: string): KubeObject => ({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name, namespace: 'backend', labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
      ports: [{ name: 'http', port: 80, protocol: 'TCP' }]
    })
    /** Milliseconds until this server gives this address and no other. */
    const untilGiven = async ({ client }: LiveServer, service: string, address: string, deadlineMs: number) => {
      const name = `${service}.backend.svc.cluster.local`
      const startedMs = performance.now()
      for (;;) {
        const { answer } = await client.ask({ name, type: 'A' })
        const tookMs = performance.now() - startedMs
        if (answer.join() === `${name} A ${address}`) return tookMs
        if (tookMs > deadlineMs) throw new Error(`${name}: still ${answer.join()}, not ${address}`)
      }
    }
    const ownMs: number[] = []
    await a.api.create(headless('probe'))
    for (let at = 0; at < 200; at++) {
      const address = `10.0.200.${at + 1}`
      await a.api.apply(slice('probe', address))
      ownMs.push(await untilGiven(serverOfA, 'probe', address, ownDeadlineMs))
    }
    tell(`change to answer, own cluster: ${durationsText(ownMs)}`)
    const names = Array.from({ length: 8 }, (_, at) => `probe-${at}`)
    await Promise.all(names.map(async (name) => a.api.create(headless(name))))
    const acrossMs: number[] = []
    for (const third of [201, 202]) {
      const tookMs = await Promise.all(
        names.map(async (name, at) => {
          await a.api.apply(slice(name, `10.0.${third}.${at}`))
          return untilGiven(serverOfB, name, `10.0.${third}.${at}`, peerDeadlineMs)
        })
      )
      acrossMs.push(...tookMs)
    }
    tell(`change to answer, across the peer, by TTL: ${durationsText(acrossMs)}`)
    t.equal(acrossMs.length, 16)
  })

  await t.test('in the end: everything once more over TCP, and nothing left out or wrong on the way', async (t) => {
    await bothEqual(t, () => true, { transport: 'tcp' })
    for (const server of [serverOfA, serverOfB]) {
      t.equal(await server.metric('peerdns_source_problems_total'), 0)
      t.equal(await server.metric('peerdns_watch_drift_total'), 0)
      t.equal(await server.metric('peerdns_watch_lists_total', 'resource="services"'), 1, 'one list was enough')
      // On a busy machine the end of a watch may come too late: that is repaired, and worth a look.
      for (const { name, errors, lastError } of await server.resources()) {
        if (errors > 0) tell(`${server.part.name}: ${errors} errors of ${name}, the last: ${lastError?.text}`)
      }
      const worse = server.log().filter(({ level }) => level === 'error' || level === 'fatal')
      t.same(worse, [])
    }
    tell(`all answers equal: ${durationsText(tookMs)} after both API servers were seen to hold the objects`)
  })
})

const shown = ({ questions, tookMs }: Walked): string => `${questions} questions, ${Math.round(tookMs)} ms`

const hasService = ({ services }: World, name: string): boolean =>
  services.some(({ metadata }) => metadata?.name === name)

/** Addresses that a Service's slices give out. */
const readyOf = ({ slices }: World, namespace: string, service: string): number =>
  publishedEndpoints(
    slices.filter(
      ({ metadata }) => metadata?.namespace === namespace && metadata.labels?.['kubernetes.io/service-name'] === service
    ),
    false
  ).length
