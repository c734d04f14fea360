/** Text for people: columns, times, colors. */
import { stripVTControlCharacters, styleText } from 'node:util'
import type { CommandIo } from './command-io.ts'

/** Rows below a header, each column as wide as its widest cell; null is a dash. The last column is not padded. */
export function table(header: readonly string[], rows: readonly (readonly (string | null)[])[]): string {
  const cells = [header, ...rows].map((row) => row.map((cell) => cell ?? '-'))
  const widths = header.map((_, column) => Math.max(...cells.map((row) => widthOf(row[column] ?? ''))))
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat(widths[column]! - widthOf(cell)))
        .join('  ')
        .trimEnd()
    )
    .map((line) => `${line}\n`)
    .join('')
}

/** Names and values, one on each line. */
export const fields = (rows: readonly (readonly [string, string | null])[]): string => {
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value ?? '-'}\n`).join('')
}

const widthOf = (text: string): number => stripVTControlCharacters(text).length

/**
 * Text of others (reasons, extended errors) without what could move the cursor or color the terminal.
 * Only our own styles come after this.
 */
// eslint-disable-next-line no-control-regex -- control characters are what this is about
export const printable = (text: string): string => text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e]+/g, ' ')

/** `1 answer`, `2 answers`; `1 policy`, `2 policies`. */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`

/** An age or a waiting time: `0.4ms`, `12ms`, `4.2s`, `3m20s`, `2h5m`, `3d4h`. */
export function elapsed(ms: number | null): string | null {
  if (ms === null) return null
  if (ms < 10) return `${Number(ms.toFixed(1))}ms`
  if (ms < 1_000) return `${Math.round(ms)}ms`
  if (ms < 60_000) return `${Number((ms / 1000).toFixed(1))}s`
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 60) return `${minutes}m${Math.floor((ms % 60_000) / 1000)}s`
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? `${hours}h${minutes % 60}m` : `${Math.floor(hours / 24)}d${hours % 24}h`
}

export const percent = (share: number | null): string | null =>
  share === null ? null : `${Number((share * 100).toFixed(1))}%`

const styles = { up: 'green', down: 'red', unknown: 'yellow', doubtful: 'yellow' } as const

export function healthText(health: keyof typeof styles, io: CommandIo): string {
  return io.colors ? styleText(styles[health], health, { validateStream: false }) : health
}
