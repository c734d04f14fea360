/** The files of results: what lies there, and what is drawn of it. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { OtherResults } from './aims.ts'
import { emptyReport, format, type BenchReport } from './joined.ts'
import type { OverloadResults } from './overload/demands.ts'
import { plotOf } from './plot.ts'
import { readmePart, withFigures } from './readme.ts'
import { markdownReport } from './report.ts'
import type { RestartResults } from './restart/results.ts'

const jsonIn = (file: string): unknown => (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null)

/** An empty report where there is no such file, or one of another format. @throws SyntaxError: it is no JSON */
export function readReport(file: string): BenchReport {
  const report = (jsonIn(file) ?? emptyReport) as BenchReport
  return report.format === format ? report : emptyReport
}

/** What overload.ts and restart.ts left there. @throws SyntaxError: it is no JSON */
export function readOtherResults(folder: string): OtherResults {
  const overload = jsonIn(join(folder, 'overload.json')) as OverloadResults | null
  const restart = jsonIn(join(folder, 'restart.json')) as RestartResults | null
  return { overload, restart }
}

/** @param readme the file whose part is written anew too; null: none */
export function draw(report: BenchReport, folder: string, readme: string | null): void {
  const others = readOtherResults(folder)
  writeFileSync(join(folder, 'latest.md'), markdownReport(report, others))
  if (report.throughput.length > 0) writeFileSync(join(folder, 'latest.svg'), plotOf(report))
  if (readme === null) return
  writeFileSync(readme, withFigures(readFileSync(readme, 'utf8'), readmePart(report, others)))
}
