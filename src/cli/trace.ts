/** `peerdns trace NAME [TYPE]`: every step of one answer, from the same functions that answer queries. */
import type { Command } from 'commander'
import type { RecordJson, TraceJson } from '../admin/api-types.ts'
import { AdminClient } from './admin-client.ts'
import { answerIsNo, type CommandIo } from './command-io.ts'
import { print, withAdmin, withExamples, withOutput, type ListOptions } from './shared-options.ts'
import { sourceText } from './source-text.ts'
import { elapsed, printable, table } from './table.ts'

type TraceOptions = ListOptions & Readonly<{ client?: string; norecurse?: true }>

export function addTrace(program: Command, io: CommandIo): void {
  const trace = program
    .command('trace')
    .description('how a name is answered, step by step; exit code 1 where there is no such record')
    .argument('<name>', 'domain name; the last dot may be left out')
    .argument('[type]', 'record type', 'A')
    .option('--client <address>', 'as if this client had asked (default: 127.0.0.1)')
    .option('--norecurse', 'as if asked with RD=0, as another peerdns asks')
  withExamples(
    withAdmin(withOutput(trace)),
    'trace api.backend.svc.cluster.local',
    'trace _http._tcp.api.backend.svc.cluster.local SRV',
    'trace api.backend.svc.cluster.local --client 10.8.0.7'
  ).action(async (name: string, type: string, options: TraceOptions) => {
    const rd = options.norecurse === true ? '0' : '1'
    const answer = await AdminClient.from(options.admin, io).get<TraceJson>('/trace', {
      name,
      type,
      client: options.client,
      rd
    })
    print(io, options, answer, traceText)
    if (answer.answer.length === 0) throw answerIsNo(`no ${answer.type} of ${answer.name}: ${answer.rcode}`)
  })
}

function traceText(trace: TraceJson): string {
  const steps = table(
    ['CLUSTER', 'STEP', 'SERVER', 'AT', 'TOOK', 'TTL', 'AGE', 'DETAIL'],
    trace.steps.map((step) => [
      step.cluster,
      step.step,
      step.server,
      elapsed(step.atMs),
      elapsed(step.tookMs),
      step.ttlSeconds === null ? null : String(step.ttlSeconds),
      elapsed(step.ageMs),
      printable(step.detail)
    ])
  )
  const verdict = [
    `${trace.name} ${trace.type}: ${trace.rcode} in ${elapsed(trace.tookMs)}`,
    `source: ${sourceText(trace.source)}`,
    ...(trace.policy === null ? [] : [`policy: ${trace.policy}`]),
    ...(trace.isEmpty ? ['the Service has no endpoint that is ready or serving'] : []),
    ...trace.extendedErrors.map(({ code, text }) => `extended error ${code}: ${printable(text)}`)
  ]
  const records = [...trace.answer, ...trace.authority]
  return `${steps}\n${verdict.map((line) => `${line}\n`).join('')}${records.length === 0 ? '' : `\n${recordLines(records)}`}`
}

/** Records in columns, without a header, as in a zone file. */
const recordLines = (records: readonly RecordJson[]): string =>
  table(
    ['NAME', 'TTL', 'TYPE', 'DATA'],
    records.map(({ name, ttlSeconds, type, data }) => [name, String(ttlSeconds), type, data])
  )
