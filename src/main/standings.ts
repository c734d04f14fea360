/** What policies know of their targets before they ask: the health of peers, and what the operator has set by hand. */
import type { Standings } from '../policy/standing.ts'
import type { PeerSet } from './peer-set.ts'

/** What the operator has set by hand; a change of it comes with new Parts. */
export type ByHand = Readonly<{
  /** Peers that are asked nothing. */
  drainedPeers: ReadonlySet<string>
}>

export const nothingByHand: ByHand = { drainedPeers: new Set() }

export const standingsOf = (peers: PeerSet, byHand: ByHand): Standings => ({
  of({ peer }) {
    if (peer === null) return 'up'
    return byHand.drainedPeers.has(peer) ? 'drained' : peers.standing(peer)
  },
  returnedShare: ({ peer }) => (peer === null ? 1 : peers.returnedShare(peer)),
  revision: () => peers.revision
})
