/**
 * What a name below the cluster zone means by the Kubernetes DNS schema, told from the name alone.
 *
 * Kubernetes DNS-Based Service Discovery 1.1.0: `<svc>.<ns>.svc`, `<host>.<svc>.<ns>.svc`,
 * `_<port>._<proto>.<svc>.<ns>.svc` and `<address>.<ns>.pod` below the zone.
 */
import { isAtOrBelow, joinLabels, labelsOf, type DomainName } from '../wire/name.ts'

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

const isNameLabel = (label: string): boolean => /^[a-z0-9-]+$/.test(label)
const isUnderscoreLabel = (label: string): boolean => /^_[a-z0-9-]+$/.test(label)

/** Reads a name at or below `zone` by the schema; null where the name is not below `zone`. */
export function readKubernetesName(qname: DomainName, zone: DomainName): KubernetesName | null {
  if (!isAtOrBelow(qname, zone)) return null
  const labels = labelsOf(qname.slice(0, qname.length - zone.length).concat('\0') as DomainName)
  const count = labels.length
  if (count === 0) return aboveNamespaces
  const root = labels[count - 1]!
  if (root !== 'svc' && root !== 'pod') return impossible
  if (count === 1) return aboveNamespaces
  const namespace = labels[count - 2]!
  if (!isNameLabel(namespace)) return impossible
  if (count === 2) return { kind: 'namespace', service: null, namespace }
  if (root === 'pod')
    return count === 3 && isNameLabel(labels[0]!) ? { kind: 'pod', service: null, namespace } : impossible
  const serviceLabel = labels[count - 3]!
  if (!isNameLabel(serviceLabel)) return impossible
  const below = labels.slice(0, count - 3)
  const isPossible =
    below.length === 0 ||
    (below.length === 1 && (isNameLabel(below[0]!) || isUnderscoreLabel(below[0]!))) ||
    (below.length === 2 && below.every(isUnderscoreLabel))
  if (!isPossible) return impossible
  const service = joinLabels(labels.slice(count - 3), zone)
  return { kind: below.length === 0 ? 'service' : 'below-service', service, namespace }
}

/**
 * Whether a name must be answered by this cluster itself unless a policy says `allowReserved`: the API server's
 * Service and all below it, and everything of the namespace that holds the cluster's DNS.
 */
export function isReserved(name: KubernetesName, zone: DomainName): boolean {
  if (name.namespace === 'kube-system') return true
  return name.service !== null && name.service === joinLabels(['kubernetes', 'default', 'svc'], zone)
}
