/** `peerdns health`: what a health check of a container, or an exec probe, runs. */
import type { Command } from 'commander'
import { defaultUrl, readUrl, writtenAdminUrl } from './admin-client.ts'
import { answerIsNo, wrongUse, type CommandIo } from './command-io.ts'
import { withAdmin, withExamples, type AdminOption } from './shared-options.ts'
import { printable } from './table.ts'

/** Shorter than health checks usually wait, so that they hear why. */
const timeoutMs = 2_500

type HealthOptions = AdminOption & Readonly<{ ready?: true; url?: string }>

export function addHealth(program: Command, io: CommandIo): void {
  const health = program
    .command('health')
    .description('exit code 0 if the server is alive (with --ready: should be sent queries), else 1')
    .option('--ready', 'ask /readyz instead of /healthz')
    .option('--url <url>', 'the same as --admin; the `observe` address does as well')
  withExamples(
    withAdmin(health),
    'health',
    'health --admin http://127.0.0.1:9302',
    'health --ready --url http://127.0.0.1:9153'
  ).action(async (options: HealthOptions) => runHealth(io, options))
}

async function runHealth(io: CommandIo, { ready, admin, url }: HealthOptions): Promise<void> {
  if (admin !== undefined && url !== undefined) throw wrongUse('--admin or --url, not both')
  const written = url === undefined ? writtenAdminUrl(admin, io) : { what: '--url', text: url }
  const base = written === null ? defaultUrl : readUrl(written)
  const path = ready === true ? '/readyz' : '/healthz'
  let response: Response
  let body: string
  try {
    response = await fetch(`${base}${path}`, { signal: AbortSignal.timeout(timeoutMs) })
    body = (await response.text()).trim().slice(0, 500)
  } catch {
    throw answerIsNo(`no answer from ${base} within ${timeoutMs / 1000} s`)
  }
  if (response.status !== 200) throw answerIsNo(`${path} says ${response.status}: ${printable(body)}`)
  io.out(`${printable(body)}\n`)
}
