/** Options that several commands have, said in the same words everywhere. */
import { Option, type Command } from 'commander'
import type { CommandIo } from './command-io.ts'

export type OutputOption = Readonly<{ output: 'table' | 'json' }>
export type AdminOption = Readonly<{ admin?: string }>
export type ListOptions = OutputOption & AdminOption

export const withOutput = (command: Command): Command =>
  command.addOption(new Option('-o, --output <format>', 'how to print').choices(['table', 'json']).default('table'))

export const withAdmin = (command: Command): Command =>
  command.option('--admin <url>', 'admin API of the server (default: $PEERDNS_ADMIN, else http://127.0.0.1:9154)')

export const withExamples = (command: Command, ...examples: readonly string[]): Command =>
  command.addHelpText('after', `\nExamples:\n${examples.map((example) => `  $ peerdns ${example}\n`).join('')}`)

/** Prints what the server said as it said it, or as text for people. */
export function print<Answer>(
  io: CommandIo,
  { output }: OutputOption,
  answer: Answer,
  text: (answer: Answer) => string
): void {
  io.out(output === 'json' ? `${JSON.stringify(answer, null, 2)}\n` : text(answer))
}
