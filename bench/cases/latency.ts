/**
 * What a client waits for a peered name that nobody has asked yet: through two real servers with a relay between them
 * that takes its time. One question at a time, each name once, one server after the other with the same name.
 */
import { fileURLToPath } from 'node:url'
import { Asker, isAsExpected } from '../ask.ts'
import { startChild, type Child } from '../children.ts'
import { percentile } from '../statistics.ts'
import type { Place, ServerPlan } from '../rivals/server-plan.ts'
import { freshQuestions, peeredWorkload } from '../workloads.ts'
import type { Workspace } from '../workspace.ts'

/** Round-trip times between the clusters. */
const roundTripsMs = [0, 50]
const answerTimeoutMs = 3_000

export type LatencyRow = Readonly<{
  title: string
  setUp: string
  questions: number
  /** No answer in time, or a wrong one; these are in no percentile. */
  failed: number
  p50Ms: number
  p99Ms: number
  maxMs: number
}>

export type LatencyResult = Readonly<{ roundTripMs: number; rows: readonly LatencyRow[] }>

/** Makes the plans of the servers that ask the other cluster at this port. */
export type ForwardersTo = (peerPort: number) => Promise<ServerPlan[]>

/** @param peerPort where cluster A's server listens */
export async function measureLatency(
  workspace: Workspace,
  peerPort: number,
  forwardersTo: ForwardersTo,
  questions: number
): Promise<LatencyResult[]> {
  const results: LatencyResult[] = []
  for (const roundTripMs of roundTripsMs) {
    workspace.say(`uncached peered names, ${roundTripMs} ms between the clusters`)
    const place = await workspace.place()
    const children = [await startRelay(workspace, place, peerPort, roundTripMs / 2)]
    try {
      const direct: ServerPlan = {
        id: 'peerdns',
        title: 'asking cluster A itself',
        setUp: 'no server between',
        command: '',
        args: [],
        port: place.port
      }
      const targets = [direct]
      for (const plan of await forwardersTo(place.port)) {
        const { expected, questions } = peeredWorkload
        try {
          // A name of the other suffix: what is set up with the first question is there, but no answer that is timed.
          children.push(await workspace.start(plan, { question: questions[0]!, expected }, null))
          targets.push(plan)
        } catch (error) {
          workspace.say(`left out: ${(error as Error).message}`)
        }
      }
      results.push({ roundTripMs, rows: await timeEach(targets, questions) })
    } finally {
      for (const child of children) await child.stop()
    }
  }
  return results
}

async function startRelay(workspace: Workspace, place: Place, peerPort: number, delayMs: number): Promise<Child> {
  const file = fileURLToPath(new URL('../relay.ts', import.meta.url))
  const addresses = ['--listen', `127.0.0.1:${place.port}`, '--to', `127.0.0.1:${peerPort}`]
  const args = [file, ...addresses, '--delay-ms', String(delayMs)]
  const logFile = `${place.folder}/relay.log`
  return startChild(process.execPath, args, { core: null, cwd: workspace.folder, logFile })
}

async function timeEach(targets: readonly ServerPlan[], questions: number): Promise<LatencyRow[]> {
  const askers = await Promise.all(targets.map(async ({ port }) => Asker.to(port)))
  const tookMs: number[][] = targets.map(() => [])
  const failed = targets.map(() => 0)
  for (const question of freshQuestions.slice(0, questions)) {
    for (const [at, asker] of askers.entries()) {
      const answer = await asker.ask(question, answerTimeoutMs)
      if (answer !== null && isAsExpected(answer.message, peeredWorkload.expected)) tookMs[at]!.push(answer.tookMs)
      else failed[at]!++
    }
  }
  for (const asker of askers) asker.close()
  return targets.map(({ title, setUp }, at) => {
    const sorted = Float64Array.from(tookMs[at]!).sort()
    const [p50Ms, p99Ms, maxMs] = [0.5, 0.99, 1].map((share) => percentile(sorted, share))
    return { title, setUp, questions, failed: failed[at]!, p50Ms: p50Ms!, p99Ms: p99Ms!, maxMs: maxMs! }
  })
}
