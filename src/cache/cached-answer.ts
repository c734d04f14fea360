/** What the answer cache holds, takes in and hands out. */
import type { DomainName } from '../wire/name.ts'
import type { Sections } from '../wire/rr.ts'
import type { AnswerKey, KeyQuestion } from './answer-key.ts'
import type { AnswerKind, TtlCaps } from './retention.ts'

export type CachedAnswer = Readonly<{
  kind: AnswerKind
  /** As they came, but with every TTL capped; what has passed since is for the reader to subtract. */
  sections: Sections
  /** Monotonic. */
  storedAtMs: number
  /** From then on it is stale. */
  expiresAtMs: number
  ttlSeconds: number
  targetId: string
  /** Who answered. */
  server: string
  /** The target said that the Service has no endpoint that is ready or serving. */
  isEmpty: boolean
  /** Why the target gave no usable answer; null for answers. */
  failure: string | null
  /** Since who answered knew it to be right, when it came, in milliseconds; 0 where that is not told. */
  sourceAgeMs: number
  /** Owner of the SOA that a denial goes by; null for others. */
  zoneApex: DomainName | null
}> & {
  /** How often it was given out. */
  hits: number
  /** False once it has left the cache: replaced, flushed, expired or evicted. */
  isHeld: boolean
  /** When its place in the order of use was last renewed by `countUse`; monotonic milliseconds. */
  renewedAtMs: number
}

/** `staleForMs` is 0 while the TTL runs, and above 0 after that. */
export type CacheHit = Readonly<{ entry: CachedAnswer; ageMs: number; staleForMs: number }>

export type CacheListing = Readonly<{ key: AnswerKey; question: KeyQuestion; entry: CachedAnswer; sizeOctets: number }>

export type PutOptions = TtlCaps &
  Readonly<{ nowMs: number; targetId: string; server: string; isEmpty?: boolean; sourceAgeMs?: number }>

export type PutFailureOptions = Readonly<{
  nowMs: number
  targetId: string
  server: string
  ttlSeconds: number
  /** What went wrong, in words. */
  failure: string
}>

/** Which entries to list; what is left out matches all. */
export type CacheFilter = Readonly<{ suffix?: DomainName; targetId?: string; kind?: AnswerKind }>
