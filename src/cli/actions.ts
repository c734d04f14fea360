/** What the commands that change a running server have in common: `--for`, `--reason`, and what they print. */
import type { Command } from 'commander'
import type { ActionJson, OverrideJson } from '../admin/api-types.ts'
import { AdminClient } from './admin-client.ts'
import type { CommandIo } from './command-io.ts'
import { print, type ListOptions } from './shared-options.ts'
import { elapsed, printable } from './table.ts'

export type OverrideOptions = ListOptions & Readonly<{ for?: string; reason?: string }>

export const withOverrideOptions = (command: Command): Command =>
  command
    .option('--for <duration>', 'it ends by itself after this time: 10m, 1h30m (default: when it is taken back)')
    .option('--reason <text>', 'why, for events, log and whoever comes next')

/** Sends an action that sets something, and prints what it did. */
export async function setOverride(
  io: CommandIo,
  path: string,
  options: OverrideOptions,
  done: (answer: ActionJson) => string
): Promise<void> {
  const by = io.env['USER'] ?? io.env['LOGNAME'] ?? ''
  const body = {
    ...(options.for === undefined ? {} : { for: options.for }),
    ...(options.reason === undefined ? {} : { reason: options.reason }),
    ...(by === '' ? {} : { by: by.slice(0, 64) })
  }
  const answer = await AdminClient.from(options.admin, io).post<ActionJson>(path, body)
  print(
    io,
    options,
    answer,
    (it) => `${done(it)} ${untilText(it.override)}; kept in ${printable(it.keptIn)}${replacedText(it)}\n`
  )
}

/** Sends an action that takes something back, and prints what it did. */
export async function takeBack(io: CommandIo, path: string, options: ListOptions, done: string): Promise<void> {
  const answer = await AdminClient.from(options.admin, io).post<ActionJson>(path, {})
  print(io, options, answer, ({ keptIn }) => `${done}; kept in ${printable(keptIn)}\n`)
}

/** One that is replaced may have held for longer, or for another reason. */
function replacedText({ action, replaced }: ActionJson): string {
  if (replaced === null) return ''
  const left = replaced.leftMs === null ? ' until it is taken back' : ''
  return `; before, it was ${overrideText(`${action === 'drain' ? 'drained' : 'disabled'}${left}`, replaced)}`
}

function untilText(override: OverrideJson | null): string {
  const until = override?.until ?? null
  return until === null ? 'until it is taken back' : `for ${elapsed(override!.leftMs)}, until ${until}`
}

/** `drained for 9m58s by alice: maintenance`. */
export function overrideText(what: string, override: OverrideJson): string {
  const { leftMs, by, reason } = override
  const left = leftMs === null ? '' : ` for ${elapsed(leftMs)}`
  return printable(`${what}${left}${by === '' ? '' : ` by ${by}`}${reason === '' ? '' : `: ${reason}`}`)
}
