/** What `check` finds in the cluster that a configuration names: read once, as `serve` would, and put into words. */
import { resolve } from 'node:path'
import { systemClock } from '../base/clock.ts'
import { hardCodedNames } from '../base/limits.ts'
import { silentLog } from '../base/log.ts'
import type { LeftOutObject } from '../cluster/left-out.ts'
import { identityToText } from '../cluster/objects.ts'
import { findManifestFiles, readManifestFile } from '../cluster/sources/manifest-files.ts'
import { ManifestsSource, type ManifestProblem } from '../cluster/sources/manifests.ts'
import type { Config } from '../config/config.ts'
import type { ConfigProblem } from '../config/problem.ts'
import { ClusterView } from '../main/cluster-view.ts'
import { typeToText } from '../wire/iana.ts'
import { nameToText, type DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import { exportTexts } from './export-findings.ts'
import { findHardCodedNames } from './hard-coded-names.ts'
import { counted } from './table.ts'

export type Findings = Readonly<{ errors: string[]; warnings: string[]; summary: string }>

type ManifestFindings = Pick<Findings, 'errors' | 'warnings'>

/** What is wrong with manifests by themselves, whatever the configuration that names them is like. */
export async function manifestFindingsOf(paths: readonly string[]): Promise<ManifestFindings> {
  const source = new ManifestsSource({ paths, clock: systemClock, onEvents: () => {} })
  await source.start()
  source.close()
  return manifestFindings(source.problems, source.unread)
}

function manifestFindings(problems: readonly ManifestProblem[], unreadPaths: readonly string[]): ManifestFindings {
  // Without these `serve` would never be ready.
  const unread = new Set(unreadPaths)
  const isError = ({ file, line }: ManifestProblem): boolean => line === 0 && unread.has(file)
  const minor = problems.filter((problem) => !isError(problem))
  return {
    errors: problems.filter(isError).map((problem) => placedText(problem, 'error')),
    warnings: minor.map((problem) => placedText(problem, 'warning'))
  }
}

/** Where the objects are, if this is not the one who looks at them. */
const elsewhere = { kubernetes: 'objects from an API server', mirror: "zones from the cluster's own peerdns" } as const

/**
 * Opens no socket but to the files.
 * @param manifests files and folders that are looked through for hard-coded names too.
 */
export async function findingsOf(config: Config, manifests: readonly string[] = []): Promise<Findings> {
  const view = new ClusterView(config, config.listen, {
    clock: systemClock,
    log: silentLog,
    random: Math.random,
    instanceId: '',
    keyOf: () => null
  })
  const { kind } = config.cluster.source
  // What an API server or a hub holds is looked at by whoever serves it.
  if (kind === 'manifests') await view.start()
  await view.close()
  const placed = view.manifestProblems
  const found = manifestFindings(placed, view.unreadManifests)
  const warnings = [
    ...config.warnings.map(warningText),
    ...found.warnings,
    ...view.zones.leftOut().filter(isNotAmong(placed)).map(leftOutText),
    ...hidingTexts(config, view.zones.hiddenByHand()),
    ...exportTexts(config, view.zones),
    ...mirrorTexts(config),
    ...(await hardCodedTexts(config, manifests))
  ]
  const counts = Object.entries(view.zones.counts()).filter(([, count]) => count > 0)
  const objects = counts.map(([kind, count]) => counted(count, kind, kind === 'Endpoints' ? kind : `${kind}s`))
  const rrsets = view.zones.zones.all().reduce((sum, zone) => sum + zone.sizes.rrsets, 0)
  const summary = [
    `cluster ${config.cluster.name}`,
    kind === 'manifests' ? objects.join(', ') || 'no objects' : elsewhere[kind],
    `${counted(rrsets, 'RRset')} in ${counted(view.zones.zones.all().length, 'zone')}`,
    counted(config.policies.length, 'policy', 'policies'),
    counted(config.peers.length, 'peer')
  ].join('; ')
  return { errors: found.errors, warnings, summary }
}

export const warningText = ({ file, line, column, path, message }: ConfigProblem): string =>
  `${file}:${line}:${column}: warning: ${path}: ${message}`

function placedText({ file, line, column, reason, object }: ManifestProblem, level: 'error' | 'warning'): string {
  const where = line === 0 ? file : `${file}:${line}:${column}`
  return `${where}: ${level}: ${object === null ? '' : `${identityToText(object)}: `}${reason}`
}

/** The source tells most of them with their place in a file; what only the zones know comes without. */
const isNotAmong =
  (placed: readonly ManifestProblem[]) =>
  (object: LeftOutObject): boolean =>
    !placed.some(
      ({ object: it }) => it?.kind === object.kind && it.namespace === object.namespace && it.name === object.name
    )

const leftOutText = (object: LeftOutObject): string =>
  `warning: ${identityToText(object)}: ${object.path === '' ? '' : `${object.path}: `}${object.reason}`

/** Names that decide for another cluster by themselves, in the source's manifests and in those of applications. */
async function hardCodedTexts(config: Config, manifests: readonly string[]): Promise<string[]> {
  const { source } = config.cluster
  const paths = [...(source.kind === 'manifests' ? source.paths : []), ...manifests.map((path) => resolve(path))]
  const { files, missing } = await findManifestFiles(paths, async () => {})
  const lines = missing
    .filter((path) => manifests.some((it) => resolve(it) === path))
    .map((path) => `${path}: warning: there is no such file or folder`)
  for (const file of files) {
    // What cannot be read is told by the source.
    const text = await readManifestFile(file).then(
      (content) => content.text,
      () => ''
    )
    const left = hardCodedNames - lines.length
    for (const { line, column, written, reason } of findHardCodedNames(text, config, left)) {
      lines.push(`${file.path}:${line}:${column}: warning: ${written} ${reason}`)
    }
  }
  return lines
}

/** A mirror stands for its peer until the lease is over; stale answers are only given after that. */
function mirrorTexts({ file, peers, cache, positions }: Config): string[] {
  const short = peers.filter(({ mirror, leaseMs }) => mirror === true && cache.serveStaleSeconds * 1000 <= leaseMs)
  return short.map(({ name, leaseMs }) => {
    const { line, column } = positions.get(`peers.${name}`) ?? { line: 1, column: 1 }
    const text = `cache.serveStale (${cache.serveStaleSeconds} s) is not longer than the lease (${leaseMs / 1000} s)`
    return `${file}:${line}:${column}: warning: peers.${name}: ${text}: records with a short TTL have no stale answers`
  })
}

/** One line for each name at which a hand-written record stands in the place of generated ones. */
function hidingTexts({ file, cluster }: Config, hidden: readonly RRset[]): string[] {
  const typesAt = new Map<DomainName, Set<string>>()
  for (const { owner, type } of hidden) {
    const types = typesAt.get(owner) ?? new Set<string>()
    typesAt.set(owner, types.add(typeToText(type)))
  }
  return [...typesAt].map(([owner, types]) => {
    const byHand = cluster.records.filter((record) => record.owner === owner)
    const { line, column } = byHand[0]!.position
    const what = [...new Set(byHand.map(({ type }) => typeToText(type)))].join(', ')
    const where = `${file}:${line}:${column}: warning: cluster.records`
    return `${where}: ${nameToText(owner)} ${what} hides what a Service has there: ${[...types].join(', ')}`
  })
}
