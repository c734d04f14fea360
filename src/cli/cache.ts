/** `peerdns cache show` and `peerdns cache flush`. */
import type { Command } from 'commander'
import type { CacheEntryJson, CacheJson, FlushJson } from '../admin/api-types.ts'
import { AdminClient } from './admin-client.ts'
import { answerIsNo, wrongUse, type CommandIo } from './command-io.ts'
import { print, withAdmin, withExamples, withOutput, type ListOptions } from './shared-options.ts'
import { elapsed, printable, table } from './table.ts'

type CacheOptions = ListOptions & Readonly<{ suffix?: string }>
type ShowOptions = CacheOptions & Readonly<{ limit: string }>

export function addCache(program: Command, io: CommandIo): void {
  const cache = program.command('cache').description('what peers and resolvers answered, and is kept')
  const show = cache
    .command('show')
    .description('cached answers, the one used last first; exit code 1 where a name or suffix has none')
    .argument('[name]', 'answers to questions for this name only')
    .option('--suffix <name>', 'answers at or below this name only')
    .option('--limit <number>', 'answers at most', '1000')
  withExamples(
    withAdmin(withOutput(show)),
    'cache show',
    'cache show api.backend.svc.cluster.local',
    'cache show --suffix backend.svc.cluster.local -o json'
  ).action(async (name: string | undefined, options: ShowOptions) => {
    refuseBoth(name, options.suffix)
    const { suffix, limit } = options
    const answer = await AdminClient.from(options.admin, io).get<CacheJson>('/cache', { name, suffix, limit })
    const wanted = name ?? suffix
    if (answer.entries.length === 0 && wanted !== undefined) throw answerIsNo(`nothing is cached for ${wanted}`)
    print(io, options, answer, cacheText)
    if (!answer.isComplete) io.err(`only the first ${answer.entries.length} are shown: --limit shows more\n`)
  })
  const flush = cache
    .command('flush')
    .description('forget cached answers: of one name, at or below a suffix, or all of them')
    .argument('[name]', 'answers that concern this name only')
    .option('--suffix <name>', 'answers at or below this name only')
  withExamples(
    withAdmin(withOutput(flush)),
    'cache flush',
    'cache flush api.backend.svc.cluster.local',
    'cache flush --suffix backend.svc.cluster.local'
  ).action(async (name: string | undefined, options: CacheOptions) => {
    refuseBoth(name, options.suffix)
    const { suffix } = options
    const what = name !== undefined ? { name } : suffix !== undefined ? { suffix } : { all: true }
    const answer = await AdminClient.from(options.admin, io).post<FlushJson>('/cache/flush', what)
    print(
      io,
      options,
      answer,
      ({ flushedEntries: count }) => `${count} cached ${count === 1 ? 'answer' : 'answers'} flushed\n`
    )
  })
}

function refuseBoth(name: string | undefined, suffix: string | undefined): void {
  if (name !== undefined && suffix !== undefined) throw wrongUse('a name or --suffix, not both')
}

const cacheText = ({ entries }: CacheJson): string =>
  entries.length === 0
    ? 'the cache is empty\n'
    : table(
        ['NAME', 'TYPE', 'TARGET', 'SERVER', 'AGE', 'TTL', 'HITS', 'DATA'],
        entries.map((entry) => [
          entry.name,
          entry.type,
          entry.target,
          entry.server || null,
          elapsed(entry.ageMs),
          entry.staleForMs > 0 ? `stale for ${elapsed(entry.staleForMs)}` : String(entry.ttlSeconds),
          String(entry.hits),
          dataText(entry)
        ])
      )

function dataText(entry: CacheEntryJson): string {
  if (entry.failure !== null) return `failed: ${printable(entry.failure)}`
  if (entry.kind !== 'positive') return entry.kind.toUpperCase()
  return entry.records.map(({ data }) => data).join(', ')
}
