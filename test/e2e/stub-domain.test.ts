/**
 * The default way in: a real CoreDNS of a real cluster with the Corefile of `k8s/overlays/coredns-stub`, which sends
 * the peered suffix to peerdns. Only addresses and ports are exchanged in it, since all of this runs on one loopback.
 */
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { V1ConfigMap } from '@kubernetes/client-node'
import { test } from 'tap'
import { build, findKubectl, ofKind, root, type K8sObject } from '../k8s/built.ts'
import { startServerProcess } from '../support/server-process.ts'
import { startCluster } from './support/cluster.ts'
import { dig } from './support/dig.ts'
import { settled } from './support/eventually.ts'
import { binary, Part, whyNoClusters } from './support/part.ts'
import { freePort } from '../support/free-port.ts'

const skip = whyNoClusters() ?? false

/** What CoreDNS's kubernetes plugin lists and watches; in a cluster it has these rights already. */
const coreDnsRules = [
  { apiGroups: [''], resources: ['services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] }
]

/** All queries that a peerdns has been asked. */
async function queriesOf(adminUrl: string): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  const samples = [...text.matchAll(/^peerdns_queries_total(?:\{[^}]*\})? (\d+)/gm)]
  if (samples.length === 0) throw new Error('no peerdns_queries_total')
  return samples.reduce((sum, [, count]) => sum + Number(count), 0)
}

/** The ConfigMap's text under this key, as kustomize gives it. */
async function stubText(overlay: string, map: string, key: string): Promise<string> {
  const built = await build(findKubectl() ?? binary('kubectl'), `k8s/overlays/${overlay}`)
  const found = ofKind<K8sObject & V1ConfigMap>(built, 'ConfigMap').find(({ metadata }) => metadata.name === map)
  return found?.data?.[key] ?? ''
}

/** Exchanges what has to be there exactly once. */
function exchanged(text: string, pairs: readonly (readonly [from: RegExp, to: string])[]): string {
  return pairs.reduce((done, [from, to]) => {
    const count = [...done.matchAll(new RegExp(from, 'gm'))].length
    if (count !== 1) throw new Error(`${String(from)} is there ${count} times:\n${done}`)
    return done.replace(new RegExp(from, 'm'), to)
  }, text)
}

test('stub domain', { skip, timeout: 240_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'peerdns-stub-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  // Cluster A is played by its manifests, cluster B by a real one.
  const objects = join(folder, 'backend.yaml')
  copyFileSync(join(root, 'config/cluster-a/backend.yaml'), objects)
  const a = await startServerProcess(
    `cluster: {name: cluster-a, importsInZone: true, source: {manifests: [${objects}]}}\n` +
      'listen: ["{listen}"]\nadmin: "{admin}"\nforward: []\n'
  )
  t.teardown(async () => a.stop())
  const b = await startCluster({ name: 'b' })
  t.teardown(async () => b.stop())
  for (const [namespace, name, clusterIP] of [
    ['backend', 'api', '10.96.1.20'],
    ['shop', 'cart', '10.96.1.21']
  ] as const) {
    await b.api.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
    await b.api.apply({ apiVersion: 'v1', kind: 'Service', metadata: { namespace, name }, spec: { clusterIP, ports: [{ port: 80 }] } }) // prettier-ignore
  }
  // The account has the rights that come with the overlay.
  await b.kubectl(['apply', '-k', join(root, 'k8s/overlays/coredns-stub')])
  const own = b.writeKubeconfig('peerdns', { token: (await b.serviceAccount('peerdns', 'peerdns')).token })
  const peerdns = await startServerProcess(
    `cluster: {name: cluster-b, source: {kubernetes: {kubeconfig: ${own}}}}\n` +
      `listen: ["{listen}"]\nadmin: "{admin}"\nforward: []\npeers: {cluster-a: {servers: ["127.0.0.1:${a.port}"]}}\n` +
      'policies: [{name: backend-from-a, dnsName: backend.svc.cluster.local, targets: [cluster-a, local]}]\n'
  )
  let isStopped = false
  const stopPeerdns = async () => (isStopped ? 0 : ((isStopped = true), peerdns.stop()))
  t.teardown(stopPeerdns)

  const corefile = await stubText('coredns-stub', 'coredns', 'Corefile')
  const custom = await stubText('coredns-custom', 'coredns-custom', 'peerdns.server')
  t.ok(corefile.includes(custom.trim()), 'both forms have the same server block')
  const [port, readyPort] = [await freePort(), await freePort()]
  const file = join(folder, 'Corefile')
  const kubeconfig = b.writeKubeconfig('coredns', { token: (await b.serviceAccount('kube-system', 'coredns', coreDnsRules)).token }) // prettier-ignore
  writeFileSync(
    file,
    exchanged(corefile, [
      [/^backend\.svc\.cluster\.local:53 \{/, `backend.svc.cluster.local:${port} {\n    bind 127.0.0.1`],
      [/^\.:53 \{/, `.:${port} {\n    bind 127.0.0.1`],
      [/forward \. "10\.96\.0\.54"/, `forward . "127.0.0.1:${peerdns.port}"`],
      [/^ {4}ready$/, `    ready 127.0.0.1:${readyPort}`],
      [/^ {4}health \{[^}]*\}/, ''],
      [/^ {4}prometheus :9153/, ''],
      [/^ {4}loop$/, ''],
      [/^ {7}pods insecure/, `       pods insecure\n       kubeconfig ${kubeconfig}\n       startup_timeout 30s`]
    ])
  )
  const coreDns = new Part({
    name: 'coredns-stub',
    folder: b.folder,
    command: binary('coredns'),
    args: [`-conf=${file}`],
    // It says "ready" a moment before its sockets are open.
    isReady: async () =>
      (await fetch(`http://127.0.0.1:${readyPort}/ready`)).ok &&
      (await dig(port, 'cluster.local', 'SOA')).rcode === 'NOERROR'
  })
  b.adopt(coreDns)
  await coreDns.start()
  const ask = async (name: string, type = 'A', options: readonly string[] = []) =>
    dig(port, `${name}.cluster.local`, type, options)

  await t.test('the peered suffix is answered by peerdns, the own zone by CoreDNS', async (t) => {
    const rows: [name: string, type: string, rcode: string, data: string[]][] = [
      ['api.backend.svc', 'A', 'NOERROR', ['172.30.1.0']],
      ['web.backend.svc', 'A', 'NOERROR', ['172.30.2.0']],
      ['api-headless.backend.svc', 'A', 'NOERROR', ['10.0.1.20', '10.0.1.21', '10.0.1.22']],
      ['_http._tcp.api.backend.svc', 'SRV', 'NOERROR', ['0 100 8080 api.backend.svc.cluster.local.']],
      ['api.backend.svc', 'AAAA', 'NOERROR', []],
      ['none.backend.svc', 'A', 'NXDOMAIN', []]
    ]
    for (const [name, type, rcode, data] of rows) {
      const before = await queriesOf(peerdns.adminUrl)
      t.match(await ask(name, type), { rcode, data }, `${name} ${type}`)
      // CoreDNS asks once more where the first answer takes two seconds.
      t.ok((await queriesOf(peerdns.adminUrl)) - before >= 1, `${name} ${type} came to peerdns`)
    }
    t.same((await ask('api.backend.svc', 'A', ['+tcp'])).data, ['172.30.1.0'], 'by TCP too')
    const before = await queriesOf(peerdns.adminUrl)
    t.same((await ask('cart.shop.svc')).data, ['10.96.1.21'])
    t.same((await ask('kubernetes.default.svc')).data, ['10.96.0.1'])
    t.equal((await ask('none.shop.svc')).rcode, 'NXDOMAIN')
    t.equal((await ask('api.backend.svc.cluster.local.shop.svc')).rcode, 'NXDOMAIN', 'what a search list makes of it')
    t.equal(await queriesOf(peerdns.adminUrl), before, 'peerdns was asked none of these')
  })

  await t.test('CoreDNS keeps nothing of the peered suffix', async (t) => {
    const before = await queriesOf(peerdns.adminUrl)
    for (let index = 0; index < 20; index++) await ask('api.backend.svc')
    t.ok((await queriesOf(peerdns.adminUrl)) - before >= 20, 'each question came to peerdns')
  })

  await t.test('A away: B answers by its policy; peerdns away: only the peered suffix fails', async (t) => {
    await a.stop()
    const answer = await settled(async () => ask('api.backend.svc'), ({ data }) => data[0] === '10.96.1.20') // prettier-ignore
    t.same(answer.data, ['10.96.1.20'])
    await stopPeerdns()
    t.equal((await ask('api.backend.svc', 'A', ['+time=8'])).rcode, 'SERVFAIL')
    t.same((await ask('cart.shop.svc')).data, ['10.96.1.21'])
  })
})
