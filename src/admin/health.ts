/** `/healthz`: the process is alive and its event loop turns. `/readyz`: it should be sent queries. */
import type { Inspectable, Readiness } from './inspectable.ts'
import type { Route } from './router.ts'
import { textReply, type Reply } from './reply.ts'

export function healthRoutes(inspect: Inspectable): Route[] {
  return [
    { method: 'GET', path: '/healthz', handler: () => textReply(200, 'ok\n') },
    {
      method: 'GET',
      path: '/readyz',
      handler: ({ query }) => readyReply(inspect.readiness(), query.has('verbose'))
    }
  ]
}

/** Plainly: one word, and what is missing. Verbosely: every condition on a line of its own. */
function readyReply({ isReady, conditions }: Readiness, isVerbose: boolean): Reply {
  const missing = conditions.filter(({ isMet }) => !isMet)
  const lines = isVerbose
    ? conditions.map(
        ({ name, isMet, detail }) => `[${isMet ? '+' : '-'}] ${name}${detail === '' ? '' : `: ${detail}`}\n`
      )
    : []
  const verdict = isReady ? 'ready' : `not ready: ${missing.map(({ name }) => name).join(', ')}`
  return textReply(isReady ? 200 : 503, `${lines.join('')}${verdict}\n`)
}
