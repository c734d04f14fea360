/** `peerdns records list`. */
import type { Command } from 'commander'
import type { RecordJson, RecordsJson } from '../admin/api-types.ts'
import { AdminClient } from './admin-client.ts'
import { answerIsNo, type CommandIo } from './command-io.ts'
import { print, withAdmin, withExamples, withOutput, type ListOptions } from './shared-options.ts'
import { table } from './table.ts'

type RecordsOptions = ListOptions & Readonly<{ zone?: string; peer?: string; filter?: readonly string[] }>

const pageRecords = 10_000

export function addRecords(program: Command, io: CommandIo): void {
  const records = program.command('records').description('records of the zones that are answered here')
  const list = records
    .command('list')
    .description('NAME TYPE TTL DATA of a zone; exit code 1 where nothing matches')
    .option('--zone <name>', "zone (default: the cluster's own)")
    .option('--peer <name>', "the copy of this peer's zone, where several are called alike")
    .option('--filter <key=value...>', 'name=NAME, suffix=NAME or type=TYPE; several must all hold')
  withExamples(
    withAdmin(withOutput(list)),
    'records list --zone cluster.local',
    'records list --zone cluster.local --filter name=api.backend.svc.cluster.local',
    'records list --filter suffix=backend.svc.cluster.local type=SRV -o json'
  ).action(async (options: RecordsOptions) => {
    const answer = await everyPage(AdminClient.from(options.admin, io), options)
    if (answer.records.length === 0) throw answerIsNo(`no record of ${answer.zone} matches`)
    print(io, options, answer, recordsText)
  })
}

/**
 * Asks page by page; where the zone changed on the way it says so, since a record may then be missing or stand twice.
 */
async function everyPage(
  client: AdminClient,
  { zone, peer, filter }: RecordsOptions
): Promise<RecordsJson & { isSnapshot: boolean }> {
  const records: RecordJson[] = []
  let firstSerial: number | null = null
  for (;;) {
    const offset = String(records.length)
    const page = await client.get<RecordsJson>('/records', { zone, peer, filter, offset, limit: String(pageRecords) })
    firstSerial ??= page.serial
    for (const record of page.records) records.push(record)
    if (page.isComplete || page.records.length === 0) {
      return { ...page, records, isSnapshot: page.serial === firstSerial }
    }
  }
}

const recordsText = ({ records }: RecordsJson): string =>
  table(
    ['NAME', 'TYPE', 'TTL', 'DATA'],
    records.map(({ name, type, ttlSeconds, data }) => [name, type, String(ttlSeconds), data])
  )
