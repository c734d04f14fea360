/** The part of README.md that is made of the results. */
import type { OtherResults } from './aims.ts'
import type { BenchReport } from './joined.ts'
import { aimsTable, summaryOf } from './summary.ts'

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

export const readmePart = (report: BenchReport, others: OtherResults): string =>
  [
    begin,
    '',
    `${measuredText(report)}\n${versionsText(report)}\n`,
    aimsTable(report, others),
    summaryOf(report),
    end
  ].join('\n')

/** @throws Error where the text has no place for it */
export function withFigures(readme: string, part: string): string {
  const [from, to] = [readme.indexOf(begin), readme.indexOf(end)]
  if (from === -1 || to < from) throw new Error(`README.md has no lines \`${begin}\` and \`${end}\``)
  return `${readme.slice(0, from)}${part}${readme.slice(to + end.length)}`
}
