/** An answer before it becomes octets: what it says, where it comes from, how old it is, and why. */
import type { EdnsOption } from '../wire/edns.ts'
import { RCODE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import type { RRset, Sections } from '../wire/rr.ts'

export type Ede = Readonly<{ code: number; text: string }>

/** Where an answer's first owner was found. Ages in milliseconds. */
export type Origin =
  /**
   * `ageMs`: since the zone's source last proved that it follows the cluster; `changedAgoMs`: since the zone changed.
   */
  | Readonly<{ from: 'zone'; zone: DomainName; ageMs: number; changedAgoMs: number }>
  /** `ageMs`: since it came; `sourceAgeMs`: before that, since who gave it knew it to be right, where that is told. */
  | Readonly<{
      from: 'cache'
      target: string
      server: string
      ageMs: number
      sourceAgeMs: number
      staleForMs: number
    }>
  /** A copy of a peer's zone. `ageMs`: since it was known to be right where it comes from. */
  | Readonly<{ from: 'mirror'; zone: DomainName; target: string; server: string; ageMs: number; staleForMs: number }>
  | Readonly<{ from: 'peer' | 'upstream'; target: string; server: string; tookMs: number; sourceAgeMs: number }>
  /** Made here: refusals, errors, static addresses, denials by rule. */
  | Readonly<{ from: 'policy'; target: string | null }>

export type Answer = Readonly<{
  sections: Sections
  /** AA: the first owner is from a zone of ours. RFC 1035 §4.1.1. */
  authoritative: boolean
  origin: Origin
  /** Seconds that every TTL has already run down. */
  ageSeconds: number
  /** Cap of every TTL in seconds. */
  maxTtlSeconds: number
  /** No endpoint of the Service that the name belongs to is ready or serving. */
  isEmpty: boolean
  ede: readonly Ede[]
  /** The end of an alias that has still to be looked up, as our clients know the name; null: nothing is missing. */
  pendingAlias: DomainName | null
  /** Name of the policy that decided; null where none did. */
  policy: string | null
  /** What a peerdns that asks about a zone as a whole is told of its history; null for all other questions. */
  history: EdnsOption | null
}>

export const unlimitedTtlSeconds = 0x7fff_ffff

/** Since what is said was known to be right, as far as that is told, in milliseconds. */
export const knownAgeMs = ({ origin }: Answer): number =>
  ('ageMs' in origin ? origin.ageMs : 0) + ('sourceAgeMs' in origin ? origin.sourceAgeMs : 0)

/** For how long an answer has been stale, in milliseconds; 0: it is not. */
export const staleForMs = ({ origin }: Answer): number =>
  origin.from === 'cache' || origin.from === 'mirror' ? origin.staleForMs : 0

const noRRsets: readonly RRset[] = []
export const noEde: readonly Ede[] = []
const madeHere: Origin = { from: 'policy', target: null }

const emptySections = (rcode: number): Sections => ({
  rcode,
  answer: noRRsets,
  authority: noRRsets,
  additional: noRRsets
})

/** An answer without records: an error or a refusal, with its reasons. */
export function errorAnswer(rcode: number, ...ede: Ede[]): Answer {
  return answerOf(emptySections(rcode), { ede })
}

/** An answer with the usual values filled in. */
export function answerOf(sections: Sections, rest: Partial<Omit<Answer, 'sections'>> = {}): Answer {
  return {
    sections,
    authoritative: rest.authoritative ?? false,
    origin: rest.origin ?? madeHere,
    ageSeconds: rest.ageSeconds ?? 0,
    maxTtlSeconds: rest.maxTtlSeconds ?? unlimitedTtlSeconds,
    isEmpty: rest.isEmpty ?? false,
    ede: rest.ede ?? noEde,
    pendingAlias: rest.pendingAlias ?? null,
    policy: rest.policy ?? null,
    history: rest.history ?? null
  }
}

/** Whether the answer says that the name does not exist, or has no such records. */
export const isDenial = (sections: Sections): boolean =>
  sections.rcode === RCODE.NXDOMAIN || (sections.rcode === RCODE.NOERROR && sections.answer.length === 0)

/**
 * The sections with every TTL as it is now: run down by `ageSeconds` and capped by `maxTtlSeconds`.
 * Needed only where answers of different age are joined (an alias and its end).
 */
export function settledSections(answer: Answer): Sections {
  const { sections, ageSeconds, maxTtlSeconds } = answer
  if (ageSeconds === 0 && maxTtlSeconds === unlimitedTtlSeconds) return sections
  const settle = (rrsets: readonly RRset[]): RRset[] =>
    rrsets.map((rrset) => ({
      ...rrset,
      ttlSeconds: Math.max(0, Math.min(rrset.ttlSeconds - ageSeconds, maxTtlSeconds))
    }))
  return {
    rcode: sections.rcode,
    answer: settle(sections.answer),
    authority: settle(sections.authority),
    additional: settle(sections.additional)
  }
}

/** Lowest TTL in seconds of what the answer gives, as the client will see it; null where it has no records. */
export function lowestTtlSeconds(answer: Answer): number | null {
  const settled = settledSections(answer)
  const ttls = [...settled.answer, ...settled.authority].map((rrset) => rrset.ttlSeconds)
  return ttls.length === 0 ? null : Math.min(...ttls)
}
