/**
 * Copies of other clusters' zones that a hub gives on to the resolvers on its own nodes, so that those send nothing to
 * other clusters. With them goes how old they are, by which history, and when their changes happened.
 */
import type { DomainName } from '../wire/name.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import type { PodMode } from './private-records.ts'

/** A copy as it is now, and what is told beside its records. */
export type PassedOn = Readonly<{
  /** `<cluster>/<peer>`: our cluster, and what it calls the one that the zone is of. */
  copyOf: string
  store: ZoneStore
  /** The history that its serials belong to, as nodes are told it. */
  epoch: string
  /** Since it was known to be right at its origin, in milliseconds. */
  ageMs: number
  /** Since it was known to be equal to its primary's, in milliseconds. */
  silentMs: number
  /** null: its primary tells no times, so neither do we. */
  times: Readonly<{
    /** The clock of where its changes happened less ours, in milliseconds. */
    clockOffsetMs: number
    pods: Readonly<{ mode: PodMode; ttlSeconds: number }>
  }> | null
}>

/** `not-here-yet`: it is wanted, and has not come. `absent`: there is no such copy. */
export type PassedOnFound = PassedOn | 'not-here-yet' | 'absent'

export interface CopySource {
  /** Whether who signs with this key, or with none, may be a node of ours: the keys of peers are no node's. */
  isNode(key: DomainName | null): boolean
  find(copyOf: string, apex: DomainName): PassedOnFound
}

/** Names this copy among everything that others may be told of; no apex looks like that. */
export const topicOf = (copyOf: string | null, apex: DomainName): string =>
  copyOf === null ? apex : `copy ${copyOf} ${apex}`

/** The other way round. An apex begins with the length of a label, which no letter is. */
export function readTopic(topic: string): Readonly<{ copyOf: string | null; apex: DomainName }> {
  if (!topic.startsWith('copy ')) return { copyOf: null, apex: topic as DomainName }
  const end = topic.indexOf(' ', 5)
  return { copyOf: topic.slice(5, end), apex: topic.slice(end + 1) as DomainName }
}
