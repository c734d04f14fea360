/**
 * Weighted rendezvous hashing: which target a name and a client get, without any state.
 *
 * The choice is a pure function of `<svc>.<ns>` (else the whole name), the client's address, the target's id and a
 * window of 60 s. So all types of one Service come from the same target, every replica chooses alike, a target that
 * goes or comes moves only its own share, and shares hold over names, clients and windows alike.
 */
import { fnv1a, fnvOffset } from '../base/fnv1a.ts'
import type { DomainName } from '../wire/name.ts'

/** How long a choice holds. No answer's TTL reaches past the end of its window. */
export const choiceWindowMs = 60_000

/** Scrambles 32 bits, each of which then depends on all of them (the finalizer of MurmurHash3). */
export function scramble(hash: number): number {
  let h = hash | 0
  h = Math.imul(h ^ (h >>> 16), 0x85eb_ca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2_ae35)
  return (h ^ (h >>> 16)) >>> 0
}

export const hashText = (text: string): number => scramble(fnv1a(fnvOffset, text, 0, text.length))

/**
 * A hash of name and client, 32 bits: the same for all names of one Service, whatever the cluster's zone is called.
 *
 * @param service `<svc>.<ns>.svc.<zone>` that the name belongs to; null where the schema tells none.
 */
export function choiceHash(name: DomainName, service: DomainName | null, client: string): number {
  const key = service ?? name
  let end = key.length
  if (service !== null) {
    const namespaceAt = service.charCodeAt(0) + 1
    end = namespaceAt + service.charCodeAt(namespaceAt) + 1
  }
  return scramble(fnv1a(scramble(fnv1a(fnvOffset, key, 0, end)), client, 0, client.length))
}

/**
 * Windows of different names and clients end at different moments, so that not everybody asks again in the same one.
 */
const sinceStart = (hash: number, epochMs: number): number => epochMs + (hash % choiceWindowMs)

/** The hash of a choice in the window that it is in. */
export const hashInWindow = (hash: number, epochMs: number): number =>
  scramble(hash ^ scramble(Math.floor(sinceStart(hash, epochMs) / choiceWindowMs)))

/** How long the window still lasts, in milliseconds: above 0, up to its whole length. */
export const windowRestMs = (hash: number, epochMs: number): number =>
  choiceWindowMs - (sinceStart(hash, epochMs) % choiceWindowMs)

/** A number in (0, 1), uniform over hashes and independent between salts. */
export const uniformOf = (hash: number, salt: number): number => (scramble(hash ^ salt) + 0.5) / 0x1_0000_0000

/**
 * How far a target of this weight (above 0) lies from a choice: the nearest one is chosen, each with the probability
 * of its share of the weights, also among those that are left when some are out.
 */
export const distance = (hash: number, targetHash: number, weight: number): number =>
  -Math.log(uniformOf(hash, targetHash)) / weight
