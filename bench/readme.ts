/** The part of README.md that is made of the results. */
import type { OtherResults } from './aims.ts'
import type { BenchReport } from './joined.ts'
import { aimsTable, summaryOf } from './summary.ts'
import { markdownTable, milliseconds, missing, wholeText } from './tables.ts'

const begin = '<!-- Made by `npm run bench -- --draw --readme`. -->'
const end = '<!-- Until here. -->'

/** Which peerdns the figures are of: `a1b2c3d (2026-12-01): all cases`, or each with its cases. */
function measuredText({ throughput }: BenchReport): string {
  const cases = new Map<string, string[]>()
  for (const { shortTitle, measured } of throughput) {
    const key = `${measured.commit} (${measured.date}, ${measured.rounds} rounds of ${measured.seconds} s)`
    cases.set(key, [...(cases.get(key) ?? []), shortTitle])
  }
  if (cases.size === 1) return `peerdns at ${[...cases.keys()][0]}.`
  return `peerdns at ${[...cases].map(([key, titles]) => `${key}: ${titles.join(', ')}`).join('; ')}.`
}

const versionsText = ({ throughput }: BenchReport): string => {
  const versions = Object.assign({}, ...throughput.map(({ measured }) => measured.versions)) as Record<string, string>
  return `${Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ')}.`
}

function latencyTable({ latency }: BenchReport): string {
  const [first] = latency?.results ?? []
  if (latency === null || first === undefined) return ''
  const { commit } = latency.measured
  return `${markdownTable(
    [`uncached peered name, p50 / p99 ms, ${commit}`, ...first.rows.map(({ title }) => title)],
    latency.results.map(({ roundTripMs, rows }) => [
      `${roundTripMs} ms between clusters`,
      ...rows.map(({ p50Ms, p99Ms }) => `${milliseconds(p50Ms)} / ${milliseconds(p99Ms)}`)
    ])
  )}\n`
}

function startText({ start }: BenchReport): string {
  if (start === null) return ''
  const figures = start.rows.map(
    ({ title, input, tookMs }) => `${title}, ${input}: ${tookMs === null ? missing : wholeText(tookMs.median)} ms`
  )
  return `From executing the program to the first right answer, ${start.measured.commit}: ${figures.join('; ')}.\n`
}

export const readmePart = (report: BenchReport, others: OtherResults): string =>
  [
    `${begin}\n`,
    `${measuredText(report)}\n${versionsText(report)}\n`,
    aimsTable(report, others),
    summaryOf(report),
    latencyTable(report),
    startText(report),
    end
  ]
    .filter((part) => part !== '')
    .join('\n')

/** @throws Error where the text has no place for it */
export function withFigures(readme: string, part: string): string {
  const [from, to] = [readme.indexOf(begin), readme.indexOf(end)]
  if (from === -1 || to < from) throw new Error(`README.md has no lines \`${begin}\` and \`${end}\``)
  return `${readme.slice(0, from)}${part}${readme.slice(to + end.length)}`
}
