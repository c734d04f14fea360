/** The command line of `npm run bench`. */
import { parseArgs } from 'node:util'
import {
  allWorkloads,
  batchingWorkloads,
  changesWorkloads,
  fewNamesWorkload,
  threadsWorkloads,
  type WorkloadId
} from './workloads.ts'

/** Cases that only say something beside each other, by the name they are asked for with: measured in the same rounds. */
const groups: Readonly<Record<string, readonly WorkloadId[]>> = {
  'names-100k': [fewNamesWorkload.id, 'names-100k'],
  changes: changesWorkloads.map(({ id }) => id),
  threads: threadsWorkloads.map(({ id }) => id),
  batching: batchingWorkloads.map(({ id }) => id)
}
const grouped: ReadonlySet<string> = new Set(Object.values(groups).flat())

/** Commands with results of their own, which a run of everything ends with. */
export const otherCommands = ['overload', 'restart', 'staleness'] as const

export const allCases: readonly string[] = [
  ...allWorkloads.map(({ id }) => id).filter((id) => !grouped.has(id)),
  ...Object.keys(groups),
  'latency',
  'start',
  ...otherCommands
]
/** For the impatient: what the aims are about, as far as it takes no large cluster. */
const quickCases = ['cluster-a', 'peered', 'changes', 'threads']

export type BenchOptions = Readonly<{
  /** Workloads and other cases. */
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
  /** Where latest.md, latest.json and latest.svg go; null: nowhere. */
  resultsFolder: string | null
  /** Nothing is measured: the results that are there are drawn anew. */
  isDrawnOnly: boolean
  /** README.md gets its tables too. */
  hasReadme: boolean
}>

export const usage = `usage: npm run bench -- [--only CASE,CASE] [--quick] [--seconds S] [--rounds N] [--patience S] [--batching off] [--threads N]
                        [--out FOLDER | --no-files] [--draw] [--readme]

Compares peerdns with other servers in the same run. Results join those of earlier runs in bench/results/latest.json: a case takes the
place of the same case, all others stay. latest.md and latest.svg are drawn from all of them. Everything takes about an hour.

  --only      of: ${allCases.join(', ')} (default: all)
  --quick     ${quickCases.join(', ')}, two rounds: three minutes; writes no files unless --out is given
  --seconds   length of one run of dnsperf, 1 to 60 (default 1)
  --rounds    repetitions, of which the median counts, 1 to 25 (default 5)
  --patience  how long each run waits at most for a moment in which others leave the cores alone, 0 to 60 (default 2)
  --batching  peerdns' option of that name in all cases: auto (default), or off for plain node:dgram
  --threads   peerdns' option of that name in all cases, 0 to 64 (default 1)
  --out       folder for the results (default bench/results; none where --batching or --threads is given, since these would join the others)
  --no-files  the tables on the terminal only
  --draw      measures nothing, and draws the results that are there anew
  --readme    writes the tables into README.md too

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
        draw: { type: 'boolean', default: false },
        readme: { type: 'boolean', default: false },
        'no-files': { type: 'boolean', default: false }
      }
    }))
  } catch (error) {
    return (error as Error).message
  }
  const cases = values.only?.flatMap((list) => list.split(',')) ?? (values.quick ? quickCases : allCases)
  const unknown = cases.find((id) => !allCases.includes(id))
  if (unknown !== undefined) return `no case \`${unknown}\`: it is one of ${allCases.join(', ')}`
  const seconds = wholeNumber(values.seconds ?? '1', 1, 60)
  const rounds = wholeNumber(values.rounds ?? (values.quick ? '2' : '5'), 1, 25)
  const patienceSeconds = wholeNumber(values.patience ?? (values.quick ? '0' : '2'), 0, 60)
  if (seconds === null) return '--seconds takes a whole number from 1 to 60'
  if (rounds === null) return '--rounds takes a whole number from 1 to 25'
  if (patienceSeconds === null) return '--patience takes a whole number from 0 to 60'
  const { batching } = values
  const threads = wholeNumber(values.threads, 0, 64)
  if (threads === null) return '--threads takes a whole number from 0 to 64'
  if (batching !== 'auto' && batching !== 'off') return '--batching takes auto or off'
  const isUsual = batching === 'auto' && threads === 1 && !values.quick
  const out = values.out ?? (isUsual ? 'bench/results' : null)
  const resultsFolder = values['no-files'] ? null : out
  const isQuick = values.quick
  return {
    cases: new Set(cases.flatMap((id): readonly string[] => groups[id] ?? [id])),
    seconds,
    rounds,
    isQuick,
    batching,
    threads,
    patienceSeconds,
    resultsFolder,
    isDrawnOnly: values.draw,
    hasReadme: values.readme
  }
}

function wholeNumber(text: string, min: number, max: number): number | null {
  const number = Number(text)
  return Number.isInteger(number) && number >= min && number <= max ? number : null
}
