/**
 * The ground that the other suites stand on: two whole clusters at once, with the recorded objects in them, whose
 * controllers do what those of any cluster do. peerdns is not in here; `live-zone` puts it on the same ground.
 */
import { startCluster } from './support/cluster.ts'
import { startCoreDns } from './support/coredns.ts'
import { dig } from './support/dig.ts'
import { settled } from './support/eventually.ts'
import type { KubeObject } from './support/kinds.ts'
import { annotationOf } from './support/kwok-stages.ts'
import { addressesOf, recordedCluster, slicesByService } from './support/recorded-cluster.ts'
import { clusterSuite } from './support/suite.ts'

clusterSuite('clusters', async (t) => {
  const startedMs = performance.now()
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
  t.comment(`two clusters are up after ${Math.round(performance.now() - startedMs)} ms`)

  const slicesOf = async (namespace: string, service: string, cluster = a) =>
    cluster.api.list('EndpointSlice', { namespace, labelSelector: `kubernetes.io/service-name=${service}` })
  /** Asks until this many addresses are ready, and gives them. */
  const untilReady = async (namespace: string, service: string, count: number) =>
    addressesOf(
      await settled(
        async () => slicesOf(namespace, service),
        (slices) => addressesOf(slices).length === count
      )
    )
  const podsOf = async (namespace: string, app: string, cluster = a) =>
    cluster.api.list('Pod', { namespace, labelSelector: `app=${app}` })
  const nameOf = (object: { metadata?: { name?: string } } | undefined) => object?.metadata?.name ?? ''

  await t.test('recorded objects: the real controllers make the recorded EndpointSlices of them', async (t) => {
    for (const [name, cluster] of [
      ['a', a],
      ['b', b]
    ] as const) {
      // prettier-ignore
      const recorded = recordedCluster(name)
      const wanted = slicesByService(recorded.slices)
      const appliedMs = performance.now()
      await cluster.api.applyAll(recorded.all)
      const slices = await settled(
        async () => cluster.api.list('EndpointSlice'),
        (found) => JSON.stringify(slicesByService(found)) === JSON.stringify(wanted)
      )
      t.same(slicesByService(slices), wanted, `cluster ${name}`)
      const pods = await cluster.api.list('Pod')
      const ofPods = new Set(pods.map(({ status }) => status?.podIP))
      t.same(addressesOf(slices, { onlyReady: false }).filter((address) => !ofPods.has(address)), []) // prettier-ignore
      t.comment(`cluster ${name}: ${pods.length} pods in ${Math.round(performance.now() - appliedMs)} ms`)
      const services = await cluster.api.list('Service')
      const addresses = services.map(({ metadata, spec }) => [`${metadata?.namespace}/${metadata?.name}`, spec?.clusterIP]) // prettier-ignore
      const isOwn = new Map(addresses as [string, string | undefined][])
      t.same(
        recorded.services.map(({ metadata }) => isOwn.get(`${metadata.namespace}/${metadata.name}`)),
        recorded.services.map(({ spec }) => (spec as { clusterIP?: string }).clusterIP),
        'and keep their ClusterIPs'
      )
    }
    t.equal((await a.api.list('ServiceImport', { namespace: 'backend' })).length, 2)
    t.equal((await a.api.list('ServiceImport', { apiVersion: 'multicluster.x-k8s.io/v1beta1' })).length, 2)
  })

  await t.test('CoreDNS on the same API servers answers by the objects', async (t) => {
    const [dnsOfA, dnsOfB] = await Promise.all([
      startCoreDns(a, { clustersetZone: 'clusterset.local' }),
      startCoreDns(b)
    ])
    const payment = await dig(dnsOfA.port, 'paymentservice.shop.svc.cluster.local')
    t.same(payment.data, ['172.30.226.21'])
    t.equal((await dig(dnsOfB.port, 'paymentservice.shop.svc.cluster.local')).rcode, 'NXDOMAIN')
    const api = 'api-headless.backend.svc.cluster.local'
    t.same((await dig(dnsOfA.port, api)).data, addressesOf(await slicesOf('backend', 'api-headless')))
    const first = (await podsOf('data', 'postgres', b)).find((pod) => nameOf(pod) === 'postgres-0')
    const postgres = await dig(dnsOfB.port, 'postgres-0.postgres.data.svc.cluster.local')
    t.same(postgres.data, [first?.status?.podIP])
    const ports = await dig(dnsOfB.port, '_http._tcp.frontend.shop.svc.cluster.local', 'SRV')
    t.same(ports.data, ['0 100 80 frontend.shop.svc.cluster.local.'])
    t.same((await dig(dnsOfA.port, 'api.backend.svc.clusterset.local')).data, ['172.30.1.0'])
    await a.api.scale('Deployment', { namespace: 'backend', name: 'api' }, 1)
    const answer = await settled(async () => dig(dnsOfA.port, api), ({ data }) => data.length === 1) // prettier-ignore
    t.same(answer.data, addressesOf(await slicesOf('backend', 'api-headless')), 'also after a change')
    await Promise.all([dnsOfA.part.kill(), dnsOfB.part.kill()])
  })

  await t.test('Deployment: scaled up, down, to zero; rolled out; its pods replaced', async (t) => {
    const cart = { namespace: 'shop', name: 'cartservice' }
    for (const replicas of [5, 2, 0, 3]) {
      await a.api.scale('Deployment', cart, replicas)
      t.equal((await untilReady('shop', 'cartservice', replicas)).length, replicas, `${replicas} replicas`)
    }
    const before = new Set((await podsOf('shop', 'cartservice')).map(nameOf))
    await a.kubectl(['--namespace=shop', 'rollout', 'restart', 'deployment/cartservice'])
    await a.kubectl(['--namespace=shop', 'rollout', 'status', 'deployment/cartservice', '--timeout=60s'])
    const after = await settled(async () => podsOf('shop', 'cartservice'), (pods) => pods.length === 3) // prettier-ignore
    t.same(after.map(nameOf).filter((name) => before.has(name)), [], 'a rollout replaces every pod') // prettier-ignore
    await a.api.delete('Pod', { namespace: 'shop', name: nameOf(after[0]) })
    const replaced = await settled(
      async () => podsOf('shop', 'cartservice'),
      (pods) => pods.length === 3 && !pods.some((pod) => nameOf(pod) === nameOf(after[0]))
    )
    t.equal(replaced.length, 3, 'a deleted pod is replaced')
  })

  await t.test('StatefulSet: restarted pods keep their names', async (t) => {
    const before = new Map((await podsOf('data', 'postgres')).map((pod) => [nameOf(pod), pod.metadata?.uid]))
    await a.kubectl(['--namespace=data', 'rollout', 'restart', 'statefulset/postgres'])
    await a.kubectl(['--namespace=data', 'rollout', 'status', 'statefulset/postgres', '--timeout=60s'])
    const pods = await settled(
      async () => podsOf('data', 'postgres'),
      (found) => found.length === 3 && found.every((pod) => before.get(nameOf(pod)) !== pod.metadata?.uid)
    )
    t.same(pods.map(nameOf).sort(), ['postgres-0', 'postgres-1', 'postgres-2'])
    const addresses = pods.map(({ status }) => status?.podIP ?? '').sort()
    const slices = await settled(
      async () => slicesOf('data', 'postgres'),
      (found) => JSON.stringify(addressesOf(found)) === JSON.stringify(addresses)
    )
    t.same(addressesOf(slices), addresses)
  })

  await t.test('pods: unready, held back from starting, held back from going', async (t) => {
    const [first] = await podsOf('shop', 'adservice')
    const key = { namespace: 'shop', name: nameOf(first) }
    await a.api.setPodReady(key, false)
    t.notOk((await untilReady('shop', 'adservice', 2)).includes(first?.status?.podIP ?? ''), 'an unready pod')
    await a.api.setPodReady(key, true)
    t.equal((await untilReady('shop', 'adservice', 3)).length, 3, 'is ready again')

    const labels = { app: 'slow' }
    const pod = (name: string, annotations: object): KubeObject => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'backend', labels, annotations },
      spec: { nodeName: 'a-node-1', terminationGracePeriodSeconds: 60, containers: [{ name: 'c', image: 'none.invalid/none' }] } // prettier-ignore
    })
    await a.api.create({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'slow', namespace: 'backend' },
      spec: { clusterIP: 'None', selector: labels, ports: [{ name: 'http', port: 80 }] }
    })
    await a.api.create(pod('slow-start', { [annotationOf('start')]: '' }))
    await a.api.create(pod('slow-end', { [annotationOf('end')]: '' }))
    const stateOf = async () => slicesByService(await slicesOf('backend', 'slow'))['backend/slow']?.endpoints ?? []
    const until = async (wanted: string[]) => settled(stateOf, (found) => found.join() === wanted.join())
    const [gone, ready, serving] = ['- a-node-1 gone', '- a-node-1 ready', '- a-node-1 serving'] as const
    t.same(await until([gone, ready]), [gone, ready], 'one starts')
    await a.api.letGo({ namespace: 'backend', name: 'slow-start' }, 'start')
    t.same(await until([ready, ready]), [ready, ready], 'and has started')
    await a.api.delete('Pod', { namespace: 'backend', name: 'slow-end' })
    t.same(await until([ready, serving]), [ready, serving], 'one terminates, and serves on')
    await a.api.letGo({ namespace: 'backend', name: 'slow-end' }, 'end')
    t.same(await until([ready]), [ready], 'and is gone')
  })

  await t.test('deleting: a Service takes its slices along, a namespace everything', async (t) => {
    await a.api.delete('Service', { namespace: 'shop', name: 'redis-cart' })
    const left = await settled(async () => slicesOf('shop', 'redis-cart'), (slices) => slices.length === 0) // prettier-ignore
    t.same(left, [], 'no slice of a Service that is gone')
    await b.api.delete('Namespace', { name: 'shop' })
    const namespace = await settled(async () => b.api.find('Namespace', { name: 'shop' }), (found) => found === null) // prettier-ignore
    t.equal(namespace, null)
    t.same(await b.api.list('Service', { namespace: 'shop' }), [])
    t.same(await b.api.list('EndpointSlice', { namespace: 'shop' }), [])
    t.same((await b.api.list('Service', { namespace: 'backend' })).map(nameOf).sort(), ['api', 'web'], 'others stay')
  })
})
