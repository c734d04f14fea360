/** Where replicas share the checks of addresses: a ConfigMap beside the one of overrides, if that is where they are. */
import { hostname } from 'node:os'
import type { Clock } from '../base/clock.ts'
import { ConfigMapText } from '../cluster/sources/kubernetes/config-map-text.ts'
import type { Config } from '../config/config.ts'
import type { SharedText } from '../health/check-holder.ts'
import { apiAccess } from './cluster-source.ts'

const key = 'probes.json'

/** Equal for configurations that share in the same way, or not at all. */
export const sharedChecksBlueprint = ({ overrides, cluster }: Config): string =>
  JSON.stringify([cluster.probes, overrides, cluster.source])

/** null: this process checks by itself. */
export function sharedChecksText(
  { overrides, cluster: { probes, source } }: Config,
  { clock, random }: Readonly<{ clock: Clock; random: () => number }>
): SharedText | null {
  if (!probes || source.kind !== 'kubernetes' || overrides.kind !== 'config-map') return null
  const access = apiAccess(source.kubeconfig, source.context, clock)
  const { namespace, name } = overrides
  return new ConfigMapText({ access, clock, random, namespace, name: sharedChecksName(name), key })
}

/**
 * Beside `peerdns-overrides` stands `peerdns-probes`: installations that do not share the one do not share the other.
 */
export const sharedChecksName = (overrides: string): string => `${overrides.replace(/-overrides$/, '')}-probes`

/** Who we are, for the other replicas and for people: in a pod, the host's name is the pod's. */
export const identityOf = (instanceId: string): string => `${hostname()}/${instanceId}`
