/**
 * The API server and the way to it under faults: answers go on from the last good data, the age is told, and after each
 * fault answers equal what the API server holds. Three servers follow the same cluster: one directly, one through a
 * proxy, one by a service account's token; a fourth one is their peer.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { apiBackoffMaxMs, apiHeadersTimeoutMs } from '../../src/base/limits.ts'
import { startCluster } from './support/cluster.ts'
import { settled } from './support/eventually.ts'
import type { World, ZoneRules } from './support/expected.ts'
import type { KubeObject } from './support/kinds.ts'
import { tell } from './support/live-figures.ts'
import { LiveServer } from './support/live-server.ts'
import { Steady } from './support/live-steady.ts'
import { Walker } from './support/live-walker.ts'
import { whyNoClusters } from './support/part.ts'
import { TcpProxy } from './support/proxy.ts'
import { recordedCluster } from './support/recorded-cluster.ts'

const skip = whyNoClusters() ?? false

const ownRules: ZoneRules = { clusterName: 'a', importsInZone: false, pods: 'insecure' }
/**
 * Reaching an API server again: the wait before the next attempt, and the time to list everything on a busy machine.
 */
const backDeadlineMs = apiBackoffMaxMs + 20_000
/** The same where a request's octets were swallowed: that it is dead shows only by its silence. */
const swallowedDeadlineMs = apiHeadersTimeoutMs + backDeadlineMs
/** The watch that is lost is found out, logged and counted within half of this, on a machine that is not busy. */
const noticeMs = 60_000
/** Where no promise is looked at: what comes in the end may take its time. */
const inTheEndMs = 30_000
const resources = ['services', 'endpointslices', 'namespaces', 'serviceimports']
const rules = [
  { apiGroups: [''], resources: ['services', 'namespaces'], verbs: ['list', 'watch'] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
  { apiGroups: ['multicluster.x-k8s.io'], resources: ['serviceimports'], verbs: ['list', 'watch'] }
]
const steadyQuestions = [
  { name: 'paymentservice.shop.svc.cluster.local', type: 'A' },
  { name: '_http._tcp.api-headless.backend.svc.cluster.local', type: 'SRV' },
  { name: 'nobody.shop.svc.cluster.local', type: 'A' },
  { name: '21.226.30.172.in-addr.arpa', type: 'PTR' }
]

const service = (name: string, namespace = 'shop', clusterIP?: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace },
  spec: { ...(clusterIP !== undefined && { clusterIP }), ports: [{ name: 'http', port: 80 }] }
})

test('faults of the API server and of the way to it', { skip, timeout: 288_000, jobs: 3 }, async (t) => {
  const cluster = await startCluster({
    name: 'a',
    serviceCidr: '172.30.0.0/16',
    podCidr: '10.0.0.0/16',
    serviceImports: ['v1beta1', 'v1alpha1']
  })
  t.teardown(async () => cluster.stop())
  const { api } = cluster
  await api.applyAll(recordedCluster('a').all)
  const proxy = await TcpProxy.start(cluster.port)
  t.teardown(async () => proxy.close())
  const account = await cluster.serviceAccount('peerdns', 'peerdns', rules)
  const requestToken = async (): Promise<string> => {
    const path = '/api/v1/namespaces/peerdns/serviceaccounts/peerdns/token'
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 600 } }
    return (await api.post<{ status: { token: string } }>(path, body)).status.token
  }
  /** By a rename, as the kubelet does: a server may read the file at any moment. */
  const rotateToken = async (): Promise<void> => {
    writeFileSync(`${account.tokenFile}.new`, await requestToken())
    renameSync(`${account.tokenFile}.new`, account.tokenFile)
  }
  await rotateToken()
  const [direct, proxied, byToken] = await Promise.all([
    LiveServer.start(cluster, { name: 'direct' }),
    LiveServer.start(cluster, { name: 'proxied', kubeconfig: cluster.kubeconfigVia(proxy.port) }),
    LiveServer.start(cluster, { name: 'by-token', kubeconfig: account.kubeconfig })
  ])
  const manifest = join(cluster.folder, 'peer.yaml')
  writeFileSync(manifest, JSON.stringify(service('own', 'default', '10.1.2.3')))
  const peer = await LiveServer.start(cluster, {
    name: 'peer',
    source: `manifests: [${manifest}]`,
    clusterKeys: 'records: ["host.example. 30 A 192.0.2.9"]',
    more: peered(direct.port, 'a', 'shop', 'backend')
  })
  const walkers = [direct, proxied, byToken].map((server) => new Walker({ server, own: api, ownRules }))
  const [walkerOfDirect, walkerOfProxied, walkerOfByToken] = walkers as [Walker, Walker, Walker]

  const equals = async (t: Test, walker: Walker, deadlineMs: number, isReached?: (world: World) => boolean) => {
    const { problems, questions, tookMs } = await walker.untilEqual(isReached, { deadlineMs })
    t.same(problems.slice(0, 10), [], `${questions} questions, right after ${Math.round(tookMs)} ms`)
    return Math.round(tookMs)
  }
  const allEqual = async (t: Test, deadlineMs: number): Promise<string> => {
    const tookMs = await Promise.all(walkers.map(async (walker) => equals(t, walker, deadlineMs)))
    return `${tookMs.join(', ')} ms`
  }
  const isSteady = async (t: Test, steady: readonly Steady[]): Promise<void> => {
    for (const { asked, deviations } of await Promise.all(steady.map(async (it) => it.stop()))) {
      t.same(deviations, [], `${asked} answers as before`)
    }
  }
  /** Milliseconds until every resource's loss is in the log, counted from `sinceMs`. */
  const untilSaid = async (t: Test, server: LiveServer, sinceMs: number, before: number): Promise<number> => {
    const lost = () =>
      server
        .log()
        .filter(({ msg }) => msg?.startsWith('the watch is lost'))
        .slice(before)
    await settled(async () => lost().length, (count) => count >= resources.length, { timeoutMs: noticeMs + 10_000, everyMs: 100 }) // prettier-ignore
    const tookMs = performance.now() - sinceMs
    const said = new Set(lost().map(({ resource }) => resource))
    t.same([lost().length, said.size], [resources.length, resources.length], 'each loss is said once')
    t.ok(tookMs < noticeMs, `said after ${Math.round(tookMs)} ms`)
    return Math.round(tookMs)
  }
  const lossesOf = (server: LiveServer) => server.log().filter(({ msg }) => msg?.startsWith('the watch is lost')).length
  /** Until every loss that was said is also said to be over: the next fault then is a loss of its own. */
  const untilBack = async (t: Test, ...servers: readonly LiveServer[]): Promise<void> => {
    const open = () => servers.map((server) => lossesOf(server) - server.log().filter(({ msg }) => msg === 'the watch is back').length) // prettier-ignore
    const left = await settled(async () => open(), (counts) => counts.every((count) => count === 0), { everyMs: 100 }) // prettier-ignore
    t.same(left, servers.map(() => 0), 'each loss is said to be over') // prettier-ignore
    // One that was too short to be said: a watch is good again after five seconds.
    await sleep(5500)
  }
  const isReadyAndTellsAge = async (t: Test, server: LiveServer, leastSeconds: number): Promise<void> => {
    const [{ status, text }, ageSeconds] = [await server.readiness(), await server.ageSeconds()]
    t.equal(status, 200)
    t.match(text, /last sign of life of services [\d.]+ s ago/, 'the age is in /readyz?verbose')
    t.ok(ageSeconds >= leastSeconds, `${ageSeconds} s is no less than ${leastSeconds} s`)
  }

  t.equal((await Promise.all(walkers.map(async (walker) => equals(t, walker, inTheEndMs)))).length, 3)

  await Promise.all([
    t.test(
      'before the first sync: no denial, while what is peered or forwarded works',
      { buffered: true },
      async (t) => {
        const slow = await TcpProxy.start(cluster.port)
        t.teardown(async () => slow.close())
        await slow.setMode('freeze')
        const late = await LiveServer.start(cluster, {
          name: 'late',
          kubeconfig: cluster.kubeconfigVia(slow.port),
          untilReady: false,
          more: `${peered(direct.port, 'a', 'backend')}forward: ["127.0.0.1:${peer.port}"]\n`
        })
        const own = ['paymentservice.shop', 'nobody.shop', 'shop', 'x.y'].map((name) => `${name}.svc.cluster.local`)
        const questions = [
          ...own.map((name) => ({ name, type: 'A' })),
          { name: '21.226.30.172.in-addr.arpa', type: 'PTR' }
        ]
        const seen = new Map<string, number>()
        let others = 0
        const askUntilReady = async (withinMs: number): Promise<boolean> => {
          const startedMs = performance.now()
          while (performance.now() - startedMs < withinMs) {
            const replies = await late.client.askAll(questions)
            if ((await late.readiness()).status === 200) return true
            for (const { rcode, ede } of replies) {
              const text = `${rcode} ${ede.join()}`
              seen.set(text, (seen.get(text) ?? 0) + 1)
            }
            const [peers, forwarded, impossible] = await late.client.askAll([
              { name: 'api-headless.backend.svc.cluster.local', type: 'A' },
              { name: 'host.example', type: 'A' },
              { name: 'nobody.backend.svc.cluster.local', type: 'A' }
            ])
            t.equal(peers?.answer.length, 3, 'peered')
            t.same(forwarded?.answer, ['host.example A 192.0.2.9'], 'forwarded')
            t.equal(impossible?.rcode, 'NXDOMAIN', 'denied by the peer')
            others += 3
            await sleep(100)
          }
          return false
        }
        t.equal(await askUntilReady(2000), false, 'an API server that says nothing')
        t.equal((await late.readiness()).status, 503)
        t.equal(await late.metric('peerdns_source_synced'), 0)
        // The lists come in pieces, each a second late, and are cut off in the middle once.
        slow.slowDown({ delayMs: 700, octetsPerSecond: 20_000 })
        await slow.setMode('pass')
        t.equal(await askUntilReady(3000), false, 'lists that take long')
        slow.cut()
        await askUntilReady(2500)
        slow.slowDown({})
        t.equal(await askUntilReady(60_000), true)
        t.same([...seen.keys()], ['SERVFAIL 14'], 'nothing else before all is known')
        tell(
          `before the first sync: ${[...seen.values()].join()} answers, all SERVFAIL with EDE 14; ${others} of others right`
        )
        const peerings = [{ dnsName: 'backend.svc.cluster.local', order: ['peer', 'own'] as const }]
        const both = { own: api, ownRules, peer: api, peerRules: ownRules, peerings }
        // The end of its alias is asked for by `forward`, where nobody has it.
        const isLeftOut = (name: string) => name.startsWith('billing.data.')
        await equals(t, new Walker({ server: late, ...both, isLeftOut }), inTheEndMs)
        await late.stop()
      }
    ),

    t.test('the way to it: cut, refused, swallowed', { buffered: true }, async (t) => {
      for (const how of ['reset', 'end'] as const) {
        proxy.cut(how)
        await api.create(service(`after-${how}`))
        const tookMs = await equals(t, walkerOfProxied, inTheEndMs)
        tell(`connections ended by ${how}: all right after ${tookMs} ms`)
      }
      const steady = await Steady.start(proxied, steadyQuestions)
      await proxy.setMode('refuse')
      proxy.cut()
      await api.delete('Service', { namespace: 'shop', name: 'after-end' })
      await api.create(service('while-refused'))
      await sleep(4000)
      t.equal((await proxied.readiness()).status, 200)
      await proxy.setMode('pass')
      const refusedMs = await equals(t, walkerOfProxied, backDeadlineMs)

      await untilBack(t, proxied)
      const losses = lossesOf(proxied)
      await proxy.setMode('swallow')
      const sinceMs = performance.now()
      await api.delete('Service', { namespace: 'shop', name: 'after-reset' })
      await api.create(service('while-swallowed'))
      const saidMs = await untilSaid(t, proxied, sinceMs, losses)
      await isReadyAndTellsAge(t, proxied, 20)
      await isSteady(t, [steady])
      await proxy.setMode('pass')
      const swallowedMs = await equals(t, walkerOfProxied, swallowedDeadlineMs)
      tell(
        `refused: all right ${refusedMs} ms after; swallowed: said after ${saidMs} ms, all right ${swallowedMs} ms after`
      )
    }),

    t.test('a token: exchanged, run out, revoked', { buffered: true }, async (t) => {
      await rotateToken()
      await api.create(service('token-exchanged'))
      await equals(t, walkerOfByToken, inTheEndMs)
      const steady = await Steady.start(byToken, steadyQuestions)
      // Of the deleted account: the API server remembers it for ten seconds at most, and running watches go on.
      await api.delete('ServiceAccount', { namespace: 'peerdns', name: 'peerdns' })
      await api.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'peerdns', name: 'peerdns' } })
      const refused = async () => byToken.log().some(({ reason }) => String(reason).includes('401'))
      t.equal(await settled(refused, (is) => is, { timeoutMs: 90_000, everyMs: 200 }), true, 'is refused, and said')
      await api.create(service('token-revoked'))
      await isReadyAndTellsAge(t, byToken, 5)
      await isSteady(t, [steady])
      await rotateToken()
      const tookMs = await equals(t, walkerOfByToken, backDeadlineMs)
      tell(`a good token again: all right after ${tookMs} ms`)
    })
  ])

  await t.test('killed for 12 s, and started again', async (t) => {
    await untilBack(t, direct)
    const steady = await Promise.all(
      [direct, byToken, peer].map(async (server) => Steady.start(server, steadyQuestions))
    )
    const losses = lossesOf(direct)
    await cluster.apiServer.kill()
    const sinceMs = performance.now()
    await sleep(12_000)
    await untilSaid(t, direct, sinceMs, losses)
    for (const server of [direct, byToken]) await isReadyAndTellsAge(t, server, 12)
    await cluster.apiServer.start()
    await api.create(service('after-kill'))
    const text = await allEqual(t, backDeadlineMs)
    await isSteady(t, steady)
    tell(`killed: all right ${text} after it was there again`)
    t.equal(lossesOf(direct), losses + resources.length, 'nothing is said twice')
  })

  await t.test('410: the history that a server has missed is compacted away', async (t) => {
    const listsBefore = await proxied.metric('peerdns_watch_lists_total', 'services')
    await proxy.setMode('refuse')
    proxy.cut()
    await api.delete('Service', { namespace: 'shop', name: 'while-refused' })
    await api.create(service('while-compacted'))
    await cluster.expireResourceVersions()
    await proxy.setMode('pass')
    const text = await allEqual(t, backDeadlineMs)
    const lists = await proxied.metric('peerdns_watch_lists_total', 'services')
    t.ok(Number(lists) > Number(listsBefore), 'everything was listed again')
    tell(`410: all right ${text} after it was there again`)
  })

  await t.test('stopped by SIGSTOP for 40 s: noticed, said, served on; then it goes on', async (t) => {
    await untilBack(t, direct)
    const steady = await Promise.all(
      [direct, proxied, peer].map(async (server) => Steady.start(server, steadyQuestions))
    )
    const losses = lossesOf(direct)
    await api.create(service('before-stop'))
    cluster.apiServer.freeze()
    const sinceMs = performance.now()
    const saidMs = await untilSaid(t, direct, sinceMs, losses)
    await sleep(Math.max(0, 40_000 - (performance.now() - sinceMs)))
    await isReadyAndTellsAge(t, direct, 38)
    cluster.apiServer.thaw()
    await api.create(service('after-stop'))
    const text = await allEqual(t, backDeadlineMs)
    await isSteady(t, steady)
    tell(`SIGSTOP: said after ${saidMs} ms; all right ${text} after SIGCONT`)
  })

  await t.test('etcd emptied: the old world leaves, what the new one holds comes', async (t) => {
    await cluster.emptyEtcd()
    await api.applyAll(['shop', 'world'].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })))
    await api.applyAll([service('paymentservice', 'shop', '172.30.9.9'), service('new', 'world', '172.30.226.21')])
    const walked = [walkerOfDirect, walkerOfProxied].map(async (walker) => equals(t, walker, backDeadlineMs))
    tell(`etcd emptied: all right ${(await Promise.all(walked)).join(', ')} ms after`)
    const ofPeer = async () => (await peer.client.ask(steadyQuestions[0]!)).answer
    const answer = await settled(ofPeer, ([line]) => line?.endsWith('172.30.9.9') === true)
    t.same(answer, ['paymentservice.shop.svc.cluster.local A 172.30.9.9'], 'the peer has it too')
  })
})

/** These namespaces are asked of the server at this port first, and then of our own cluster. */
const peered = (port: number, name: string, ...namespaces: readonly string[]): string =>
  `peers: {${name}: {servers: ["127.0.0.1:${port}"], probe: {every: 2s, timeout: 2s, fall: 5}}}
policies: [{name: p, dnsName: [${namespaces.map((it) => `${it}.svc.cluster.local`).join(', ')}], targets: [${name}, local]}]
`
