/** With which flags the parts of a cluster run, and how each tells that it is ready. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tokenIssuer, type Certificate, type CertificateAuthority } from './certificates.ts'
import type { KubeApi } from './kube-api.ts'
import { stagesText } from './kwok-stages.ts'
import { binary, Part } from './part.ts'

/** Without these no Service gets its EndpointSlices, no namespace goes away and no object follows its owner. */
const controllers = [
  'deployment',
  'endpoints',
  'endpointslice',
  'endpointslice-mirroring',
  'garbage-collector',
  'namespace',
  'replicaset',
  'root-ca-certificate-publisher',
  'serviceaccount',
  'serviceaccount-token',
  'statefulset'
]

const argumentsOf = (flags: Readonly<Record<string, string | number | boolean>>): string[] =>
  Object.entries(flags).map(([name, value]) => `--${name}=${value}`)

const isAnswered = async (url: string): Promise<boolean> => {
  const response = await fetch(url, { signal: AbortSignal.timeout(2000) })
  await response.body?.cancel()
  return response.ok
}

export function etcdPart(folder: string, clientUrl: string, peerUrl: string): Part {
  return new Part({
    name: 'etcd',
    folder,
    command: binary('etcd'),
    args: argumentsOf({
      name: 'etcd',
      'data-dir': join(folder, 'etcd'),
      'unsafe-no-fsync': true,
      'log-level': 'warn',
      'listen-client-urls': clientUrl,
      'advertise-client-urls': clientUrl,
      'listen-peer-urls': peerUrl,
      'initial-advertise-peer-urls': peerUrl,
      'initial-cluster': `etcd=${peerUrl}`
    }),
    isReady: async () => isAnswered(`${clientUrl}/health`)
  })
}

export type ApiServerOptions = Readonly<{
  folder: string
  port: number
  etcdUrl: string
  /** One for each address family, with a comma between. */
  serviceCidr: string
  ca: CertificateAuthority
  serving: Certificate
  /** Further arguments as they are. */
  args: readonly string[]
  api: KubeApi
}>

export function apiServerPart({ folder, port, etcdUrl, serviceCidr, ca, serving, args, api }: ApiServerOptions): Part {
  const flags = {
    'etcd-servers': etcdUrl,
    'service-cluster-ip-range': serviceCidr,
    'bind-address': '127.0.0.1',
    'advertise-address': '127.0.0.1',
    'secure-port': port,
    'tls-cert-file': serving.certFile,
    'tls-private-key-file': serving.keyFile,
    'client-ca-file': ca.caFile,
    'authorization-mode': 'RBAC',
    'allow-privileged': true,
    'service-account-issuer': tokenIssuer,
    'service-account-key-file': ca.tokenPublicKeyFile,
    'service-account-signing-key-file': ca.tokenKeyFile,
    // Loopback may be in no Endpoints object, so the Service `kubernetes` has none.
    'endpoint-reconciler-type': 'none',
    // Pods need no token.
    'disable-admission-plugins': 'ServiceAccount',
    profiling: false
  }
  return new Part({
    name: 'kube-apiserver',
    folder,
    command: binary('kube-apiserver'),
    args: [...argumentsOf(flags), ...args],
    isReady: async () => (await api.text('/readyz', 2000)) === 'ok'
  })
}

export function controllerManagerPart(
  folder: string,
  kubeconfig: string,
  ca: CertificateAuthority,
  api: KubeApi
): Part {
  return new Part({
    name: 'kube-controller-manager',
    folder,
    command: binary('kube-controller-manager'),
    args: argumentsOf({
      kubeconfig,
      controllers: controllers.map((name) => `${name}-controller`).join(','),
      'leader-elect': false,
      'secure-port': 0,
      'service-account-private-key-file': ca.tokenKeyFile,
      'root-ca-file': ca.caFile,
      // The defaults (20 and 30 a second) would make a first rollout of a shop the slowest part of a suite.
      'kube-api-qps': 500,
      'kube-api-burst': 1000,
      profiling: false
    }),
    isReady: async () => (await api.find('ServiceAccount', { namespace: 'default', name: 'default' })) !== null
  })
}

export type KwokOptions = Readonly<{
  folder: string
  kubeconfig: string
  podCidr: string
  port: number
  /** See `stagesText`. */
  podIpv6Prefix: string | null
}>

/** Plays the kubelet of every node: pods get addresses and become ready, and go when they are deleted. */
export function kwokPart({ folder, kubeconfig, podCidr, port, podIpv6Prefix }: KwokOptions): Part {
  const stages = join(folder, 'kwok.yaml')
  writeFileSync(stages, stagesText(podIpv6Prefix))
  return new Part({
    name: 'kwok',
    folder,
    command: binary('kwok'),
    args: argumentsOf({
      kubeconfig,
      config: stages,
      'manage-all-nodes': true,
      'node-ip': '127.0.0.1',
      cidr: podCidr,
      'server-address': `127.0.0.1:${port}`
    }),
    // Its node controller has been seen to end with `concurrent map writes`.
    isKeptRunning: true,
    isReady: async () => isAnswered(`http://127.0.0.1:${port}/healthz`)
  })
}
