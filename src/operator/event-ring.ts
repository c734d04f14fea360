/**
 * What happened lately, for people: reloads, changes of health, drains. Bounded: the oldest are forgotten, and a
 * restart forgets all; what is still in force is then told anew, with its own time.
 *
 * Health has a ring of its own, so that a server which flaps cannot push out what an operator did.
 */
import type { Clock } from '../base/clock.ts'
import { eventRingEntries, eventTextCharacters, healthEventRingEntries } from '../base/limits.ts'

/**
 * - `start`, `reload`, `reload-refused`: of the configuration.
 * - `health`: a server of a peer, or an address that is probed, went up or down.
 * - `drain`, `undrain`: of a peer. `disable`, `enable`: of a policy, or of all.
 * - `overrides`: what is known of drains and disabled policies could not be read, or can be again.
 */
export type EventKind =
  'start' | 'reload' | 'reload-refused' | 'health' | 'drain' | 'undrain' | 'disable' | 'enable' | 'overrides'

export type ServerEvent = Readonly<{
  /** Counts up from 1 with each event of this process. */
  sequence: number
  atEpochMs: number
  kind: EventKind
  /** Name of the peer it is about; null where it is about none. */
  peer: string | null
  /** Name of the policy it is about; null where it is about none, or about all. */
  policy: string | null
  /** The address that it is about, how it is checked, and for which policies or Services, in words. */
  endpoint: EventEndpoint | null
  text: string
}>

export type EventEndpoint = Readonly<{ address: string; check: string; of: string }>

export type NewEvent = Readonly<{
  kind: EventKind
  peer?: string
  policy?: string
  endpoint?: EventEndpoint
  text: string
  /** When it happened, where that is not now. */
  atEpochMs?: number
}>

export class EventRing {
  /** Events by kind since the start. */
  readonly counts = new Map<EventKind, number>()
  readonly #clock: Clock
  readonly #health: ServerEvent[] = []
  readonly #others: ServerEvent[] = []
  #sequence = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add({ kind, peer, policy, endpoint, text, atEpochMs }: NewEvent): void {
    const isHealth = kind === 'health'
    const ring = isHealth ? this.#health : this.#others
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1)
    ring.push({
      sequence: ++this.#sequence,
      atEpochMs: atEpochMs ?? this.#clock.epochMs(),
      kind,
      peer: peer ?? null,
      policy: policy ?? null,
      endpoint: endpoint ?? null,
      text: text.length > eventTextCharacters ? `${text.slice(0, eventTextCharacters - 1)}…` : text
    })
    if (ring.length > (isHealth ? healthEventRingEntries : eventRingEntries)) ring.shift()
  }

  /** Events at or after a moment, oldest first. */
  since(epochMs: number): ServerEvent[] {
    return [...this.#health, ...this.#others]
      .filter(({ atEpochMs }) => atEpochMs >= epochMs)
      .sort((one, other) => one.atEpochMs - other.atEpochMs || one.sequence - other.sequence)
  }

  /** The last event that an item of any of these names is about; null where none is known. */
  lastAbout(about: (event: ServerEvent) => boolean): ServerEvent | null {
    const [health, other] = [this.#health.findLast(about), this.#others.findLast(about)]
    if (health === undefined || other === undefined) return health ?? other ?? null
    return health.sequence > other.sequence ? health : other
  }
}
