/**
 * Runs the slow suites, each as its own process, and adds up what they count: `node test/e2e/run.ts [name...]`, for
 * instance `story` or `mutated`. Those that look at how late clients are answered come first and run alone. Then those
 * that mostly wait run, two at a time, beside the others, which follow one another; what they say is shown when they
 * end.
 *
 * A suite is a file of this folder, and a minute of mutated packets. Its last line is `N passed, N failed`; files named
 * `*.test.ts` run under tap, whose reporter prints it. A suite that prints none counts as one failure, and so does one
 * that ends badly without counting any.
 */
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..', '..')
/** A suite that hangs is ended after this. */
const suiteTimeoutMs = 300_000

/** Suites that look at tenths of a second: nothing of ours runs beside them. */
const alone = new Set(['failover.test.ts', 'freshness.test.ts'])
/** Suites that spend their time on timeouts, rates and disks, not on the processor; the longest first. */
const mostlyWaiting = [
  'live-faults.test.ts',
  'endpoint-probes.test.ts',
  'image.test.ts',
  'leases.test.ts',
  'mutated-packets.ts'
]

type Suite = Readonly<{ name: string; args: readonly string[] }>
type Counts = { passed: number; failed: number; skipped: number }

const tap = [
  join(root, 'node_modules', '.bin', 'tap'),
  '--disable-coverage',
  '--timeout=290',
  '--reporter=./test/support/reporter.ts'
]

const suites: Suite[] = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith('.ts') && file !== 'run.ts')
  .map((file) => ({ name: file, args: [...(file.endsWith('.test.ts') ? tap : []), join('test', 'e2e', file)] }))
// The same packets each time; `npm run soak` draws others.
suites.push({ name: 'mutated-packets.ts', args: ['test/soak/mutated-packets.ts', '60', '20261130'] })

/** Runs a suite with its output handed to `show` as it comes, and gives the counts of its last line. */
async function runSuite({ name, args }: Suite, show: (text: string) => void): Promise<Counts> {
  // A group of its own: what the suite started ends with it.
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const endGroup = () => {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {
      // Nobody is left.
    }
  }
  const timer = setTimeout(endGroup, suiteTimeoutMs)
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
    show(chunk.toString())
  })
  child.stderr.on('data', (chunk: Buffer) => show(chunk.toString()))
  const status = await new Promise<number | string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'))
  })
  clearTimeout(timer)
  endGroup()
  const line = /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/.exec(output.trimEnd().split('\n').at(-1) ?? '')
  const counts = { passed: Number(line?.[1] ?? 0), failed: Number(line?.[2] ?? 0), skipped: Number(line?.[3] ?? 0) }
  if (counts.failed === 0 && (line === null || status !== 0 || counts.passed + counts.skipped === 0)) {
    counts.failed = 1
    show(`FAIL ${name} ended (${status}) ${line === null ? 'without its counts' : 'badly'}\n`)
  }
  return counts
}

const wanted = process.argv.slice(2)
const total: Counts = { passed: 0, failed: 0, skipped: 0 }
const summary: string[] = []
const chosen = suites.filter(({ name }) => wanted.length === 0 || wanted.some((word) => name.includes(word)))

/** Takes suites from the list until it is empty; several may do so at once. */
async function runAll(left: Suite[], isShownAtOnce: boolean): Promise<void> {
  for (let suite = left.shift(); suite !== undefined; suite = left.shift()) {
    const held: string[] = [`\n== ${suite.name}\n`]
    const show = (text: string): void => void (isShownAtOnce ? process.stdout.write(text) : held.push(text))
    if (isShownAtOnce) process.stdout.write(held.pop()!)
    const startMs = performance.now()
    const counts = await runSuite(suite, show)
    process.stdout.write(held.join(''))
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1)
    summary.push(`${suite.name}: ${counts.passed} passed, ${counts.failed} failed (${seconds} s)`)
    total.passed += counts.passed
    total.failed += counts.failed
    total.skipped += counts.skipped
  }
}

const waiting = mostlyWaiting.flatMap((name) => chosen.filter((suite) => suite.name === name))
const working = chosen.filter(({ name }) => !mostlyWaiting.includes(name) && !alone.has(name))
await runAll(chosen.filter(({ name }) => alone.has(name)), true) // prettier-ignore
await Promise.all([
  runAll(working, true),
  runAll(waiting, working.length + waiting.length === 1),
  runAll(waiting, false)
])
if (summary.length === 0) {
  total.failed = 1
  summary.push(`no suite is called ${wanted.join(' or ')}`)
}
console.log(`\n${summary.join('\n')}`)
console.log(`${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ''}`)
process.exitCode = total.failed > 0 ? 1 : 0
