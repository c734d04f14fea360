/** `peerdns health`: what a health check of a container, or an exec probe, runs. */
import type { Command } from 'commander'
import { answerIsNo, wrongUse, type CommandIo } from './command-io.ts'
import { withExamples } from './shared-options.ts'
import { printable } from './table.ts'

const defaultUrl = 'http://127.0.0.1:9154'
/** Shorter than health checks usually wait, so that they hear why. */
const timeoutMs = 2_500

type HealthOptions = Readonly<{ ready?: true; url?: string }>

export function addHealth(program: Command, io: CommandIo): void {
  const health = program
    .command('health')
    .description('exit code 0 if the server is alive (with --ready: should be sent queries), else 1')
    .option('--ready', 'ask /readyz instead of /healthz')
    .option('--url <url>', 'its `admin` or `observe` address (default: $PEERDNS_ADMIN, else http://127.0.0.1:9154)')
  withExamples(health, 'health', 'health --ready --url http://127.0.0.1:9153').action(async (options: HealthOptions) =>
    runHealth(io, options)
  )
}

async function runHealth(io: CommandIo, { ready, url }: HealthOptions): Promise<void> {
  const text = url ?? (io.env['PEERDNS_ADMIN'] || defaultUrl)
  const base = URL.parse(text.includes('://') ? text : `http://${text}`)
  if (base === null || !/^https?:$/.test(base.protocol)) {
    throw wrongUse(`${url === undefined ? 'PEERDNS_ADMIN' : '--url'}: \`${text}\` is not a URL like ${defaultUrl}`)
  }
  const path = ready === true ? '/readyz' : '/healthz'
  let response: Response
  let body: string
  try {
    response = await fetch(`${base.href.replace(/\/$/, '')}${path}`, { signal: AbortSignal.timeout(timeoutMs) })
    body = (await response.text()).trim().slice(0, 500)
  } catch {
    throw answerIsNo(`no answer from ${base.href} within ${timeoutMs / 1000} s`)
  }
  if (response.status !== 200) throw answerIsNo(`${path} says ${response.status}: ${printable(body)}`)
  io.out(`${printable(body)}\n`)
}
