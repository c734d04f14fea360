/** The reporter is what all counts rest on, so it is given the streams in which tap says that something went wrong. */
import { test } from 'tap'
import Reporter from './reporter.ts'

/** What the reporter makes of a stream, and the exit code that it leaves. */
async function report(tap: string): Promise<{ text: string; exitCode: number | string | null | undefined }> {
  const reporter = new Reporter()
  const before = process.exitCode
  // In two pieces, as a pipe may give them.
  reporter.write(tap.slice(0, tap.length >> 1))
  reporter.end(tap.slice(tap.length >> 1))
  let text = ''
  for await (const chunk of reporter) text += String(chunk)
  const { exitCode } = process
  process.exitCode = before
  return { text, exitCode }
}

const file = (name: string, body: string, closing: string) => `# Subtest: ${name}\n${body}${closing} - ${name}\n\n`
const passing = file('good.test.ts', '    ok 1 - one\n    ok 2 - two\n    1..2\n    # time=5ms\n', 'ok 1')

const rows: { name: string; tap: string; last: string; exitCode: number | undefined; has?: RegExp }[] = [
  { name: 'passes', tap: `1..1\n${passing}`, last: '2 passed, 0 failed', exitCode: undefined },
  {
    name: 'an inner test counts by its assertions only',
    tap: `1..1\n${file('a.test.ts', '    # Subtest: in\n        ok 1 - x\n        1..1\n    ok 1 - in\n    1..1\n', 'ok 1')}`,
    last: '1 passed, 0 failed',
    exitCode: undefined
  },
  {
    name: 'a failure is shown whole',
    tap: `1..1\n${file('a.test.ts', '    ok 1 - x\n    not ok 2 - y\n      ---\n      found: 7\n      stack: |\n        a.ts:1\n        b.ts:2\n      ...\n    1..2\n', 'not ok 1')}`,
    last: '1 passed, 1 failed',
    exitCode: 1,
    has: /FAIL a\.test\.ts: 1 passed, 1 failed[^]*y\n {4}found: 7\n {4}stack:\n {6}a\.ts:1\n {6}b\.ts:2/
  },
  {
    name: 'a file without assertions fails, though tap calls it a skip',
    tap: `1..1\n# Subtest: a.test.ts\n    1..0 # no tests found\nok 1 - a.test.ts # SKIP no tests found\n`,
    last: '0 passed, 1 failed',
    exitCode: 1,
    has: /the file has no assertion/
  },
  {
    name: 'skips are counted and give their reason',
    tap: `1..1\n${file('a.test.ts', '    ok 1 - x # SKIP no python3\n    ok 2 - y\n    1..2\n', 'ok 1')}`,
    last: '1 passed, 0 failed, 1 skipped',
    exitCode: undefined,
    has: /skipped: x: no python3/
  },
  {
    name: 'a file that ends with a bad exit code fails, though its assertions passed',
    tap: `1..1\n${file('a.test.ts', '    ok 1 - x\n    1..1\n', 'not ok 1')}`,
    last: '1 passed, 1 failed',
    exitCode: 1,
    has: /ended badly/
  },
  {
    name: 'a killed file counts once, and a file that tap then never ran counts too',
    tap: `1..3\n${passing}${file('b.test.ts', '    not ok 1 - timeout!\n    1..1\n', 'not ok 2')}not ok 3 - timeout!\n  ---\n  expired: b.test.ts\n  ...\n`,
    last: '2 passed, 2 failed',
    exitCode: 1,
    has: /1 test files were not run/
  },
  { name: 'a stream that breaks off', tap: `1..2\n${passing}# Subtest: b`, last: '2 passed, 1 failed', exitCode: 1 },
  { name: 'nothing at all', tap: '', last: '0 passed, 1 failed', exitCode: 1, has: /no test file was run/ }
] // prettier-ignore

test('Reporter counts what happened', async (t) => {
  for (const { name, tap, last, exitCode, has } of rows) {
    const { text, exitCode: left } = await report(tap)
    t.equal(text.trimEnd().split('\n').at(-1), last, name)
    t.equal(left, exitCode, `${name}: exit code`)
    if (has !== undefined) t.match(text, has, `${name}: text`)
  }
})
