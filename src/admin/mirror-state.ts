/** What a mirrored zone is good for now, in one word. */
import type { MirrorStatus } from '../transfer/mirror-types.ts'

/**
 * `following`: as good as the peer's own. `refused`: the peer gives it no more. `failing`: what comes is of no use.
 * `expired`: the copy is given out no more. `stale`: the peer is silent. `waiting`: nothing has come yet.
 */
export type ShownMirrorState = 'following' | 'refused' | 'failing' | 'expired' | 'stale' | 'waiting'

export function shownMirrorState({ state, isLive, isExpired, serial }: MirrorStatus): ShownMirrorState {
  if (state === 'refused') return 'refused'
  if (isExpired) return 'expired'
  if (serial !== null && isLive) return 'following'
  if (state === 'failing') return 'failing'
  return serial === null ? 'waiting' : 'stale'
}
