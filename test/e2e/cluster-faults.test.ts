/**
 * What the suites do to a cluster: take parts away and give them back, let credentials run out, and stand in between.
 */
import { existsSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { startCluster } from './support/cluster.ts'
import { settled } from './support/eventually.ts'
import { startHttpProxy } from './support/http-proxy.ts'
import { KubeApi, type KubeApiError } from './support/kube-api.ts'
import { TcpProxy } from './support/proxy.ts'
import { clusterSuite } from './support/suite.ts'

clusterSuite('a cluster and what happens to it', async (t) => {
  const cluster = await startCluster({ name: 'faults', ipv6Prefix: 'fd00:a::' })
  const { api } = cluster
  t.teardown(async () => cluster.stop())
  const namesOf = async (namespace = 'default') =>
    (await api.list('Service', { namespace })).map(({ metadata }) => metadata?.name)
  const service = (name: string) => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default' },
    spec: { selector: { app: name }, ports: [{ name: 'http', port: 80 }], ipFamilyPolicy: 'PreferDualStack' }
  })
  /** How a request fails: `403 Forbidden`, `0 NoAnswer`; `200` where it does not. */
  const outcomeOf = async (asking: Promise<unknown>) =>
    asking.then(
      () => '200',
      (error: KubeApiError) => `${error.status} ${error.reason}`
    )

  await t.test('two address families: Services, pods and slices have both', async (t) => {
    const made = await api.create(service('both'))
    t.same((made as unknown as { spec: { ipFamilies: string[] } }).spec.ipFamilies, ['IPv4', 'IPv6'])
    await api.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'both', namespace: 'default', labels: { app: 'both' } },
      spec: { nodeName: 'faults-node-1', containers: [{ name: 'c', image: 'none.invalid/none' }] }
    })
    const slices = await settled(
      async () => api.list('EndpointSlice', { labelSelector: 'kubernetes.io/service-name=both' }),
      (found) => found.filter(({ endpoints }) => endpoints?.length === 1).length === 2
    )
    const byFamily = slices.map(({ addressType, endpoints }) => `${addressType} ${endpoints?.[0]?.addresses.join()}`)
    t.match(byFamily.sort(), [/^IPv4 10\.244\.0\.\d+$/, /^IPv6 fd00:a::/])
  })

  await t.test('kubectl: lists, applies in a dry run, and reaches an API server over plain HTTP', async (t) => {
    t.match(await cluster.kubectl(['get', 'services', '-o', 'name']), /service\/both/)
    const manifest = JSON.stringify(service('dry'))
    t.match(await cluster.kubectl(['apply', '--dry-run=server', '-f', '-'], manifest), /created \(server dry run\)/)
    await t.rejects(cluster.kubectl(['get', 'nonsense']), /nonsense/)
    const proxy = await startHttpProxy(cluster)
    t.match(await cluster.kubectl(['get', 'services', '-o', 'name'], '', proxy.kubeconfig), /service\/both/)
    await proxy.part.kill()
  })

  await t.test('service accounts: only what their rules allow, only while their token is good', async (t) => {
    const rules = [{ apiGroups: [''], resources: ['services'], verbs: ['list', 'watch'] }]
    const account = await cluster.serviceAccount('peerdns', 'reader', rules)
    const { baseUrl, ca } = cluster
    const outcomes = async (token: string) => {
      const asAccount = new KubeApi({ baseUrl, caFile: ca.caFile, token })
      t.teardown(() => asAccount.close())
      return [await outcomeOf(asAccount.list('Service')), await outcomeOf(asAccount.list('Secret'))]
    }
    const identity = { namespace: 'peerdns', name: 'reader', uid: account.uid }
    const signed = (expiresInSeconds: number, uid = account.uid) => ca.signToken({ ...identity, uid, expiresInSeconds })
    t.same(await outcomes(account.token), ['200', '403 Forbidden'])
    t.same(await outcomes(signed(-61)), ['401 Unauthorized', '401 Unauthorized'], 'an expired token')
    t.same(await outcomes(signed(60, 'another')), ['401 Unauthorized', '401 Unauthorized'], 'of an earlier account')
    const short = signed(-52)
    t.same(await outcomes(short), ['200', '403 Forbidden'], 'a token for eight seconds more')
    // The API server remembers for ten seconds that a token was good, also beyond its end.
    const asShort = new KubeApi({ baseUrl, caFile: ca.caFile, token: short })
    const ended = await settled(
      async () => outcomeOf(asShort.list('Service')),
      (outcome) => outcome !== '200',
      { everyMs: 200 }
    )
    t.equal(ended, '401 Unauthorized', 'runs out')
    asShort.close()
    t.match(await cluster.kubectl(['get', 'services', '-o', 'name'], '', account.kubeconfig), /service\/both/)
  })

  await t.test('ServiceImports: their CRD comes, in both versions, and goes', async (t) => {
    t.equal(await outcomeOf(api.list('ServiceImport')), '404 ')
    await cluster.setServiceImports(['v1beta1', 'v1alpha1'])
    const apiVersion = 'multicluster.x-k8s.io/v1beta1'
    const spec = { type: 'ClusterSetIP', ips: ['10.96.7.7'], ports: [{ name: 'http', port: 80 }] }
    await api.create({ apiVersion, kind: 'ServiceImport', metadata: { name: 'x', namespace: 'default' }, spec })
    t.same((await api.list('ServiceImport')).map((it) => it.spec.ips), [['10.96.7.7']], 'read as v1alpha1') // prettier-ignore
    await cluster.setServiceImports([])
    const gone = await settled(async () => outcomeOf(api.list('ServiceImport')), (outcome) => outcome === '404 ') // prettier-ignore
    t.equal(gone, '404 ')
  })

  await t.test('expired resource versions: pages and watches from them are refused with 410', async (t) => {
    const path = '/api/v1/services?limit=1'
    type Page = { metadata: { continue: string; resourceVersion: string } }
    const { metadata } = JSON.parse(await api.text(path)) as Page
    const watch = `/api/v1/services?watch=1&timeoutSeconds=1&resourceVersion=${metadata.resourceVersion}`
    t.equal(await outcomeOf(api.text(watch)), '200')
    await cluster.expireResourceVersions()
    t.equal(await outcomeOf(api.text(`${path}&continue=${metadata.continue}`)), '410 Expired')
    t.match(await api.text(watch).catch(String), /too old resource version/)
  })

  await t.test('proxy: passes on, slows down, swallows, freezes, cuts, refuses', async (t) => {
    const proxy = await TcpProxy.start(cluster.port)
    t.teardown(async () => proxy.close())
    /** What fails is waited for in vain for 700 ms; what works may take its time. */
    const inVainMs = 700
    const through = async () => {
      const client = new KubeApi({
        baseUrl: `https://127.0.0.1:${proxy.port}`,
        caFile: cluster.ca.caFile,
        certificate: cluster.adminCertificate,
        connections: 1
      })
      t.teardown(() => client.close())
      return { ask: async (timeoutMs = 20_000) => outcomeOf(client.text('/version', timeoutMs)) }
    }
    const first = await through()
    t.equal(await first.ask(), '200')
    t.ok(proxy.stats.octetsToClients > 500)
    t.match(await cluster.kubectl(['get', 'services'], '', cluster.kubeconfigVia(proxy.port)), /both/)

    proxy.slowDown({ delayMs: 150 })
    const beforeMs = performance.now()
    t.equal(await first.ask(), '200')
    t.ok(performance.now() - beforeMs > 145, 'late')
    proxy.slowDown({})

    const frozen = await through()
    t.equal(await frozen.ask(), '200')
    await proxy.setMode('freeze')
    const waiting = frozen.ask()
    t.equal(await Promise.race([waiting, sleep(300, 'nothing')]), 'nothing', 'frozen')
    await proxy.setMode('pass')
    t.equal(await waiting, '200', 'and nothing was lost')

    await proxy.setMode('swallow')
    t.equal(await first.ask(inVainMs), '0 NoAnswer', 'swallowed')
    await proxy.setMode('pass')
    t.equal(await (await through()).ask(), '200', 'a new connection is whole')

    const cutOff = await through()
    t.equal(await cutOff.ask(), '200')
    proxy.cut()
    t.equal(await settled(async () => proxy.openConnections, (count) => count === 0), 0) // prettier-ignore
    await proxy.setMode('refuse')
    t.equal(await (await through()).ask(), '0 NoAnswer', 'refused')
    await proxy.setMode('pass')
    t.equal(await (await through()).ask(), '200')
  })

  await t.test('API server: frozen, killed, restarted; etcd restarted, then emptied', async (t) => {
    const ready = async (timeoutMs: number) => outcomeOf(api.text('/readyz', timeoutMs))
    cluster.apiServer.freeze()
    t.equal(await ready(500), '0 NoAnswer', 'frozen')
    cluster.apiServer.thaw()
    t.equal(await ready(20_000), '200', 'thawed')
    await cluster.apiServer.kill()
    t.equal(await ready(500), '0 NoAnswer', 'killed')
    const restartedMs = performance.now()
    await cluster.apiServer.start()
    t.comment(`the API server is back after ${Math.round(performance.now() - restartedMs)} ms`)
    t.ok((await namesOf()).includes('both'), 'and knows what it knew')
    await cluster.etcd.restart()
    t.equal(await settled(async () => ready(2000), (outcome) => outcome === '200'), '200', 'a new etcd') // prettier-ignore
    t.ok((await namesOf()).includes('both'), 'with the old data')
    await cluster.emptyEtcd()
    t.same(await settled(async () => namesOf(), (names) => names.length === 1), ['kubernetes'], 'emptied') // prettier-ignore
    await Promise.all([cluster.controllerManager.restart(), cluster.kwok.restart()])
    await api.create(service('again'))
    const slices = await settled(async () => api.list('EndpointSlice'), (found) => found.length > 0) // prettier-ignore
    t.ok(slices.length > 0, 'and works')
  })

  await t.test('start: one that fails says why, and leaves nothing', async (t) => {
    const failing = startCluster({ name: 'failing', apiServerFlags: ['--nonsense'] })
    await t.rejects(failing, /kube-apiserver ended before it was ready:[^]*unknown flag: --nonsense/)
    t.same(readdirSync(tmpdir()).filter((name) => name.startsWith('peerdns-e2e-failing-')), []) // prettier-ignore
  })

  await t.test('bare: an API server alone takes many objects at once', async (t) => {
    const bare = await startCluster({ name: 'bare', isBare: true, nodes: 0 })
    await bare.api.applyAll(Array.from({ length: 300 }, (_, index) => service(`many-${index}`)), 8) // prettier-ignore
    t.equal((await bare.api.list('Service', { namespace: 'default', limit: 100 })).length, 301, 'read page by page')
    t.same(await bare.api.list('EndpointSlice'), [], 'and nobody makes anything of them')
    await bare.stop()
  })

  await t.test('stop: nothing runs any more, and nothing is left', async (t) => {
    const { etcd, apiServer, controllerManager, kwok } = cluster
    const pids = [etcd, apiServer, controllerManager, kwok].map(({ pid }) => pid ?? 0)
    t.ok(pids.every((pid) => pid > 0))
    await cluster.stop()
    t.same(pids.filter((pid) => existsSync(`/proc/${pid}`)), []) // prettier-ignore
    t.notOk(existsSync(cluster.folder))
  })
})
