/** Has a target asked again, in the background, for what was given out stale. */
import { queryBudgetMs } from '../base/limits.ts'
import type { DomainName } from '../wire/name.ts'
import type { Parts } from './parts.ts'
import { peerOutcome, type PeerRoute } from './peer-target.ts'
import type { Query } from './query.ts'
import { keyOf } from './remembered.ts'

/**
 * @param name as the target calls it.
 * @param mayAsk whether anything speaks for an answer now.
 */
export function refreshStale(
  parts: Parts,
  query: Query,
  route: PeerRoute,
  name: DomainName,
  qtype: number,
  mayAsk: () => boolean
): void {
  const background: PeerRoute = { ...route, isBackground: true }
  // The message and the client's object belong to the listener, which goes on.
  const again: Query = { ...query, message: null, client: { ...query.client }, signature: null, trace: null }
  parts.staleRefresh.want(keyOf({ target: route.target, name, type: qtype }, query), {
    mayAsk,
    async ask() {
      try {
        const deadlineMs = parts.clock.nowMs() + queryBudgetMs
        const { kind } = await peerOutcome(parts, again, background, name, qtype, deadlineMs)
        // What proves nothing is never kept.
        return kind !== 'unreachable' && kind !== 'bare'
      } catch (error) {
        parts.log.error({ err: error }, 'a bug: a stale answer was not refreshed')
        return false
      }
    }
  })
}
