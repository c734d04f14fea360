/**
 * What a peerdns on B says itself of each death, beside what the observer saw: both count from the EndpointSlice's
 * change.
 */
import type { PropagationJson } from '../../src/admin/api-types.ts'
import type { Trial } from './deaths.ts'
import { figuresOf, type Figures } from './figures.ts'
import { monotonicMs } from './monotonic.ts'
import type { SetUp } from './set-ups.ts'

export type OwnFigures = Readonly<{
  title: string
  /** How far both are apart. */
  difference: Figures
  /** Share of the deaths where that is 10 ms or less. */
  within10Ms: number
  /** Deaths of which it knows no change, though the observer saw stale answers. */
  missing: number
  own: Figures
  observed: Figures
  /** How far apart both take the change itself: A's watch, by the time that it told, and the observer's. */
  origin?: Figures
  /** How far apart both take the last stale answer. */
  lastStale?: Figures
}>

type Pair = Readonly<{ own: number; observed: number; originApart: number; lastStaleApart: number }>

export async function ownFigures(setUps: readonly SetUp[], trials: readonly Trial[]): Promise<OwnFigures[]> {
  const figures: OwnFigures[] = []
  const epochOfMonotonicMs = Date.now() - monotonicMs()
  for (const { id, title, toldAdminUrl } of setUps) {
    if (toldAdminUrl === null) continue
    const pairs: Pair[] = []
    let missing = 0
    for (const { name, atMs, sliceMs, bySetUp } of trials) {
      const { lastStaleAtMs } = bySetUp[id]!
      if (lastStaleAtMs === null || sliceMs === null) continue
      const response = await fetch(`${toldAdminUrl}/api/v1/propagation?name=${name}`)
      const { changes } = (await response.json()) as PropagationJson
      // A pod that goes leaves its Service's name in one change, and its own name in the same.
      const known = changes.filter(({ peer }) => peer !== null)
      if (known.length === 0) missing++
      // Answers from before the slice's change were right as far as any DNS server could know.
      else {
        const last = known.reduce((one, other) => ((other.staleMs ?? 0) > (one.staleMs ?? 0) ? other : one))
        const own = last.staleMs ?? 0
        const originAtMs = Date.parse(last.originAt) - epochOfMonotonicMs
        pairs.push({
          own,
          observed: Math.max(0, lastStaleAtMs - (atMs + sliceMs)),
          originApart: Math.abs(originAtMs - (atMs + sliceMs)),
          lastStaleApart: Math.abs(originAtMs + own - lastStaleAtMs)
        })
      }
    }
    const differences = pairs.map(({ own, observed }) => Math.abs(own - observed))
    figures.push({
      title,
      difference: figuresOf(differences),
      within10Ms: differences.filter((ms) => ms <= 10).length / differences.length,
      missing,
      own: figuresOf(pairs.map(({ own }) => own)),
      observed: figuresOf(pairs.map(({ observed }) => observed)),
      origin: figuresOf(pairs.map(({ originApart }) => originApart)),
      lastStale: figuresOf(pairs.map(({ lastStaleApart }) => lastStaleApart))
    })
  }
  return figures
}
