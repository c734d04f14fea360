/** Tables in Markdown, and figures as they stand in them. */
import type { Spread } from './statistics.ts'

export const missing = '–'

/** Left-aligned first column, the rest right-aligned, all padded: a table on the terminal too. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(3, ...[head, ...rows].map((row) => row[column]!.length), title.length)
  )
  const lineOf = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join(' | ')} |`
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [lineOf(head), lineOf(rule), ...rows.map(lineOf)].join('\n')
}

/** `12.3 (11.9–14.0)`: median, and the lowest and the highest run. */
export function spreadText(spread: Spread | null, toText: (value: number) => string): string {
  if (spread === null) return missing
  if (spread.runs === 1) return toText(spread.median)
  return `${toText(spread.median)} (${toText(spread.min)}–${toText(spread.max)})`
}

export const wholeText = (value: number): string => value.toFixed(0)
export const microseconds = (value: number): string => value.toFixed(1)
export const thousands = (value: number): string => `${(value / 1000).toFixed(1)}k`
export const milliseconds = (value: number): string => (value < 10 ? value.toFixed(2) : value.toFixed(1))
export const ratioText = (ratio: number | null): string => (ratio === null ? missing : `${ratio.toFixed(2)}x`)
/** `30k`. */
export const short = (rate: number): string => `${rate / 1000}k`
export const percent = (share: number): string => `${(share * 100).toFixed(0)} %`
