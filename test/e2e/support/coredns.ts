/** CoreDNS with its kubernetes plugin on a cluster's API server: what our answers are compared with. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Cluster } from './cluster.ts'
import { dig } from './dig.ts'
import { binary, Part } from './part.ts'
import { freePort } from '../../support/free-port.ts'

export type CoreDnsOptions = Readonly<{
  /** cluster.local unless told. */
  zone?: string
  /** A zone in which it answers ServiceImports; off unless told, since it needs their CRD. */
  clustersetZone?: string
  /** Reverse zones, or networks such as 10.0.0.0/8; all of IPv4 and IPv6 unless told. */
  reverse?: readonly string[]
  ttlSeconds?: number
  pods?: 'disabled' | 'insecure' | 'verified'
  /** Uses this kubeconfig; one of a service account with what CoreDNS needs unless told. */
  kubeconfig?: string
  /** Further lines of the server block: `cache 30`, `log`, ... */
  lines?: readonly string[]
  /** Further server blocks as they are. `{port}` becomes the port. */
  blocks?: string
}>

export type CoreDns = Readonly<{ part: Part; port: number; corefile: string }>

/** What its kubernetes plugin lists and watches. */
const rules = [
  { apiGroups: [''], resources: ['services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
  { apiGroups: ['multicluster.x-k8s.io'], resources: ['serviceimports'], verbs: ['list', 'watch'] }
]

/** Starts one that has read the whole cluster when this resolves. It ends with the cluster, or by `part.kill()`. */
export async function startCoreDns(cluster: Cluster, options: CoreDnsOptions = {}): Promise<CoreDns> {
  const { zone = 'cluster.local', clustersetZone, reverse = ['in-addr.arpa', 'ip6.arpa'] } = options
  const { ttlSeconds = 5, pods = 'insecure', lines = [], blocks = '' } = options
  const kubeconfig = options.kubeconfig ?? (await cluster.serviceAccount('kube-system', 'coredns', rules)).kubeconfig
  const [port, readyPort] = [await freePort(), await freePort()]
  const zones = [zone, ...(clustersetZone === undefined ? [] : [clustersetZone]), ...reverse].join(' ')
  const plugin = [
    `kubeconfig ${kubeconfig}`,
    `ttl ${ttlSeconds}`,
    `pods ${pods}`,
    // Otherwise it answers an API server that it cannot reach with what it has, which is nothing.
    'startup_timeout 30s',
    ...(clustersetZone === undefined ? [] : [`multicluster ${clustersetZone}`])
  ]
  const corefile = join(cluster.folder, `corefile-${port}`)
  writeFileSync(
    corefile,
    `.:${port} {
  bind 127.0.0.1
  errors
  ready 127.0.0.1:${readyPort}
  kubernetes ${zones} {
    ${plugin.join('\n    ')}
  }
  ${lines.join('\n  ')}
}
${blocks.replaceAll('{port}', String(port))}
`
  )
  const part = new Part({
    name: `coredns-${port}`,
    folder: cluster.folder,
    command: binary('coredns'),
    args: [`-conf=${corefile}`],
    // It says so before it listens.
    isReady: async () =>
      (await fetch(`http://127.0.0.1:${readyPort}/ready`)).ok && (await dig(port, zone, 'SOA')).rcode === 'NOERROR'
  })
  cluster.adopt(part)
  await part.start()
  return { part, port, corefile }
}
