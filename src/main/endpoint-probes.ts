/** Checks of virtual and static addresses: which there are, what was found, and who has to know. */
import type { Clock } from '../base/clock.ts'
import { endpointKey, parseEndpointCheck } from '../base/endpoint-check.ts'
import { checkedEndpoints } from '../base/endpoint-limits.ts'
import type { Logger } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { EndpointSchedule, type CheckedEndpoint, type EndpointTransition } from '../health/endpoint-schedule.ts'
import type { EventRing } from '../operator/event-ring.ts'
import { checkEndpoint } from '../peer/endpoint-connect.ts'
import type { ClusterView } from './cluster-view.ts'

export type EndpointProbesOptions = Readonly<{
  clock: Clock
  log: Logger
  random: () => number
  events: EventRing
}>

export class EndpointProbes {
  readonly #options: EndpointProbesOptions
  readonly #schedule: EndpointSchedule
  #config: Config | null = null
  #view: ClusterView | null = null
  #down: ReadonlySet<string> = new Set()
  #hasToldLimit = false

  constructor(options: EndpointProbesOptions) {
    this.#options = options
    const { clock, random } = options
    this.#schedule = new EndpointSchedule({
      clock,
      random,
      endpoints: () => this.#endpoints(),
      ask: async ({ address, check }, timeoutMs) => checkEndpoint(address, parseEndpointCheck(check), timeoutMs, clock),
      onTransition: (transition) => this.#take(transition)
    })
  }

  get stats(): EndpointSchedule['stats'] {
    return this.#schedule.stats
  }

  /** Addresses that are down, each with how it is checked. */
  get down(): ReadonlySet<string> {
    return this.#down
  }

  isDown(address: string, check: string): boolean {
    return this.#down.size > 0 && this.#down.has(endpointKey(address, check))
  }

  /** Goes over to another configuration or another view of the cluster. */
  use(config: Config, view: ClusterView): void {
    this.#config = config
    this.#view = view
    if (config.cluster.probes) this.#schedule.start()
    else this.#schedule.stop()
    this.#settle()
  }

  close(): void {
    this.#schedule.stop()
  }

  #endpoints(): CheckedEndpoint[] {
    const found = new Map<string, CheckedEndpoint>()
    const add = (address: string, check: string): void => {
      const key = endpointKey(address, check)
      if (found.size < checkedEndpoints) found.set(key, { key, address, check })
      else if (!found.has(key)) this.#tellLimit()
    }
    for (const { targets } of this.#config?.policies ?? []) {
      for (const { addresses, probe } of targets) if (probe !== null) for (const address of addresses) add(address, probe) // prettier-ignore
    }
    for (const { address, check } of this.#view?.zones.checkedAddresses() ?? []) add(address, check)
    // What is no longer checked is no longer down.
    this.#settle()
    return [...found.values()]
  }

  #tellLimit(): void {
    if (this.#hasToldLimit) return
    this.#hasToldLimit = true
    this.#options.log.warn({ limit: checkedEndpoints }, 'more addresses than are checked: the rest counts as healthy')
  }

  #take({ endpoint: { address, check }, isDown, reason }: EndpointTransition): void {
    const { log, events } = this.#options
    const change = isDown ? 'up -> down' : 'down -> up'
    log[isDown ? 'warn' : 'info']({ address, check, change, reason }, 'the health of an address changed')
    events.add({ kind: 'health', text: `${address} (${check}) ${change}: ${reason}` })
    this.#settle()
  }

  #settle(): void {
    this.#down = this.#schedule.down
    this.#view?.zones.setDownEndpoints(this.#down)
  }
}
