/** What a peerdns on B says itself of each death, beside what the observer saw: both count from the EndpointSlice's change. */
import type { PropagationJson } from '../../src/admin/api-types.ts'
import type { Trial } from './deaths.ts'
import { figuresOf, type Figures } from './figures.ts'
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
}>

export async function ownFigures(setUps: readonly SetUp[], trials: readonly Trial[]): Promise<OwnFigures[]> {
  const figures: OwnFigures[] = []
  for (const { id, title, toldAdminUrl } of setUps) {
    if (toldAdminUrl === null) continue
    const pairs: [own: number, observed: number][] = []
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
      else
        pairs.push([
          Math.max(...known.map(({ staleMs }) => staleMs ?? 0)),
          Math.max(0, lastStaleAtMs - (atMs + sliceMs))
        ])
    }
    const differences = pairs.map(([own, observed]) => Math.abs(own - observed))
    figures.push({
      title,
      difference: figuresOf(differences),
      within10Ms: differences.filter((ms) => ms <= 10).length / differences.length,
      missing,
      own: figuresOf(pairs.map(([own]) => own)),
      observed: figuresOf(pairs.map(([, observed]) => observed))
    })
  }
  return figures
}
