/**
 * Finds names in manifests that hold another cluster's name or zone: whoever uses one has decided for that cluster, and
 * no policy can send it elsewhere. Text is looked at line by line, so that environments, arguments, annotations and the
 * files inside ConfigMaps are covered alike, whatever the kind of the object.
 */
import type { Config, PolicyConfig } from '../config/config.ts'
import { isAtOrBelow, joinLabels, labelsOf, nameToText, parseName, type DomainName } from '../wire/name.ts'
import { WireError } from '../base/errors.ts'

export type HardCodedName = Readonly<{
  /** From 1. */
  line: number
  column: number
  /** As it is written. */
  written: string
  /** What is wrong with it, and what to use instead. */
  reason: string
}>

/** Host names with at least two labels; the last dot may be there. */
const hostName = /(?<![\w.@-])_?[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)+\.?/gi
/** Lines that name where an image or a chart comes from, and whole lines of comment. */
const otherLines = /^\s*(-\s*)?(image|repository|registry)\s*:|^\s*#/
/** Google's workload identities have the form of such names: `PROJECT.svc.id.goog`. */
const notZones = new Set(['id.goog'])

/** Every hard-coded name in a manifest's text, in order; at most `limit`. */
export function findHardCodedNames(text: string, config: Config, limit: number): HardCodedName[] {
  const found: HardCodedName[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (!line.includes('.') || otherLines.test(line)) continue
    for (const match of line.matchAll(hostName)) {
      if (found.length >= limit) return found
      const reason = reasonAgainst(match[0], config)
      if (reason !== null) found.push({ line: index + 1, column: match.index + 1, written: match[0], reason })
    }
  }
  return found
}

function reasonAgainst(written: string, config: Config): string | null {
  const name = parsed(written)
  if (name === null) return null
  const { zone, clustersetZone } = config.cluster
  if (isAtOrBelow(name, clustersetZone)) return againstClusterName(name, clustersetZone, config)
  if (isAtOrBelow(name, zone)) return null
  // Whoever peers that zone as it is wants it to be used.
  if (config.policies.some(({ dnsNames }) => dnsNames.some((dnsName) => isAtOrBelow(name, dnsName)))) return null
  if (goesOnBehindZone(name, config)) return null
  return againstZone(name, config) ?? againstPeerName(name, config)
}

/** `api.backend.svc.cluster-a.local.example.com`: some host of another domain, whatever its first labels say. */
function goesOnBehindZone(name: DomainName, config: Config): boolean {
  const text = `.${nameToText(name)}`
  const zones = [config.cluster.zone, ...zonesOfTargets(config).map(({ zone }) => zone)]
  return zones.some((zone) => text.includes(`.svc.${nameToText(zone)}`) && !isAtOrBelow(name, zone))
}

/** `<host>.<cluster>.<svc>.<ns>.svc.<clusterset zone>`, or without the host: only one cluster's endpoints. KEP-1645. */
function againstClusterName(name: DomainName, clustersetZone: DomainName, config: Config): string | null {
  const labels = labelsBelow(name, clustersetZone)
  const cluster = labels.at(-4)
  if (labels.at(-1) !== 'svc' || cluster === undefined || cluster.startsWith('_')) return null
  if (!config.peers.some((peer) => peer.name === cluster)) return null
  const instead = nameToText(joinLabels(labels.slice(-3), clustersetZone))
  return `names cluster ${cluster} in the clusterset; use ${plain(instead)}`
}

/** A Service in a zone that is not ours: one that a target's `zone` names, or whatever follows `svc`. */
function againstZone(name: DomainName, config: Config): string | null {
  const labels = labelsOf(name)
  const svcAt = labels.lastIndexOf('svc')
  const service = svcAt >= 2 ? labels.slice(0, svcAt + 1) : null
  const theirs = zonesOfTargets(config).find(({ zone }) => isAtOrBelow(name, zone))
  if (theirs !== undefined) {
    const below = labelsBelow(name, theirs.zone)
    const what = `hard-codes ${plain(nameToText(theirs.zone))}, the zone of ${theirs.peer}`
    return below.length === 0
      ? `${what}; names of ${plain(nameToText(config.cluster.zone))} are peered to it`
      : `${what}; use ${insteadOf(below, theirs.peer, config)}`
  }
  if (service === null) return null
  const rest = labels.slice(svcAt + 1).join('.')
  const own = plain(nameToText(config.cluster.zone))
  // `svc.cluster` and the like: cut off, not another cluster's.
  if (rest === '' || notZones.has(rest) || own.startsWith(`${rest}.`)) return null
  const peer = config.peers.find((it) => rest.split('.').includes(it.name.toLowerCase()))?.name ?? null
  return `hard-codes ${rest}, the zone of another cluster; use ${insteadOf(service, peer, config)}`
}

/** A peer's name as a label: `api.cluster-a.example.com`, `api.backend.cluster-a`. */
function againstPeerName(name: DomainName, config: Config): string | null {
  const labels = labelsOf(name)
  const peer = config.peers.find((it) => labels.includes(it.name.toLowerCase()))
  if (peer === undefined) return null
  // A host that peerdns itself asks is meant to be that cluster's.
  if (config.peers.some(({ servers }) => servers.some(({ host }) => parsed(host) === name))) return null
  const policy = policyOf(peer.name, config)
  if (policy === undefined) return `hard-codes the name of cluster ${peer.name}, to which no policy peers a name yet`
  const dnsName = policy.dnsNames[0]!
  const example = labels[0] === peer.name ? '' : exampleBelow(labels[0]!, dnsName, config)
  return `hard-codes the name of cluster ${peer.name}; use a name below ${plain(nameToText(dnsName))}${example}, which policy ${policy.name} peers to it`
}

/** A namespace's suffix makes the first label a Service of it: most such names begin with the Service. */
function exampleBelow(label: string, dnsName: DomainName, config: Config): string {
  const isNamespace =
    isAtOrBelow(dnsName, config.cluster.zone) && labelsBelow(dnsName, config.cluster.zone).length === 2
  return isNamespace ? `, as ${plain(nameToText(joinLabels([label], dnsName)))}` : ''
}

/** The same Service under our zone, and who sends it to the other cluster. */
function insteadOf(below: readonly string[], peer: string | null, config: Config): string {
  const name = joined(below, config.cluster.zone)
  if (name === null) return `the name in ${plain(nameToText(config.cluster.zone))}`
  return `${plain(nameToText(name))}, ${whoDecides(name, peer, config)}`
}

/** By the longest dnsName, whoever the policies there are for; advised only if one of them asks that cluster. */
function whoDecides(name: DomainName, peer: string | null, { policies }: Config): string {
  let longest = -1
  let deciding: PolicyConfig[] = []
  for (const policy of policies) {
    for (const dnsName of policy.dnsNames) {
      if (dnsName.length < longest || !isAtOrBelow(name, dnsName)) continue
      if (dnsName.length > longest) deciding = []
      longest = dnsName.length
      deciding.push(policy)
    }
  }
  const [first] = deciding
  const to = peer === null ? '' : ` to ${peer}`
  if (first === undefined) return `with a policy that peers it${to}`
  const asks = peer === null ? first : deciding.find(({ targets }) => targets.some((target) => target.peer === peer))
  if (asks !== undefined) return `which policy ${asks.name} decides`
  return `with a policy that peers it${to}: none does yet, policy ${first.name} decides it without ${peer}`
}

const policyOf = (peer: string, { policies }: Config): PolicyConfig | undefined =>
  policies.find(({ targets }) => targets.some((target) => target.peer === peer))

const zonesOfTargets = ({ policies, cluster }: Config): { zone: DomainName; peer: string }[] =>
  policies.flatMap(({ targets }) =>
    targets.flatMap(({ zone, peer }) =>
      zone === null || peer === null || zone === cluster.zone ? [] : [{ zone, peer }]
    )
  )

const labelsBelow = (name: DomainName, zone: DomainName): string[] =>
  labelsOf(name).slice(0, labelsOf(name).length - labelsOf(zone).length)

const plain = (name: string): string => name.replace(/\.$/, '')

function parsed(written: string): DomainName | null {
  try {
    return parseName(written)
  } catch (error) {
    if (error instanceof WireError) return null
    throw error
  }
}

function joined(labels: readonly string[], zone: DomainName): DomainName | null {
  try {
    return joinLabels(labels, zone)
  } catch (error) {
    if (error instanceof WireError) return null
    throw error
  }
}
