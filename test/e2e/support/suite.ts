/** A suite on real clusters: one tap test with subtests that follow one another on the same ground. */
import { t as root, test, type Test } from 'tap'
import { whyNoClusters } from './part.ts'

/** Longer than tap gives a file, shorter than `test/e2e/run.ts` gives a suite. */
const suiteTimeoutMs = 280_000

/** Runs it, or skips it with the reason where no cluster can be had. A suite file has one of these. */
export function clusterSuite(title: string, body: (t: Test) => Promise<void>): void {
  root.setTimeout(suiteTimeoutMs)
  void test(title, { skip: whyNoClusters() ?? false, timeout: suiteTimeoutMs }, body)
}
