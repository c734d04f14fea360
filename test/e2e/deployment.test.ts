/**
 * What k8s/ holds, at a real API server: every kustomization is taken as it is, and the service account that comes with
 * it may do what the source needs, and nothing else. Both are asked for with the account's own token.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { test } from 'tap'
import { kustomizations, root } from '../k8s/built.ts'
import { command } from '../support/command.ts'
import { startCluster, type Cluster } from './support/cluster.ts'
import { dig } from './support/dig.ts'
import { settled } from './support/eventually.ts'
import { KubeApi, KubeApiError } from './support/kube-api.ts'
import { Part, whyNoClusters } from './support/part.ts'
import { freePort } from '../support/free-port.ts'

const skip = whyNoClusters() ?? false

/** Namespaces that a dry run does not make, so that what lies in them could not be tried. */
const namespaces = ['peerdns', 'peerdns-node', 'shop']
const mcs = 'multicluster.x-k8s.io'

/** In a mount namespace of its own: the token and the configuration where a pod has them, then peerdns as its user. */
const mountAndServe = `
unset NODE_OPTIONS
mount -t tmpfs none /run
mkdir -p /run/secrets/kubernetes.io/serviceaccount /run/peerdns
mount --bind "$1" /run/secrets/kubernetes.io/serviceaccount
mount --bind "$2" /run/peerdns
exec setpriv --reuid 65532 --regid 65532 --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all \\
  "$3" "$4" serve --config /run/peerdns/config.yaml`

/** The image's entrypoint, with the source in the place of what is built from it. */
function entrypoint(): string[] {
  const [, written] = /^ENTRYPOINT (.*)$/m.exec(readFileSync(join(root, 'Dockerfile'), 'utf8'))!
  const [, ...options] = (JSON.parse(written!) as string[]).slice(0, -1)
  return [process.execPath, ...options, join(root, 'src/cli/main.ts')]
}

/** In a mount namespace of its own: a ConfigMap's files where the pod mounts them, then a command as the pod's user. */
const mountAndRun = `
unset NODE_OPTIONS
mount -t tmpfs none /etc
mkdir -p "$2"
mount --bind -o ro "$1" "$2"
user=$3
shift 3
exec setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all "$@"`

/** The status that the API server gives for a path; 200 where it is allowed. */
async function statusOf(api: KubeApi, path: string): Promise<number> {
  try {
    await api.text(path)
    return 200
  } catch (error) {
    if (error instanceof KubeApiError) return error.status
    throw error
  }
}

async function statusOfPost(api: KubeApi, path: string, body: object): Promise<number> {
  try {
    await api.post(path, body)
    return 201
  } catch (error) {
    if (error instanceof KubeApiError) return error.status
    throw error
  }
}

/** The kinds and names that kubectl says it would make or change. */
const wouldApply = (output: string): string[] =>
  output
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => /^(\S+) (created|configured|unchanged|serverside-applied) \(server dry run\)$/.exec(line)?.[1] ?? line) // prettier-ignore

async function runToEnd(program: string, args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    execFile(program, [...args], { timeout: 60_000 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : 255, out, err })
    })
  })
}

const apiOf = (cluster: Cluster, token: string): KubeApi =>
  new KubeApi({ baseUrl: cluster.baseUrl, caFile: cluster.ca.caFile, token })

test('deployment', { skip, timeout: 240_000 }, async (t) => {
  const cluster = await startCluster({ name: 'deployment', serviceImports: ['v1beta1', 'v1alpha1'] })
  t.teardown(async () => cluster.stop())
  for (const name of namespaces) {
    await cluster.api.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  }

  await t.test('every kustomization: a server-side dry run takes all of it without a warning', async (t) => {
    for (const folder of kustomizations()) {
      const output = await cluster.kubectl(['apply', '--dry-run=server', '--warnings-as-errors', '-k', join(root, folder)]) // prettier-ignore
      const applied = wouldApply(output)
      t.same(applied.filter((line) => line.includes(' ')), [], folder) // prettier-ignore
      t.ok(applied.length > 2, `${folder}: ${applied.length} objects`)
    }
  })

  await t.test('base: is applied, is applied again without a change, and its pods come up', async (t) => {
    const folder = join(root, 'k8s/base')
    await cluster.kubectl(['apply', '-k', folder])
    const again = (await cluster.kubectl(['apply', '-k', folder])).split('\n').filter((line) => line !== '')
    // kubectl always sends a budget's selector whole, and calls that a change.
    t.same(again.filter((line) => !/ unchanged$|^poddisruptionbudget/.test(line)), []) // prettier-ignore
    const service = await cluster.api.get('Service', { namespace: 'peerdns', name: 'peerdns' })
    t.equal(service.spec?.clusterIP, '10.96.0.54')
    // No scheduler runs here, so the pods stay where the controllers leave them: made, with the restricted profile
    // kept.
    const pods = await settled(
      async () => cluster.api.list('Pod', { namespace: 'peerdns' }),
      (found) => found.length === 2
    )
    t.equal(pods.length, 2)
    for (const { spec } of pods) t.equal(spec?.serviceAccountName, 'peerdns')
  })

  await t.test('a namespace that wants `restricted` refuses what base would be with one right more', async (t) => {
    const deployment = await cluster.api.get('Deployment', { namespace: 'peerdns', name: 'peerdns' })
    const { metadata, spec } = deployment.spec!.template
    const [container] = spec!.containers
    const { topologySpreadConstraints: _, ...rest } = spec!
    const copy = (securityContext: object) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'copy', namespace: 'peerdns', labels: metadata!.labels },
      spec: { ...rest, containers: [Object.assign({}, container, { securityContext })] }
    })
    const path = '/api/v1/namespaces/peerdns/pods?dryRun=All'
    const own = container!.securityContext!
    t.equal(await statusOfPost(cluster.api, path, copy(own)), 201)
    const more = Object.assign({}, own, { capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] } })
    t.equal(await statusOfPost(cluster.api, path, copy(more)), 403)
  })

  await t.test('rights of the service account', async (t) => {
    for (const [namespace, name] of [['peerdns', 'peerdns']] as const) {
      const { token } = await cluster.serviceAccount(namespace, name)
      const api = apiOf(cluster, token)
      t.teardown(() => api.close())
      const rows: [path: string, status: number][] = [
        ['/api/v1/services', 200],
        ['/api/v1/namespaces', 200],
        ['/apis/discovery.k8s.io/v1/endpointslices', 200],
        [`/apis/${mcs}`, 200],
        [`/apis/${mcs}/v1beta1`, 200],
        [`/apis/${mcs}/v1beta1/serviceimports`, 200],
        [`/apis/${mcs}/v1alpha1/serviceimports`, 200],
        ['/api/v1/secrets', 403],
        [`/api/v1/namespaces/${namespace}/secrets`, 403],
        ['/api/v1/configmaps', 403],
        [`/api/v1/namespaces/${namespace}/configmaps`, 403],
        [`/api/v1/namespaces/${namespace}/configmaps?fieldSelector=metadata.name%3Dpeerdns-overrides`, 200],
        [`/api/v1/namespaces/${namespace}/configmaps?fieldSelector=metadata.name%3Dkube-root-ca.crt`, 403],
        ['/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dpeerdns-overrides', 403],
        ['/api/v1/pods', 403],
        ['/api/v1/nodes', 403],
        ['/api/v1/serviceaccounts', 403],
        ['/api/v1/events', 403],
        ['/apis/apps/v1/deployments', 403],
        ['/apis/rbac.authorization.k8s.io/v1/clusterroles', 403],
        ['/api/v1/namespaces/default/services/kubernetes', 403]
      ]
      for (const [path, status] of rows) t.equal(await statusOf(api, path), status, `${name} GET ${path}`)
      for (const path of rows.filter(([path, status]) => status === 200 && /\/[a-z]+s$/.test(path)).map(([it]) => it)) {
        t.equal(await statusOf(api, `${path}?watch=1&timeoutSeconds=1`), 200, `${name} watch ${path}`)
      }
      const object = (kind: string) => ({ apiVersion: 'v1', kind, metadata: { name: 'x' }, spec: { ports: [{ port: 1 }] } }) // prettier-ignore
      for (const [path, kind] of [
        ['/api/v1/namespaces/default/services', 'Service'],
        ['/api/v1/namespaces', 'Namespace'],
        ['/api/v1/namespaces/default/configmaps', 'ConfigMap'],
        ['/api/v1/namespaces/default/events', 'Event'],
        [`/api/v1/namespaces/${namespace}/configmaps`, 'ConfigMap'],
        [`/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`, 'TokenRequest']
      ] as const) {
        t.equal(await statusOfPost(api, path, object(kind)), 403, `${name} POST ${path}`)
      }
      const key = { namespace: 'default', name: 'kubernetes' }
      const refused = async (change: Promise<unknown>) => change.then(() => 200, (error: KubeApiError) => error.status) // prettier-ignore
      t.equal(await refused(api.patch('Service', key, {})), 403, `${name} PATCH`)
      t.equal(await refused(api.delete('Service', key)), 403, `${name} DELETE`)
    }
  })

  const isRoot = process.getuid?.() === 0
  const asPod = { skip: isRoot ? false : 'only root can mount what a pod finds mounted' }
  /** base's configuration, as its pod finds it, with the loopback instead of a pod's own network. */
  async function startReplica(name: string) {
    const { folder } = await cluster.serviceAccount('peerdns', 'peerdns')
    const [dnsPort, observePort, adminPort] = [await freePort(), await freePort(), await freePort()]
    const config = readFileSync(join(root, 'k8s/base/config.yaml'), 'utf8')
      .replace(/^listen: .*$/m, `listen: ["127.0.0.1:${dnsPort}"]`)
      .replace(/^observe: .*$/m, `observe: "127.0.0.1:${observePort}"`)
      .replace(/^admin: .*$/m, `admin: "127.0.0.1:${adminPort}"`)
    const configFolder = join(cluster.folder, `etc-${name}`)
    mkdirSync(configFolder)
    writeFileSync(join(configFolder, 'config.yaml'), config)
    const part = new Part({
      name,
      folder: cluster.folder,
      command: 'unshare',
      args: ['--mount', 'sh', '-euc', mountAndServe, 'sh', folder, configFolder, process.execPath, join(root, 'src/cli/main.ts')], // prettier-ignore
      env: { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(cluster.port) },
      isReady: async () => (await fetch(`http://127.0.0.1:${observePort}/readyz`)).ok
    })
    cluster.adopt(part)
    await part.start()
    const env = { PEERDNS_ADMIN: `http://127.0.0.1:${adminPort}` }
    return { part, dnsPort, peerdns: async (line: string) => command(line, env) }
  }

  await t.test(
    "base's configuration, as its pod finds it: reads the cluster and sees what comes later",
    asPod,
    async (t) => {
      const { part, dnsPort } = await startReplica('peerdns-in-pod')
      const ask = async (name: string) => dig(dnsPort, `${name}.svc.cluster.local`)
      t.same((await ask('kubernetes.default')).data, ['10.96.0.1'])
      t.same((await ask('peerdns.peerdns')).data, ['10.96.0.54'])
      const later = { namespace: 'shop', name: 'later' }
      await cluster.api.apply({ apiVersion: 'v1', kind: 'Service', metadata: later, spec: { clusterIP: '10.96.0.77', ports: [{ port: 80 }] } }) // prettier-ignore
      const answer = await settled(async () => ask('later.shop'), ({ data }) => data.length > 0) // prettier-ignore
      t.same(answer.data, ['10.96.0.77'])
      await part.kill('SIGTERM')
      t.match(part.logTail(), /"msg":"stopped"/)
      t.notMatch(
        readFileSync(part.logFile, 'utf8'),
        /forbidden|"level":"(error|fatal)"/i,
        'and nothing was refused to it'
      )
    }
  )

  await t.test(
    'base: a wrong configuration stops the rollout in the init container, a right one does not',
    asPod,
    async (t) => {
      const folder = join(root, '.cache/e2e/deployment-check')
      mkdirSync(folder, { recursive: true })
      t.teardown(() => rmSync(folder, { recursive: true, force: true }))
      // As someone who uses base as it is would put their own file in the place of its.
      const kustomization = {
        namespace: 'peerdns',
        resources: [relative(folder, join(root, 'k8s/base'))],
        configMapGenerator: [{ name: 'peerdns-config', behavior: 'replace', files: ['config.yaml'] }]
      }
      writeFileSync(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization))
      const good = readFileSync(join(root, 'k8s/base/config.yaml'), 'utf8')
      const lineOfPolicies = good.split('\n').indexOf('policies:') + 1
      const rows: [text: string, expected: object][] = [
      [good.replace(/^policies:/m, 'policys:'), { code: 1, out: '', err: new RegExp(`^/etc/peerdns/config\\.yaml:${lineOfPolicies}:1: [^\n]*did you mean \`policies\``) }],
      [`# edited\n${good}`, { code: 0, out: /^ok: cluster cluster-b; /, err: '' }]
    ] // prettier-ignore
      for (const [text, expected] of rows) {
        writeFileSync(join(folder, 'config.yaml'), text)
        await cluster.kubectl(['apply', '-k', folder])
        const { spec } = (await cluster.api.get('Deployment', { namespace: 'peerdns', name: 'peerdns' })).spec!.template
        const { name } = spec!.volumes!.find((volume) => volume.name === 'config')!.configMap!
        const pods = await settled(
          async () => cluster.api.list('Pod', { namespace: 'peerdns' }),
          (found) => found.some((pod) => pod.spec!.volumes!.some(({ configMap }) => configMap?.name === name))
        )
        // The pod that the controller made for this revision; nobody runs its containers here but we.
        const pod = pods.find(({ spec: it }) => it!.volumes!.some(({ configMap }) => configMap?.name === name))!.spec!
        const [check] = pod.initContainers!
        t.equal(check!.name, 'check')
        const map = await cluster.api.get('ConfigMap', { namespace: 'peerdns', name: name! })
        const mounted = join(cluster.folder, `etc-${name}`)
        mkdirSync(mounted)
        for (const [file, content] of Object.entries(map.data!)) writeFileSync(join(mounted, file), content)
        const mountPath = check!.volumeMounts!.find((mount) => mount.name === 'config')!.mountPath
        const args = [mounted, mountPath, String(pod.securityContext!.runAsUser), ...entrypoint(), ...check!.args!]
        const done = await runToEnd('unshare', ['--mount', 'sh', '-euc', mountAndRun, 'sh', ...args])
        t.match(done, expected, `${check!.args!.join(' ')} with ${name}`)
      }
    }
  )

  await t.test('an operator tells one replica: it holds for all of them, and after restarts', asPod, async (t) => {
    const [one, other] = await Promise.all([startReplica('replica-one'), startReplica('replica-other')])
    const drained = async ({ peerdns }: typeof one) => / drained for /.test((await peerdns('peers list')).out)
    const done = await one.peerdns('peers drain cluster-a --for 10m --reason upgrade')
    t.match(done, { code: 0, err: '', out: /^peer cluster-a is drained for .*; kept in the ConfigMap peerdns-overrides\n/ }) // prettier-ignore
    const startedMs = performance.now()
    t.equal(await settled(async () => drained(other), (is) => is), true, 'the other replica') // prettier-ignore
    t.comment(`the other replica knew after ${Math.round(performance.now() - startedMs)} ms`)
    const map = await cluster.api.get('ConfigMap', { namespace: 'peerdns', name: 'peerdns-overrides' })
    t.match(JSON.parse(map.data?.['overrides.json'] ?? ''), { drainedPeers: { 'cluster-a': { reason: 'upgrade' } } })
    await cluster.kubectl(['apply', '-k', join(root, 'k8s/base')])
    await other.part.restart()
    t.equal(await drained(other), true, 'after a restart, and after base was applied again')
    t.match(await other.peerdns('policies disable --all --for 30m'), { code: 0 })
    const isDisabled = async () => / disabled for /.test((await one.peerdns('policies list')).out)
    t.equal(await settled(isDisabled, (is) => is), true, 'the other way round')
    t.match(await one.peerdns('policies enable --all'), { code: 0 })
    t.match(await other.peerdns('peers undrain cluster-a'), { code: 0 })
    t.equal(await settled(async () => drained(one), (is) => !is), false) // prettier-ignore
    t.match((await one.peerdns('events --since 1h')).out, /drain +cluster-a +[^]*disable +- +[^]*enable +- +[^]*undrain +cluster-a/) // prettier-ignore
    for (const { part } of [one, other]) {
      await part.kill('SIGTERM')
      t.notMatch(readFileSync(part.logFile, 'utf8'), /forbidden|"level":"(error|fatal)"/i, 'nothing was refused')
    }
  })

  await t.test('verified pods: the component adds that one right', async (t) => {
    // Kustomize takes no absolute paths, so the kustomization lies in this clone.
    const folder = join(root, '.cache/e2e/deployment')
    mkdirSync(folder, { recursive: true })
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const near = (path: string): string => relative(folder, join(root, path))
    const kustomization = { resources: [near('k8s/base')], components: [near('k8s/components/verified-pods')] }
    writeFileSync(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization))
    await cluster.kubectl(['apply', '-k', folder])
    const { token } = await cluster.serviceAccount('peerdns', 'peerdns')
    const api = apiOf(cluster, token)
    t.teardown(() => api.close())
    t.equal(await settled(async () => statusOf(api, '/api/v1/pods'), (status) => status === 200), 200) // prettier-ignore
    t.equal(await statusOf(api, '/api/v1/pods?watch=1&timeoutSeconds=1'), 200)
    t.equal(await statusOf(api, '/api/v1/namespaces/peerdns/secrets'), 403)
    t.equal(await statusOf(api, `/api/v1/namespaces/peerdns/pods/x/log`), 403)
  })

  await t.test('leases of source clusters: the component adds that one right, in one namespace', async (t) => {
    const folder = join(root, '.cache/e2e/deployment-leases')
    mkdirSync(folder, { recursive: true })
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const near = (path: string): string => relative(folder, join(root, path))
    const kustomization = { resources: [near('k8s/base')], components: [near('k8s/components/source-cluster-leases')] }
    writeFileSync(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization))
    await cluster.kubectl(['apply', '-k', folder])
    const { token } = await cluster.serviceAccount('peerdns', 'peerdns')
    const api = apiOf(cluster, token)
    t.teardown(() => api.close())
    const leases = '/apis/coordination.k8s.io/v1/namespaces/peerdns/leases'
    t.equal(await settled(async () => statusOf(api, leases), (status) => status === 200), 200) // prettier-ignore
    t.equal(await statusOf(api, `${leases}?watch=1&timeoutSeconds=1`), 200)
    t.equal(await statusOf(api, '/apis/coordination.k8s.io/v1/leases'), 403)
    t.equal(await statusOf(api, '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'), 403)
  })

  await t.test('addresses that are checked: the component adds the right to its one ConfigMap', async (t) => {
    const folder = join(root, '.cache/e2e/deployment-probes')
    mkdirSync(folder, { recursive: true })
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const near = (path: string): string => relative(folder, join(root, path))
    const kustomization = { resources: [near('k8s/base')], components: [near('k8s/components/endpoint-probes')] }
    writeFileSync(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization))
    await cluster.kubectl(['apply', '-k', folder])
    const { token } = await cluster.serviceAccount('peerdns', 'peerdns')
    const api = apiOf(cluster, token)
    t.teardown(() => api.close())
    const maps = '/api/v1/namespaces/peerdns/configmaps'
    const own = `${maps}?fieldSelector=metadata.name%3Dpeerdns-probes`
    t.equal(await settled(async () => statusOf(api, own), (status) => status === 200), 200) // prettier-ignore
    t.equal(await statusOf(api, `${own}&watch=1&timeoutSeconds=1`), 200)
    t.equal(await statusOf(api, maps), 403)
    const patched = async (name: string) => api.patch('ConfigMap', { namespace: 'peerdns', name }, { data: { 'probes.json': '' } }).then(() => 200, (error: KubeApiError) => error.status) // prettier-ignore
    t.equal(await patched('peerdns-probes'), 200)
    t.equal(await patched('kube-root-ca.crt'), 403)
    const policy = await cluster.kubectl(['get', '-n', 'peerdns', 'networkpolicy', 'peerdns-endpoint-probes', '-o', 'jsonpath={.spec.egress}']) // prettier-ignore
    t.same(JSON.parse(policy), [{ ports: [{ protocol: 'TCP' }] }], 'the API server reads it as it is meant')
  })
})
