/** The command line of `npm run bench`. */
import { parseArgs } from 'node:util'
import { allWorkloads } from './workloads.ts'

export const allCases: readonly string[] = [
  ...allWorkloads.map(({ id }) => id),
  'changes',
  'latency',
  'start',
  'staleness'
]

export type BenchOptions = Readonly<{
  cases: ReadonlySet<string>
  /** Of one run of dnsperf. */
  seconds: number
  /** How often every run is repeated. */
  rounds: number
  isQuick: boolean
  /** peerdns' option of that name: `off` measures it on plain node:dgram. */
  batching: 'auto' | 'off'
  /** peerdns' option of that name; other servers have one thread. */
  threads: number
  /** How long each run may wait until others leave the cores alone, in seconds. */
  patienceSeconds: number
  /** Where latest.md and latest.json go; null: nowhere. */
  resultsFolder: string | null
}>

export const usage = `usage: npm run bench -- [--only CASE,CASE] [--quick] [--seconds S] [--rounds N] [--patience S] [--batching off] [--threads N] [--out FOLDER | --no-files]

Compares peerdns with other servers in the same run and writes bench/results/latest.md, latest.json and latest.svg.

  --only      of: ${allCases.join(', ')} (default: all)
  --quick     one second and two rounds: whether everything runs, not for figures; writes no files unless --out is given
  --seconds   length of one run of dnsperf, 1 to 60 (default 3)
  --rounds    repetitions, of which the median counts, 1 to 25 (default 5)
  --patience  how long each run waits at most for a moment in which others leave the cores alone, 0 to 60 (default 2)
  --batching  peerdns' option of that name: auto (default), or off for plain node:dgram
  --threads   peerdns' option of that name, 1 to 64 (default 1)
  --out       folder for the results (default bench/results)
  --no-files  the table on the terminal only

On a machine that others use too, figures are only good with raised priority, as root:
  setsid sh -c 'echo -10 > /proc/self/autogroup; npm run bench'`

/** @returns the options, or what is wrong with them */
export function parseOptions(args: readonly string[]): BenchOptions | string {
  let values
  try {
    ;({ values } = parseArgs({
      args: [...args],
      options: {
        only: { type: 'string', multiple: true },
        quick: { type: 'boolean', default: false },
        seconds: { type: 'string' },
        rounds: { type: 'string' },
        patience: { type: 'string' },
        batching: { type: 'string', default: 'auto' },
        threads: { type: 'string', default: '1' },
        out: { type: 'string' },
        'no-files': { type: 'boolean', default: false }
      }
    }))
  } catch (error) {
    return (error as Error).message
  }
  const cases = values.only?.flatMap((list) => list.split(',')) ?? allCases
  const unknown = cases.find((id) => !allCases.includes(id))
  if (unknown !== undefined) return `no case \`${unknown}\`: it is one of ${allCases.join(', ')}`
  const seconds = wholeNumber(values.seconds ?? (values.quick ? '1' : '3'), 1, 60)
  const rounds = wholeNumber(values.rounds ?? (values.quick ? '2' : '5'), 1, 25)
  const patienceSeconds = wholeNumber(values.patience ?? (values.quick ? '0' : '2'), 0, 60)
  if (seconds === null) return '--seconds takes a whole number from 1 to 60'
  if (rounds === null) return '--rounds takes a whole number from 1 to 25'
  if (patienceSeconds === null) return '--patience takes a whole number from 0 to 60'
  const { batching } = values
  const threads = wholeNumber(values.threads, 1, 64)
  if (threads === null) return '--threads takes a whole number from 1 to 64'
  if (batching !== 'auto' && batching !== 'off') return '--batching takes auto or off'
  const out = values.out ?? (values.quick ? null : 'bench/results')
  const resultsFolder = values['no-files'] ? null : out
  const isQuick = values.quick
  return { cases: new Set(cases), seconds, rounds, isQuick, batching, threads, patienceSeconds, resultsFolder }
}

function wholeNumber(text: string, min: number, max: number): number | null {
  const number = Number(text)
  return Number.isInteger(number) && number >= min && number <= max ? number : null
}
