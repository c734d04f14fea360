/**
 * `peerdns check --config F`: everything that is wrong with a configuration, and with the manifests that it names.
 *
 * An error is what keeps `serve` from starting, or from ever being ready. What is only left out (an object that cannot be served) is a warning.
 */
import type { Command } from 'commander'
import type { ManifestProblem } from '../cluster/sources/manifests.ts'
import type { LeftOutObject } from '../cluster/left-out.ts'
import type { Config } from '../config/config.ts'
import { answerIsNo, type CommandIo } from './command-io.ts'
import { withExamples } from './shared-options.ts'
import { printable } from './table.ts'

type CheckOptions = Readonly<{ config: string; strict?: true }>

export function addCheck(program: Command, io: CommandIo): void {
  const check = program
    .command('check')
    .description('check a configuration and its manifests; exit code 1 where it could not be served')
    .requiredOption('--config <file>', 'configuration file (YAML)')
    .option('--strict', 'warnings count as errors')
  withExamples(check, 'check --config config/cluster-b.yaml', 'check --config config/cluster-b.yaml --strict').action(
    async (options: CheckOptions) => runCheck(io, options)
  )
}

async function runCheck(io: CommandIo, { config: file, strict }: CheckOptions): Promise<void> {
  const [{ loadForServing }, { problemToText }] = await Promise.all([
    import('./load.ts'),
    import('../config/problem.ts')
  ])
  const config = loadForServing(file)
  if (!('cluster' in config)) {
    for (const problem of config) io.err(`${problemToText(problem)}\n`)
    throw answerIsNo(counted(config.length, 'error'))
  }
  const { errors, warnings, summary } = await checkManifests(config)
  for (const line of [...errors, ...warnings]) io.err(`${printable(line)}\n`)
  if (errors.length > 0) throw answerIsNo(counted(errors.length, 'error'))
  if (strict === true && warnings.length > 0) throw answerIsNo(counted(warnings.length, 'warning'))
  io.out(`ok: ${summary}${warnings.length === 0 ? '' : `; ${counted(warnings.length, 'warning')}`}\n`)
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

type Findings = Readonly<{ errors: string[]; warnings: string[]; summary: string }>

/** Reads the cluster once, as `serve` would. */
async function checkManifests(config: Config): Promise<Findings> {
  const [{ ClusterView }, { silentLog }, { systemClock }] = await Promise.all([
    import('../main/cluster-view.ts'),
    import('../base/log.ts'),
    import('../base/clock.ts')
  ])
  const view = new ClusterView(config, config.listen, { clock: systemClock, log: silentLog, random: Math.random })
  // What an API server holds is looked at by whoever serves it.
  const isRead = config.cluster.source.kind === 'manifests'
  if (isRead) await view.start()
  await view.close()
  const placed = view.manifestProblems
  // Without these `serve` would never be ready.
  const unread = new Set(view.unreadManifests)
  const isError = ({ file, line }: ManifestProblem): boolean => line === 0 && unread.has(file)
  const errors = placed.filter(isError).map((problem) => placedText(problem, 'error'))
  const minor = placed.filter((problem) => !isError(problem))
  const warnings = [
    ...minor.map((problem) => placedText(problem, 'warning')),
    ...view.zones.leftOut().filter(isNotAmong(placed)).map(leftOutText)
  ]
  const counts = Object.entries(view.zones.counts()).filter(([, count]) => count > 0)
  const objects = counts.map(([kind, count]) => counted(count, kind))
  const rrsets = view.zones.zones.all().reduce((sum, zone) => sum + zone.sizes.rrsets, 0)
  const summary = [
    `cluster ${config.cluster.name}`,
    isRead ? objects.join(', ') || 'no objects' : 'objects from an API server',
    `${counted(rrsets, 'RRset')} in ${counted(view.zones.zones.all().length, 'zone')}`,
    counted(config.policies.length, config.policies.length === 1 ? 'policy' : 'policie'),
    counted(config.peers.length, 'peer')
  ].join('; ')
  return { errors, warnings, summary }
}

function placedText({ file, line, column, reason, object }: ManifestProblem, level: 'error' | 'warning'): string {
  const where = line === 0 ? file : `${file}:${line}:${column}`
  return `${where}: ${level}: ${object === null ? '' : `${objectText(object)}: `}${reason}`
}

const objectText = ({ kind, namespace, name }: Readonly<{ kind: string; namespace: string; name: string }>): string =>
  `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`

/** The source tells most of them with their place in a file; what only the zones know comes without. */
const isNotAmong =
  (placed: readonly ManifestProblem[]) =>
  (object: LeftOutObject): boolean =>
    !placed.some(
      ({ object: it }) => it?.kind === object.kind && it.namespace === object.namespace && it.name === object.name
    )

const leftOutText = (object: LeftOutObject): string =>
  `warning: ${objectText(object)}: ${object.path === '' ? '' : `${object.path}: `}${object.reason}`
