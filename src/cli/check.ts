/**
 * `peerdns check --config F`: everything that is wrong with a configuration, and with the manifests that it names.
 *
 * An error is what keeps `serve` from starting, or from ever being ready. What is only left out (an object that
 * cannot be served), or hidden, or names another cluster where a policy should decide, is a warning.
 */
import type { Command } from 'commander'
import { answerIsNo, type CommandIo } from './command-io.ts'
import { withExamples } from './shared-options.ts'
import { counted, printable } from './table.ts'

type CheckOptions = Readonly<{ config: string; strict?: true; manifests?: readonly string[] }>

export function addCheck(program: Command, io: CommandIo): void {
  const check = program
    .command('check')
    .description('check a configuration and its manifests; exit code 1 where it could not be served')
    .requiredOption('--config <file>', 'configuration file (YAML)')
    .option('--strict', 'warnings count as errors')
    .option(
      '--manifests <path...>',
      'look for names that hard-code another cluster in these manifests of applications too'
    )
  withExamples(
    check,
    'check --config config/cluster-b.yaml',
    'check --config config/cluster-b.yaml --strict',
    'check --config config/cluster-b.yaml --manifests ../shop/deploy/'
  ).action(async (options: CheckOptions) => runCheck(io, options))
}

async function runCheck(io: CommandIo, { config: file, strict, manifests }: CheckOptions): Promise<void> {
  const [{ loadForServing }, { ConfigError, problemToText }, { findingsOf, manifestFindingsOf, warningText }] =
    await Promise.all([import('./load.ts'), import('../config/problem.ts'), import('./check-findings.ts')])
  const config = loadForServing(file)
  if (config instanceof ConfigError) {
    for (const problem of config.problems) io.err(`${problemToText(problem)}\n`)
    const found = await manifestFindingsOf(config.manifests)
    for (const line of [...found.errors, ...config.warnings.map(warningText), ...found.warnings]) {
      io.err(`${printable(line)}\n`)
    }
    throw answerIsNo(counted(config.problems.length + found.errors.length, 'error'))
  }
  const { errors, warnings, summary } = await findingsOf(config, manifests)
  for (const line of [...errors, ...warnings]) io.err(`${printable(line)}\n`)
  if (errors.length > 0) throw answerIsNo(counted(errors.length, 'error'))
  if (strict === true && warnings.length > 0) throw answerIsNo(counted(warnings.length, 'warning'))
  io.out(`ok: ${summary}${warnings.length === 0 ? '' : `; ${counted(warnings.length, 'warning')}`}\n`)
}
