/** `peerdns events`. */
import type { Command } from 'commander'
import type { EventJson, EventsJson } from '../admin/api-types.ts'
import { AdminClient } from './admin-client.ts'
import type { CommandIo } from './command-io.ts'
import { print, withAdmin, withExamples, withOutput, type ListOptions } from './shared-options.ts'
import { printable, table } from './table.ts'

type EventsOptions = ListOptions & Readonly<{ since?: string }>

export function addEvents(program: Command, io: CommandIo): void {
  const events = program
    .command('events')
    .description(
      'what happened lately, since the start: reloads, changes of health, drains, disabled policies; oldest first'
    )
    .option('--since <duration>', 'only the last so much time: 10m, 1h (default: all that is remembered)')
  withExamples(withAdmin(withOutput(events)), 'events --since 1h', 'events -o json').action(
    async ({ since, ...options }: EventsOptions) => {
      const answer = await AdminClient.from(options.admin, io).get<EventsJson>('/events', { since })
      print(io, options, answer, (it) => eventsText(it, since))
    }
  )
}

const eventsText = ({ events }: EventsJson, since: string | undefined): string =>
  events.length === 0
    ? `no events${since === undefined ? '' : ` in the last ${printable(since)}`}\n`
    : table(['TIME', 'KIND', 'ABOUT', 'WHAT'], events.map(eventRow))

const eventRow = ({ at, kind, peer, policy, endpoint, text }: EventJson): (string | null)[] => [
  at,
  kind,
  peer ?? policy ?? (endpoint === null ? null : printable(endpoint.of)),
  printable(text)
]
