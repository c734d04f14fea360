/**
 * The test reporter: one line for each test file, every failure in full, every skip with its reason, and as the last
 * line `N passed, N failed` with the counts of all assertions.
 *
 * A file that ran no assertion counts as a failure, since it proves nothing; so does one that ended badly without a
 * failed assertion (it did not load, or was killed), and one that tap never came to.
 */
import { writeSync } from 'node:fs'
import { relative } from 'node:path'
import { Transform, type TransformCallback } from 'node:stream'
import { inspect } from 'node:util'
import { Parser, type Result } from 'tap-parser'

type Counts = { passed: number; failed: number; skipped: number }

/** What one test file did; `output` is what it wrote beside its results. */
type FileReport = Counts & { file: string; failures: string[]; skips: string[]; output: string[] }

const indent = (text: string, columns: number) => text.trimEnd().replaceAll(/^/gm, ' '.repeat(columns))

/** A failure's details: texts as they are (stack, diff, source), everything else on one line. */
function diagText(diag: unknown): string {
  if (typeof diag !== 'object' || diag === null) return ''
  return Object.entries(diag)
    .map(([key, value]) => {
      if (typeof value === 'string') return value.includes('\n') ? `${key}:\n${indent(value, 2)}` : `${key}: ${value}`
      return `${key}: ${inspect(value, { breakLength: Infinity, depth: 8 })}`
    })
    .join('\n')
}

const reasonOf = (result: Result) => {
  const reason = result.skip || result.todo
  return typeof reason === 'string' ? reason : 'no reason given'
}

export default class Reporter extends Transform {
  readonly #parser = new Parser()
  readonly #total: Counts = { passed: 0, failed: 0, skipped: 0 }
  readonly #failedFiles = new Set<string>()
  #plannedFiles = 0
  #reportedFiles = 0
  #hasSummary = false

  constructor() {
    super()
    let current = this.#emptyReport('')
    this.#parser.on('plan', (plan: { end: number }) => (this.#plannedFiles = plan.end))
    this.#parser.on('child', (child: Parser) => {
      current = this.#emptyReport(child.name)
      this.#watch(child, '', current)
    })
    this.#parser.on('assert', (result: Result) => {
      if (result.closingTestPoint) this.#finishFile(result, current)
      else if (!result.ok) this.#finishStray(result)
    })
    this.#parser.on('extra', (text: string) => current.output.push(text))
    this.#parser.on('bailout', (reason: string) => {
      this.#total.failed++
      this.push(`Bail out! ${reason}\n`)
    })
    // Without this a runner that exits early would end without a last line, and look as if nothing had been counted.
    process.once('exit', () => {
      if (!this.#hasSummary) writeSync(1, `${this.#summary()}\n`)
    })
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#parser.write(chunk)
    done()
  }

  override _flush(done: TransformCallback): void {
    this.#parser.end()
    const summary = this.#summary()
    this.#hasSummary = true
    if (this.#total.failed > 0) process.exitCode = 1
    this.push(`${summary}\n`)
    done()
  }

  #emptyReport(file: string): FileReport {
    return { file, passed: 0, failed: 0, skipped: 0, failures: [], skips: [], output: [] }
  }

  /**
   * Counts the assertions of one test and of the tests inside it; the point that closes an inner test is none itself.
   */
  #watch(parser: Parser, title: string, report: FileReport): void {
    parser.on('child', (child: Parser) => this.#watch(child, `${title}${child.name} > `, report))
    parser.on('assert', (result: Result) => {
      if (result.closingTestPoint && !result.skip && !result.todo) return
      if (result.skip || result.todo) {
        report.skipped++
        report.skips.push(`${title}${result.name}: ${reasonOf(result)}`)
      } else if (result.ok) {
        report.passed++
      } else {
        report.failed++
        report.failures.push(`${title}${result.name}\n${indent(diagText(result.diag), 4)}`)
      }
    })
  }

  #finishFile(closing: Result, report: FileReport): void {
    this.#reportedFiles++
    if (report.passed + report.failed + report.skipped === 0) {
      const why = closing.ok ? 'the file has no assertion' : 'the file ended before its first assertion'
      this.#addFailure(report, why, closing)
    } else if (!closing.ok && report.failed === 0) {
      this.#addFailure(report, 'the file ended badly after its last assertion', closing)
    }
    if (report.failed > 0) this.#failedFiles.add(report.file)
    this.#total.passed += report.passed
    this.#total.failed += report.failed
    this.#total.skipped += report.skipped
    const skipped = report.skipped > 0 ? `, ${report.skipped} skipped` : ''
    const seconds = ((closing.time ?? 0) / 1000).toFixed(1)
    const mark = report.failed > 0 ? 'FAIL' : 'ok  '
    this.push(`${mark} ${report.file}: ${report.passed} passed, ${report.failed} failed${skipped} (${seconds} s)\n`)
    for (const skip of report.skips) this.push(`     skipped: ${skip}\n`)
    if (report.failed === 0) return
    for (const failure of report.failures) this.push(`\n  ${failure.trimEnd()}\n`)
    if (report.output.length > 0) this.push(`\n  what the file wrote:\n${indent(report.output.join(''), 4)}\n`)
    this.push('\n')
  }

  /** A failed point that belongs to no file: tap adds one for each file it killed, which has been counted already. */
  #finishStray(result: Result): void {
    const expired = (result.diag as { expired?: string } | null)?.expired
    if (expired !== undefined && this.#failedFiles.has(relative(process.cwd(), expired))) return
    this.#total.failed++
    this.push(`FAIL ${result.name}\n${indent(diagText(result.diag), 4)}\n\n`)
  }

  #addFailure(report: FileReport, why: string, closing: Result): void {
    report.failed++
    report.failures.push(`${why}\n${indent(diagText(closing.diag), 4)}`)
  }

  /** The last line. Files that were planned and never reported are failures: tap loses some when it kills others. */
  #summary(): string {
    const missing = Math.max(0, this.#plannedFiles - this.#reportedFiles)
    let text = ''
    if (missing > 0) text = `FAIL ${missing} test files were not run\n`
    else if (this.#reportedFiles === 0) text = 'FAIL no test file was run\n'
    if (text !== '') this.#total.failed += Math.max(1, missing)
    const { passed, failed, skipped } = this.#total
    return `${text}\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
  }
}
