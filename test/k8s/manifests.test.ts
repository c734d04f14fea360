/**
 * k8s/ as kubectl builds it: least rights, nothing that runs as root without need, and names, ports, addresses and
 * configurations that agree with one another. That an API server takes it all is shown by `npm run e2e`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type {
  V1ClusterRole,
  V1ClusterRoleBinding,
  V1ConfigMap,
  V1Container,
  V1DaemonSet,
  V1Deployment,
  V1NetworkPolicy,
  V1Role,
  V1RoleBinding,
  V1PodDisruptionBudget,
  V1Service
} from '@kubernetes/client-node'
import { test, type Test } from 'tap'
import { drainTimeoutMs } from '../../src/base/limits.ts'
import { takeoverWaitMs } from '../../src/base/socket-limits.ts'
import { run } from '../../src/cli/run.ts'
import { LeasePattern } from '../../src/cluster/lease-objects.ts'
import * as discovery from '../../src/cluster/sources/kubernetes/discovery.ts'
import type { Config } from '../../src/config/config.ts'
import { loadConfig } from '../../src/config/load.ts'
import { sharedChecksName } from '../../src/main/shared-checks.ts'
import { nameToText } from '../../src/wire/name.ts'
import {
  build,
  containersOf,
  findKubectl,
  kustomizations,
  mountedFiles,
  ofKind,
  podOf,
  root,
  servingContainer,
  templateOf,
  workloads,
  type Built,
  type K8sObject,
  type Workload
} from './built.ts'

const kubectl = findKubectl()
const skip = kubectl === null ? 'kubectl is not here to build the kustomizations' : false
const builds: readonly Built[] = kubectl === null ? [] : await Promise.all(kustomizations().map(async (it) => build(kubectl, it))) // prettier-ignore
const builtOf = (folder: string): Built => builds.find((built) => built.folder === folder)!
const version = (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version
const keyOf = ({ kind, metadata: { namespace = '', name } }: K8sObject): string => `${kind} ${namespace}/${name}`

/** Each workload of ours with its place, for messages. */
const everyWorkload = builds.flatMap((built) =>
  workloads(built).map((workload) => ({ built, workload, where: `${built.folder} ${keyOf(workload)}` }))
)

/** The configuration that the pods of this workload serve, from files as they would be mounted. */
function mountedConfig(t: Test, built: Built, workload: Workload): { config: Config; file: string } {
  const pod = podOf(workload)
  const container = servingContainer(pod)
  const folder = t.testdir({})
  for (const [name, text] of mountedFiles(built, pod, container, '/etc/peerdns')) writeFileSync(join(folder, name), text) // prettier-ignore
  const asked = container.args?.at(-1) ?? ''
  const file = join(folder, relative('/etc/peerdns', asked))
  return { config: loadConfig(file, { home: folder, localAddresses: [] }), file }
}

const portNumber = (container: V1Container, port: unknown): unknown =>
  typeof port === 'number' ? port : container.ports?.find(({ name }) => name === port)?.containerPort

test('kustomizations: all that are meant to be there', { skip }, async (t) => {
  t.same(
    builds.map(({ folder }) => folder),
    [
      'k8s/base',
      'k8s/examples/two-clusters/cluster-a',
      'k8s/examples/two-clusters/cluster-b',
      'k8s/overlays/coredns-custom',
      'k8s/overlays/coredns-stub',
      'k8s/overlays/daemonset',
      'k8s/overlays/kube-dns-stub',
      'k8s/overlays/sidecar'
    ]
  )
  for (const { folder, objects } of builds) {
    const keys = objects.map(keyOf)
    t.same(keys.filter((key, index) => keys.indexOf(key) !== index), [], `${folder}: no object twice`) // prettier-ignore
    t.same(keys.filter((key) => key.startsWith('Secret ')), [], `${folder}: no Secret`) // prettier-ignore
    t.notMatch(JSON.stringify(objects), /set by kustomize|NAMESPACE/, `${folder}: nothing left to fill in`)
  }
})

test('pods: no more power than they need', { skip }, async (t) => {
  /** Who is root, and what for. Everybody else is not. */
  const asRoot: Record<string, string[]> = {
    'k8s/overlays/daemonset peerdns': ['NET_BIND_SERVICE'],
    'k8s/overlays/daemonset node-address': ['NET_ADMIN']
  }
  for (const { built, workload, where } of everyWorkload) {
    const pod = podOf(workload)
    const isNode = workload.kind === 'DaemonSet'
    t.equal(pod.hostNetwork === true, isNode, `${where}: the host's network only on nodes`)
    t.notOk(pod.hostPID === true || pod.hostIPC === true, `${where}: nothing else of the host`)
    const kinds = (pod.volumes ?? []).flatMap((volume) => Object.keys(volume).filter((key) => key !== 'name'))
    t.same(new Set(kinds), new Set(['configMap']), `${where}: volumes`)
    for (const container of containersOf(pod)) {
      const { image, securityContext: own = {}, resources, env = [], envFrom = [] } = container
      const name = `${where} ${container.name}`
      const caps = asRoot[`${built.folder} ${container.name}`]
      const user = own.runAsUser ?? pod.securityContext?.runAsUser ?? 0
      t.equal(user === 0, caps !== undefined, `${name}: uid ${user}`)
      if (caps === undefined) t.equal(own.runAsNonRoot ?? pod.securityContext?.runAsNonRoot, true, `${name}: non-root`)
      t.match(own, { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } }, name) // prettier-ignore
      t.same(own.capabilities?.add ?? [], caps ?? [], `${name}: capabilities`)
      t.not(own.privileged, true, name)
      const seccomp = own.seccompProfile ?? pod.securityContext?.seccompProfile
      t.equal(seccomp?.type, 'RuntimeDefault', `${name}: seccomp`)
      t.ok(resources?.requests?.['cpu'] && resources.requests['memory'] && resources.limits?.['memory'], `${name}: resources`) // prettier-ignore
      t.match(image, /:\d+\.\d+\.\d+$/, `${name}: a pinned image`)
      if (image?.startsWith('peerdns:') === true) t.equal(image, `peerdns:${version}`, name)
      t.same([...env, ...envFrom], [], `${name}: nothing comes by the environment`)
    }
    const isOurs = workload.metadata.name === 'peerdns'
    t.equal(pod.automountServiceAccountToken, isOurs, `${where}: a token only where the API is asked`)
  }
})

test('rights: what the source lists and watches, and nothing else', { skip }, async (t) => {
  const { services, namespaces, endpointSlices, serviceImports, pods } = discovery
  const wanted = [services, namespaces, endpointSlices, serviceImports].map(({ name }) => name).sort()
  const withComponent = async (name: string): Promise<Built> => {
    const folder = t.testdir({ [name]: {} }) + `/${name}`
    const kustomization = {
      resources: [relative(folder, join(root, 'k8s/base'))],
      components: [relative(folder, join(root, 'k8s/components', name))]
    }
    writeFileSync(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization))
    return build(kubectl!, relative(root, folder))
  }
  const verified = await withComponent('verified-pods')
  for (const built of [...builds, verified]) {
    const roles = ofKind<K8sObject & V1ClusterRole>(built, 'ClusterRole')
    const rules = roles.flatMap((role) => role.rules ?? [])
    const hasSource = built.folder !== 'k8s/overlays/sidecar' && built.folder !== 'k8s/overlays/daemonset'
    const all = built === verified ? [...wanted, pods.name].sort() : wanted
    t.same(rules.flatMap(({ resources }) => resources ?? []).sort(), hasSource ? all : [], built.folder)
    for (const rule of rules) {
      t.strictSame(rule.verbs, ['list', 'watch'], built.folder)
      t.same(Object.keys(rule).sort(), ['apiGroups', 'resources', 'verbs'])
    }
    const [role, ...others] = ofKind<K8sObject & V1Role>(built, 'Role')
    t.same(others, [], built.folder)
    const overrides = { apiGroups: [''], resources: ['configmaps'], resourceNames: ['peerdns-overrides'], verbs: ['list', 'watch', 'patch'] } // prettier-ignore
    t.same(role?.rules ?? [], hasSource ? [overrides] : [], `${built.folder}: what an operator set`)
    const maps = ofKind<K8sObject & V1ConfigMap>(built, 'ConfigMap').filter(({ metadata }) => metadata.name === 'peerdns-overrides') // prettier-ignore
    const own = [role?.metadata.namespace].filter((namespace) => namespace !== undefined)
    t.same(maps.map(({ metadata }) => metadata.namespace), own, 'stands where the right to it is') // prettier-ignore
    t.ok(maps.every((map) => map.data === undefined), 'and is empty, so that to apply it again leaves what is in it') // prettier-ignore
    const accounts = ofKind(built, 'ServiceAccount').map(keyOf)
    const bindings = [
      ...ofKind<K8sObject & V1ClusterRoleBinding>(built, 'ClusterRoleBinding'),
      ...ofKind<K8sObject & V1RoleBinding>(built, 'RoleBinding')
    ]
    const names = [...roles, ...(role === undefined ? [] : [role])].map(({ metadata }) => metadata.name)
    t.same(bindings.map(({ roleRef }) => roleRef.name).sort(), names.sort())
    for (const { subjects = [] } of bindings) {
      const named = subjects.map(({ kind, name, namespace = '' }) => `${kind} ${namespace}/${name}`)
      t.same(named, accounts, `${built.folder}: bound to the account that the pods run as`)
    }
    for (const workload of workloads(built)) {
      const account = podOf(workload).serviceAccountName
      if (hasSource) t.same(accounts, [`ServiceAccount ${workload.metadata.namespace}/${account}`], built.folder)
      else t.equal(account, undefined)
    }
  }

  const leases = await withComponent('source-cluster-leases')
  const [role, ...others] = ofKind<K8sObject & V1Role>(leases, 'Role').filter(({ metadata }) => /lease/.test(metadata.name)) // prettier-ignore
  const where = discovery.leasesOf(new LeasePattern('peerdns/{cluster}-alive'))
  t.same([role?.metadata.namespace, others], ['peerdns', []], 'Leases of one namespace')
  t.same(role?.rules, [{ apiGroups: ['coordination.k8s.io'], resources: [where.name], verbs: ['list', 'watch'] }])
  const binding = ofKind<K8sObject & V1RoleBinding>(leases, 'RoleBinding').find(({ metadata }) => /lease/.test(metadata.name)) // prettier-ignore
  t.match(binding, {
    metadata: { namespace: 'peerdns' },
    roleRef: { kind: 'Role', name: role?.metadata.name },
    subjects: [{ kind: 'ServiceAccount', name: 'peerdns', namespace: 'peerdns' }]
  })
  t.equal(ofKind(leases, 'ClusterRole').length, 1, 'and nothing else anywhere')

  const probing = await withComponent('endpoint-probes')
  const base = new Set(builtOf('k8s/base').objects.map(keyOf))
  const more = probing.objects.filter((object) => !base.has(keyOf(object)))
  const key = 'peerdns/peerdns-probes'
  const policyKey = 'NetworkPolicy peerdns/peerdns-endpoint-probes'
  t.same(more.map(keyOf).sort(), [`ConfigMap ${key}`, policyKey, `Role ${key}`, `RoleBinding ${key}`], 'nothing else')
  const added = { ...probing, objects: more }
  const ofProbes = { apiGroups: [''], resources: ['configmaps'], resourceNames: [sharedChecksName('peerdns-overrides')], verbs: ['list', 'watch', 'patch'] } // prettier-ignore
  t.same(ofKind<K8sObject & V1Role>(added, 'Role')[0]?.rules, [ofProbes])
  t.equal(
    ofKind<K8sObject & V1ConfigMap>(added, 'ConfigMap')[0]?.data,
    undefined,
    'empty, so that to apply it again changes nothing'
  )
  t.match(ofKind<K8sObject & V1RoleBinding>(added, 'RoleBinding')[0], { roleRef: { kind: 'Role', name: 'peerdns-probes' }, subjects: [{ kind: 'ServiceAccount', name: 'peerdns', namespace: 'peerdns' }] }) // prettier-ignore
  const spec = ofKind<K8sObject & V1NetworkPolicy>(added, 'NetworkPolicy')[0]?.spec
  const [deployment] = workloads(probing)
  t.same(spec?.podSelector?.matchLabels, deployment?.spec?.selector.matchLabels)
  t.same([spec?.policyTypes, spec?.egress], [['Egress'], [{ ports: [{ protocol: 'TCP' }] }]], 'out, to every TCP port')
})

test('configurations: hashed, checked before they are served, and right', { skip }, async (t) => {
  for (const { built, workload, where } of everyWorkload) {
    const pod = podOf(workload)
    const container = servingContainer(pod)
    const { config, file } = mountedConfig(t, built, workload)
    const written = { out: '', err: '' }
    const io = { out: (text: string) => void (written.out += text), err: (text: string) => void (written.err += text) }
    t.equal(await run(['check', '--config', file, '--strict'], { ...io, env: {}, colors: false }), 0, `${where}: check`)
    t.equal(written.err, '', where)
    for (const { configMap } of pod.volumes ?? []) t.match(configMap?.name, /-[a-z0-9]{10}$/, `${where}: hashed`)
    t.strictSame(container.args, ['serve', '--config', '/etc/peerdns/config.yaml'], where)
    const check = containersOf(pod).find(({ name }) => name === 'check')
    if (workload.metadata.labels?.['peerdns.io/sidecar'] === undefined) {
      t.strictSame(check?.args, ['check', '--config', '/etc/peerdns/config.yaml'], where)
      t.same(check?.volumeMounts, container.volumeMounts, `${where}: of the same files`)
      t.equal(check?.image, container.image)
    }
    // Not the cluster's DNS: it may send its questions to us.
    t.equal(pod.dnsPolicy, pod.dnsConfig === undefined ? 'Default' : 'None', where)
    if (config.admin !== null) t.match(config.admin.address, /^(127\.|::1$)/, `${where}: actions on loopback only`)
    const neededMs = config.lameDuckMs + drainTimeoutMs
    t.ok((pod.terminationGracePeriodSeconds ?? 30) * 1000 > neededMs, `${where}: time to drain`)
  }
})

test('probes: on the ports and paths that are served', { skip }, async (t) => {
  for (const { built, workload, where } of everyWorkload) {
    const container = servingContainer(podOf(workload))
    const { config } = mountedConfig(t, built, workload)
    const probes = [container.startupProbe, container.readinessProbe, container.livenessProbe].filter((it) => it !== undefined) // prettier-ignore
    t.ok(probes.some(({ httpGet }) => httpGet?.path === '/readyz'), `${where}: readiness`) // prettier-ignore
    t.equal(container.livenessProbe?.httpGet?.path, '/healthz', `${where}: liveness`)
    for (const { httpGet } of probes) t.equal(portNumber(container, httpGet?.port), config.observe?.port, where)
    t.equal(config.observe?.address, '::', `${where}: for nodes of either family`)
    const dnsPorts = (container.ports ?? []).filter(({ name }) => name === 'dns' || name === 'dns-tcp')
    if (workload.kind === 'Deployment' && dnsPorts.length > 0) {
      t.same(
        dnsPorts.map(({ protocol, containerPort }) => [protocol, containerPort]),
        [
          ['UDP', config.listen[0]!.port],
          ['TCP', config.listen[0]!.port]
        ]
      )
      t.same(config.listen.map(({ address }) => address), ['0.0.0.0', '::'], `${where}: both families`) // prettier-ignore
    }
  }
})

test('selectors: they find the pods that they are for', { skip }, async (t) => {
  for (const built of builds) {
    const templates = workloads(built).map((workload) => ({ workload, template: templateOf(workload) }))
    const matching = (labels: Record<string, string> = {}) =>
      templates.filter(({ template }) =>
        Object.entries(labels).every(([key, value]) => template.metadata?.labels?.[key] === value)
      )
    for (const { workload, template } of templates) {
      t.same(matching(workload.spec!.selector.matchLabels).map((it) => it.template), [template], keyOf(workload)) // prettier-ignore
      for (const { labelSelector } of template.spec?.topologySpreadConstraints ?? []) {
        t.equal(matching(labelSelector?.matchLabels).length, 1)
      }
    }
    for (const service of ofKind<K8sObject & V1Service>(built, 'Service')) {
      const [found, ...more] = matching(service.spec?.selector)
      t.same(more, [])
      t.equal(found?.workload.metadata.namespace, service.metadata.namespace, keyOf(service))
      const container = servingContainer(found!.template.spec!)
      for (const { targetPort, port, protocol } of service.spec?.ports ?? []) {
        t.equal(port, 53)
        const target = container.ports?.find(({ name }) => name === targetPort)
        t.equal(target?.protocol, protocol, `${keyOf(service)} ${String(targetPort)}`)
      }
    }
    const policies = ofKind<K8sObject & V1NetworkPolicy>(built, 'NetworkPolicy')
    const budgets = ofKind<K8sObject & V1PodDisruptionBudget>(built, 'PodDisruptionBudget')
    for (const { spec } of policies) {
      const [found] = matching(spec?.podSelector?.matchLabels)
      const container = servingContainer(found!.template.spec!)
      const open = spec?.ingress?.flatMap(({ ports }) => ports?.map(({ port }) => port) ?? []) ?? []
      t.same(new Set(open), new Set(container.ports?.map(({ name }) => name)), 'every port of ours is open')
    }
    for (const { spec } of budgets) t.equal(matching(spec?.selector?.matchLabels).length, 1)
    const [expected] = built.objects.some(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'peerdns') ? [1] : [0] // prettier-ignore
    t.same([policies.length, budgets.length], [expected, expected], built.folder)
  }
})

test('stub domains: the address of our Service, the suffixes of our policies, and no cache', { skip }, async (t) => {
  const forms = builds.filter(({ folder }) => /stub$|custom$|two-clusters/.test(folder))
  t.equal(forms.length, 5)
  for (const built of forms) {
    const service = ofKind<K8sObject & V1Service>(built, 'Service').find(({ metadata }) => metadata.name === 'peerdns')
    const address = service?.spec?.clusterIP
    const [deployment] = workloads(built)
    const { config } = mountedConfig(t, built, deployment!)
    const suffixes = config.policies.flatMap(({ dnsNames }) => dnsNames.map((name) => nameToText(name).slice(0, -1)))
    const maps = ofKind<K8sObject & V1ConfigMap>(built, 'ConfigMap')
    const data = maps.find(({ metadata }) => metadata.namespace === 'kube-system')?.data ?? {}
    if (data['stubDomains'] !== undefined) {
      const wanted = Object.fromEntries(suffixes.map((suffix) => [suffix, [address]]))
      t.strictSame(JSON.parse(data['stubDomains']), wanted, built.folder)
      continue
    }
    const corefile = data['Corefile'] ?? data['peerdns.server'] ?? ''
    for (const suffix of suffixes) {
      const block = new RegExp(`^${suffix.replaceAll('.', '\\.')}:53 \\{\\n([^]*?)^\\}`, 'm').exec(corefile)?.[1] ?? ''
      t.match(block, `forward . "${address}"`, built.folder)
      t.notMatch(block, /^\s*(cache|kubernetes)\b/m, built.folder)
    }
  }
})

test('daemonset: the addresses made are those listened on, and one instance per node', { skip }, async (t) => {
  const built = builtOf('k8s/overlays/daemonset')
  const daemonSet = workloads(built)[0] as K8sObject & V1DaemonSet
  const { config } = mountedConfig(t, built, daemonSet)
  const maker = containersOf(podOf(daemonSet)).find(({ name }) => name === 'node-address')!
  t.strictSame(maker.args?.slice(1), config.listen.map(({ address }) => address)) // prettier-ignore
  t.same(config.listen.map(({ address, port }) => [address.includes(':'), port]), [[false, 53], [true, 53]]) // prettier-ignore
  const script = mountedFiles(built, podOf(daemonSet), maker, '/opt/peerdns').get('node-address.sh')
  t.equal(script, readFileSync(join(root, 'k8s/overlays/daemonset/node-address.sh'), 'utf8'))
  const hub = ofKind<K8sObject & V1Service>(builtOf('k8s/base'), 'Service').find(({ metadata }) => metadata.name === 'peerdns') // prettier-ignore
  const asked = [{ host: hub?.spec?.clusterIP, port: 53 }]
  t.same(
    config.cluster.source,
    { kind: 'mirror', servers: asked, key: null },
    "the zones come from the cluster's own peerdns"
  )
  t.same(config.peers.map(({ servers }) => servers), [asked], 'and so does what is peered') // prettier-ignore
  t.same(daemonSet.spec?.updateStrategy, { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } })
  t.ok(config.takeover, 'a new pod beside the old one needs its sockets')
  t.ok(podOf(daemonSet).terminationGracePeriodSeconds! * 1000 > takeoverWaitMs, 'and the old one may wait for it')
  const ports = containersOf(podOf(daemonSet)).flatMap((container) => container.ports ?? [])
  t.same(ports, [], 'two pods of a node may not name the same port')
})

test('sidecar: the pod asks nobody else, with the search list of its namespace', { skip }, async (t) => {
  const built = builtOf('k8s/overlays/sidecar')
  const deployment = workloads(built)[0] as K8sObject & V1Deployment
  const pod = podOf(deployment)
  const { config } = mountedConfig(t, built, deployment)
  const { namespace } = deployment.metadata
  t.same(pod.dnsConfig?.nameservers, config.listen.map(({ address }) => address)) // prettier-ignore
  t.same(pod.dnsConfig?.searches, [`${namespace}.svc.cluster.local`, 'svc.cluster.local', 'cluster.local'])
  t.equal(pod.initContainers?.[0]?.name, 'peerdns', 'before all others')
  t.equal(pod.initContainers?.[0]?.restartPolicy, 'Always', 'and beside them')
  t.same(pod.securityContext?.sysctls, [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '53' }])
})

test('two clusters: each asks the other where it can be reached', { skip }, async (t) => {
  const [a, b] = ['a', 'b'].map((name) => {
    const built = builtOf(`k8s/examples/two-clusters/cluster-${name}`)
    const services = ofKind<K8sObject & V1Service>(built, 'Service')
    const reached = services.find(({ metadata }) => metadata.name === 'peerdns-peers')?.spec?.loadBalancerIP
    return { reached, config: mountedConfig(t, built, workloads(built)[0]!).config }
  })
  const asked = ({ config }: { config: Config }) =>
    config.peers.map(({ name, servers }) => [name, servers.map(({ host, port }) => `${host}:${port}`)])
  t.same(asked(a!), [[b!.config.cluster.name, [`${b!.reached}:53`]]])
  t.same(asked(b!), [[a!.config.cluster.name, [`${a!.reached}:53`]]])
  const table = ({ config }: { config: Config }) =>
    config.policies.map(({ dnsNames, targets }) => [dnsNames.map(nameToText).join(), targets.map(({ id }) => id)])
  t.same(table(a!), [['shop.svc.cluster.local.', ['local', 'peer:cluster-b']]])
  t.same(table(b!), [['backend.svc.cluster.local.', ['peer:cluster-a', 'local']]])
})
