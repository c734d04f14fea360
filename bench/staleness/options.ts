/** The command line of `node bench/staleness.ts`. */
import { join } from 'node:path'
import { parseArgs } from 'node:util'

export const allParts = ['told', 'cached', 'link', 'sweep'] as const
export type PartName = (typeof allParts)[number]

export type StalenessOptions = Readonly<{
  parts: ReadonlySet<PartName>
  /** Endpoints that die where set-ups are compared; the sweep takes a quarter of that. */
  trials: number
  /** Changes of other endpoints a minute. */
  background: number
  /** Where results go; null: nowhere. */
  resultsFolder: string | null
}>

export const usage = `usage: node bench/staleness.ts [--only PART,PART] [--trials N] [--background N] [--out FOLDER | --no-files]

Two clusters with real API servers and controllers. Endpoints of A die, and a client on B asks for their names every 5 ms:
for how long is it still told the dead endpoint? Writes bench/results/staleness.md, .json and .svg; parts that are not
measured now keep the figures that these files hold.

  --only        of: ${allParts.join(', ')} (default: all)
  --trials      endpoints that die, 1 to 200 (default 200)
  --background  changes of other endpoints a minute, 0 to 6000 (default 1000)
  --out         folder for the results (default bench/results)
  --no-files    the tables on the terminal only`

/** @returns the options, or what is wrong with them */
export function parseOptions(args: readonly string[]): StalenessOptions | string {
  const text = { type: 'string' } as const
  let values
  try {
    ;({ values } = parseArgs({
      args: [...args],
      options: {
        only: text,
        trials: text,
        background: text,
        out: text,
        'no-files': { type: 'boolean', default: false }
      }
    }))
  } catch (error) {
    return (error as Error).message
  }
  const names = values.only?.split(',') ?? allParts
  const parts = allParts.filter((name) => names.includes(name))
  if (parts.length !== names.length) return `--only takes some of ${allParts.join(', ')}`
  const trials = wholeNumber(values.trials ?? '200', 1, 200)
  const background = wholeNumber(values.background ?? '1000', 0, 6_000)
  if (trials === null) return '--trials takes a whole number from 1 to 200'
  if (background === null) return '--background takes a whole number from 0 to 6000'
  const resultsFolder = values['no-files'] ? null : (values.out ?? join(import.meta.dirname, '..', 'results'))
  return { parts: new Set(parts), trials, background, resultsFolder }
}

function wholeNumber(text: string, min: number, max: number): number | null {
  const number = Number(text)
  return Number.isInteger(number) && number >= min && number <= max ? number : null
}
