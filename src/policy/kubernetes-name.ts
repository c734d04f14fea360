/**
 * What a name below the cluster zone means by the Kubernetes DNS schema, told from the name alone.
 *
 * Kubernetes DNS-Based Service Discovery 1.1.0: `<svc>.<ns>.svc`, `<host>.<svc>.<ns>.svc`,
 * `_<port>._<proto>.<svc>.<ns>.svc` and `<address>.<ns>.pod` below the zone.
 */
import { isAtOrBelow, joinLabels, type DomainName } from '../wire/name.ts'

/**
 * - `impossible`: no Kubernetes object can have this name, so it need not leave the cluster.
 * - `namespace`: the zone itself, `svc`, `pod`, or a namespace below one of them.
 * - `service`: exactly `<svc>.<ns>.svc`.
 * - `below-service`: a port, protocol or host name below a Service.
 * - `pod`: `<address>.<ns>.pod`.
 */
export type KubernetesNameKind = 'impossible' | 'namespace' | 'service' | 'below-service' | 'pod'

export type KubernetesName = Readonly<{
  kind: KubernetesNameKind
  /** The name of the Service that a `service` or `below-service` name belongs to; else null. */
  service: DomainName | null
  /** The namespace's label, or null above namespaces. */
  namespace: string | null
}>

const impossible: KubernetesName = { kind: 'impossible', service: null, namespace: null }
const aboveNamespaces: KubernetesName = { kind: 'namespace', service: null, namespace: null }

/** Labels below the zone of the longest name that the schema knows: `_port._proto.<svc>.<ns>.svc`. */
const maxLabels = 5
/** Where the labels of the name at hand begin; this is asked for each query, so nothing is allocated. */
const starts = new Int32Array(maxLabels)

const hyphen = 0x2d
const underscore = 0x5f

/** Whether all octets of a label from `at` on are of those that Kubernetes names are made of (RFC 1123, lower case). */
function isPlain(name: string, at: number, end: number): boolean {
  if (at >= end) return false
  for (let i = at; i < end; i++) {
    const code = name.charCodeAt(i)
    const isFine = (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39) || code === hyphen
    if (!isFine) return false
  }
  return true
}

const endOf = (name: string, start: number): number => start + 1 + name.charCodeAt(start)
const isNameLabel = (name: string, start: number): boolean => isPlain(name, start + 1, endOf(name, start))
const isUnderscoreLabel = (name: string, start: number): boolean =>
  name.charCodeAt(start + 1) === underscore && isPlain(name, start + 2, endOf(name, start))

/** Reads a name at or below `zone` by the schema; null where the name is not below `zone`. */
export function readKubernetesName(qname: DomainName, zone: DomainName): KubernetesName | null {
  const zoneStart = qname.length - zone.length
  if (zoneStart < 0 || !isAtOrBelow(qname, zone)) return null
  let count = 0
  for (let at = 0; at < zoneStart; at = endOf(qname, at)) {
    if (count < maxLabels) starts[count] = at
    count++
  }
  if (count === 0) return aboveNamespaces
  if (count > maxLabels) return impossible
  const rootStart = starts[count - 1]!
  const root = qname.slice(rootStart + 1, endOf(qname, rootStart))
  if (root !== 'svc' && root !== 'pod') return impossible
  if (count === 1) return aboveNamespaces
  const namespaceStart = starts[count - 2]!
  if (!isNameLabel(qname, namespaceStart)) return impossible
  const namespace = qname.slice(namespaceStart + 1, endOf(qname, namespaceStart))
  if (count === 2) return { kind: 'namespace', service: null, namespace }
  if (root === 'pod')
    return count === 3 && isNameLabel(qname, 0) ? { kind: 'pod', service: null, namespace } : impossible
  const serviceStart = starts[count - 3]!
  if (!isNameLabel(qname, serviceStart)) return impossible
  if (count === 3) return { kind: 'service', service: qname, namespace }
  const isPossible =
    count === 4
      ? isNameLabel(qname, 0) || isUnderscoreLabel(qname, 0)
      : isUnderscoreLabel(qname, 0) && isUnderscoreLabel(qname, starts[1]!)
  return isPossible
    ? { kind: 'below-service', service: qname.slice(serviceStart) as DomainName, namespace }
    : impossible
}

/** Whether a name is one pod's, `<host>.<svc>` or one below `pod`: no two clusters mean the same one. */
export const isOfSinglePod = (qname: DomainName, name: KubernetesName | null): boolean =>
  name?.kind === 'pod' || (name?.kind === 'below-service' && qname.charCodeAt(1) !== underscore)

/**
 * Whether a name must be answered by this cluster itself unless a policy says `allowReserved`: the API server's
 * Service and all below it, and everything of the namespace that holds the cluster's DNS.
 */
export function isReserved(name: KubernetesName, zone: DomainName): boolean {
  if (name.namespace === 'kube-system') return true
  return name.namespace === 'default' && name.service === joinLabels(['kubernetes', 'default', 'svc'], zone)
}
