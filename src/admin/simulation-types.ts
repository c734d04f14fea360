/** What `/api/v1/policies/NAME/simulate` answers; units as in api-types.ts. */
export type SimulatedOrderJson = Readonly<{
  /** Ids of the targets that are asked, first one first. */
  order: readonly string[]
  /** Ids of those among them that are only asked when no other one can be reached. */
  reserves: readonly string[]
  /** Ids of those that count as unreachable. */
  leftOut: readonly string[]
  /** Share (0 to 1) of names and clients that each target is asked first for. */
  firstShares: Readonly<Record<string, number>>
}>

export type SimulationJson = Readonly<{
  policy: string
  down: readonly string[]
  /** For whom it holds; `address` null: whoever is in that region. `region` is empty where none is known. */
  client: Readonly<{ address: string | null; region: string }>
  now: SimulatedOrderJson
  ifDown: SimulatedOrderJson
  /** Nobody could be asked: stale answers for so long, then SERVFAIL; null: somebody can. */
  staleForSeconds: number | null
  /** The names were not asked for: some of those that are cached of the policy's targets. */
  areExamples: boolean
  names: readonly Readonly<{ name: string; type: string; now: string; ifDown: string }>[]
}>
