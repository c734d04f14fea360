/** The files that the results are kept in: all parts in one JSON file, and what is made of it. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PartFigures } from './figures.ts'
import type { PartName } from './options.ts'
import { plotOf } from './plot.ts'
import { markdownOf } from './report.ts'

export type Results = { [Part in PartName]?: PartFigures }

const name = 'staleness'

export function readResults(folder: string): Results {
  const file = join(folder, `${name}.json`)
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Results) : {}
}

export function writeResults(results: Results, folder: string | null): void {
  const markdown = markdownOf(results)
  console.log(markdown)
  if (folder === null) return
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(results, null, 1)}\n`)
  writeFileSync(join(folder, `${name}.md`), markdown)
  const { cached, told, link } = results
  if (cached === undefined || told === undefined) return
  const parts = [cached, told, ...(link === undefined ? [] : [link])]
  writeFileSync(join(folder, `${name}.svg`), plotOf(parts))
}
