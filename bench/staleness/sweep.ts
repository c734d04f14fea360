/** What a TTL costs: how many questions went on to cluster A while clients asked B, from B's own counters. */
import type { SweepFigures } from './figures.ts'
import type { SetUp } from './set-ups.ts'

export type Counters = ReadonlyMap<string, Readonly<{ queries: number; questionsToPeer: number }>>

export async function countersOf(setUps: readonly SetUp[]): Promise<Counters> {
  const counters = new Map<string, { queries: number; questionsToPeer: number }>()
  for (const { id, peerdns } of setUps) {
    if (peerdns === null) continue
    counters.set(id, {
      queries: (await peerdns.metric('peerdns_queries_total')) ?? 0,
      questionsToPeer: (await peerdns.metric('peerdns_peer_questions_total', 'result="answered"')) ?? 0
    })
  }
  return counters
}

export function sweepFigures(setUps: readonly SetUp[], before: Counters, after: Counters): SweepFigures[] {
  return setUps
    .filter(({ id }) => before.has(id))
    .map(({ id, title }) => {
      const queries = after.get(id)!.queries - before.get(id)!.queries
      const questionsToPeer = after.get(id)!.questionsToPeer - before.get(id)!.questionsToPeer
      return { title, queries, questionsToPeer, hitShare: 1 - questionsToPeer / queries }
    })
}
