/** What policies know of their targets before they ask: the health of peers, and what the operator has set by hand. */
import type { Standings } from '../policy/standing.ts'
import type { PeerSet } from './peer-set.ts'

/** What the operator has set by hand. */
export type ByHand = Readonly<{
  /** Whether the peer is asked nothing. A change comes with new Parts. */
  isDrained(peer: string): boolean
}>

export const standingsOf = (peers: PeerSet, byHand: ByHand): Standings => ({
  of({ peer }) {
    if (peer === null) return 'up'
    return byHand.isDrained(peer) ? 'drained' : peers.standing(peer)
  },
  returnedShare: ({ peer }) => (peer === null ? 1 : peers.returnedShare(peer)),
  revision: () => peers.revision
})
