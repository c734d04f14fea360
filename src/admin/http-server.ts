/**
 * The admin HTTP side: two listeners over one object that everything is read from.
 *
 * `observe` gives only what monitoring needs and may face the network; `admin` gives the same, the status API and
 * actions, and belongs on loopback. No other origin is ever allowed to read either (no CORS headers), and `admin`
 * answers to no name but its own, so that no web site becomes the same origin.
 */
import type { Clock } from '../base/clock.ts'
import type { ListenAddress } from '../base/host-port.ts'
import type { Logger } from '../base/log.ts'
import { healthRoutes } from './health.ts'
import { HttpListener, type HttpLimits, type HttpStats, type OpenSocket } from './http-listener.ts'
import type { Inspectable } from './inspectable.ts'
import { LoopLag } from './loop-lag.ts'
import { metricsRoute } from './metrics.ts'
import { operatorApiRoutes } from './operator-api.ts'
import { Router, type Route } from './router.ts'
import { propagationRoute } from './propagation.ts'
import { statusApiRoutes } from './status-api.ts'

export type AdminOptions = Readonly<{
  /** null: off. */
  observe: ListenAddress | null
  admin: ListenAddress | null
  inspect: Inspectable
  clock: Clock
  log: Logger
  limits?: Partial<HttpLimits>
  openSocket?: OpenSocket
}>

export type RunningAdmin = Readonly<{
  /** null where the listener is off. */
  observeAddress: ListenAddress | null
  adminAddress: ListenAddress | null
  /** Accepts no more until `resume`, because another process does. */
  pause(): void
  resume(): Promise<void>
  close(): Promise<void>
}>

/**
 * Opens the listeners that are wanted: all of them or none.
 * @throws ListenError
 */
export async function startAdmin(options: AdminOptions): Promise<RunningAdmin> {
  const { observe, admin, inspect, clock, log, limits = {} } = options
  const open = new Map<'observe' | 'admin', HttpListener>()
  const loopLag = new LoopLag(clock)
  const close = async (): Promise<void> => {
    loopLag.stop()
    await Promise.all(Array.from(open.values(), (listener) => listener.close()))
  }
  const listeners = (): ReadonlyMap<string, HttpStats> =>
    new Map(Array.from(open, ([name, listener]) => [name, listener.stats]))
  const readOnly: Route[] = [metricsRoute(inspect, { loopLag, listeners }), ...healthRoutes(inspect)]
  const routesOf = {
    observe: readOnly,
    admin: [...readOnly, ...statusApiRoutes(inspect), ...operatorApiRoutes(inspect), propagationRoute(inspect)]
  }
  try {
    for (const [name, where] of [['observe', observe] as const, ['admin', admin] as const]) {
      if (where === null) continue
      const router = new Router(routesOf[name])
      const refusesForeignHosts = name === 'admin'
      const { openSocket } = options
      const listening = { where, router, clock, log, limits, refusesForeignHosts, ...(openSocket && { openSocket }) }
      open.set(name, await HttpListener.open(listening))
    }
  } catch (error) {
    await close()
    throw error
  }
  return {
    observeAddress: open.get('observe')?.address ?? null,
    adminAddress: open.get('admin')?.address ?? null,
    pause: () => {
      for (const listener of open.values()) listener.pause()
    },
    resume: async () => {
      await Promise.all(Array.from(open.values(), async (listener) => listener.resume()))
    },
    close
  }
}
