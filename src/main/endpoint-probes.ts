/**
 * Checks of virtual and static addresses: which there are, what was found, and who has to know. Where replicas can
 * share it, one of them checks and the others go by what it finds.
 */
import type { Clock } from '../base/clock.ts'
import { endpointKey, parseEndpointCheck, partsOfEndpointKey } from '../base/endpoint-check.ts'
import { checkedEndpoints, toldSharedChanges } from '../base/endpoint-limits.ts'
import type { Logger } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { CheckHolder, type CheckRole } from '../health/check-holder.ts'
import { EndpointSchedule, type CheckedEndpoint, type EndpointTransition } from '../health/endpoint-schedule.ts'
import type { EventRing } from '../operator/event-ring.ts'
import { checkEndpoint } from '../peer/endpoint-connect.ts'
import type { ClusterView } from './cluster-view.ts'
import { identityOf, sharedChecksBlueprint, sharedChecksText } from './shared-checks.ts'

export type EndpointProbesOptions = Readonly<{
  clock: Clock
  log: Logger
  random: () => number
  events: EventRing
  instanceId: string
}>

/** Policies and Services that an event names. */
const namedUsers = 3

export class EndpointProbes {
  readonly #options: EndpointProbesOptions
  readonly #schedule: EndpointSchedule
  #config: Config | null = null
  #view: ClusterView | null = null
  #down: ReadonlySet<string> = new Set()
  #hasToldLimit = false
  /** null: this process checks by itself, or nothing is checked. */
  #holder: CheckHolder | null = null
  #role: CheckRole = 'alone'
  #problem: string | null = null
  #blueprint = ''
  #closing: Promise<void> = Promise.resolve()
  #isClosed = false

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

  /** `<svc>.<ns>` of each virtual address that is down, once for each of them. */
  get servicesDown(): string[] {
    if (this.#down.size === 0) return []
    const checked = [...(this.#view?.zones.checkedAddresses() ?? [])]
    return checked.filter(({ address, check }) => this.isDown(address, check)).map(({ service }) => service)
  }

  isDown(address: string, check: string): boolean {
    return this.#down.size > 0 && this.#down.has(endpointKey(address, check))
  }

  /** Who checks; null where nothing is checked. */
  get role(): CheckRole | null {
    return this.#config?.cluster.probes === true ? this.#role : null
  }

  /** Goes over to another configuration or another view of the cluster. */
  use(config: Config, view: ClusterView): void {
    if (this.#isClosed) return
    this.#config = config
    this.#view = view
    const blueprint = sharedChecksBlueprint(config)
    if (blueprint !== this.#blueprint) {
      this.#blueprint = blueprint
      this.#share(config)
    }
    this.#settle()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#schedule.stop()
    this.#leave()
    await this.#closing
  }

  #leave(): void {
    const old = this.#holder
    this.#holder = null
    if (old !== null) this.#closing = Promise.all([this.#closing, old.close()]).then(() => {})
  }

  #share(config: Config): void {
    const { clock, log, instanceId } = this.#options
    this.#leave()
    const text = sharedChecksText(config, this.#options)
    if (text === null) {
      this.#role = 'alone'
      if (config.cluster.probes) this.#schedule.start(this.#down)
      else this.#schedule.stop()
      return
    }
    this.#role = 'following'
    this.#schedule.stop()
    this.#holder = new CheckHolder({
      clock,
      text,
      identity: identityOf(instanceId),
      down: this.#down,
      ownDown: () => this.#schedule.down,
      onChange: () => this.#takeRole(),
      onProblem: (problem) => {
        if (problem === this.#problem) return
        this.#problem = problem
        if (problem === null) log.info('checks of addresses are shared with the other replicas again')
        else log.warn({ problem }, 'checks of addresses cannot be shared with the other replicas')
      }
    })
    this.#holder.start()
  }

  #takeRole(): void {
    if (this.#holder === null) return
    const { role, holder } = this.#holder
    if (role === 'following') this.#schedule.stop()
    else this.#schedule.start(this.#holder.down)
    if (role !== this.#role) {
      this.#role = role
      const text = { following: `${holder} checks addresses`, holding: 'this replica checks addresses for all', alone: 'this replica checks addresses by itself: no other one is heard' }[role] // prettier-ignore
      this.#options.log.info({ role }, text)
      this.#options.events.add({ kind: 'health', text })
    }
    this.#settle()
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
    const endpoint = { address, check, of: this.#usersOf(address, check) }
    events.add({ kind: 'health', endpoint, text: `${address} (${check}) ${change}: ${reason}` })
    this.#settle()
  }

  /** The policies and Services that have an address checked, the first few of them by name. */
  #usersOf(address: string, check: string): string {
    const users = new Set<string>()
    for (const { name, targets } of this.#config?.policies ?? []) {
      if (targets.some((target) => target.probe === check && target.addresses.includes(address))) users.add(name)
    }
    for (const one of this.#view?.zones.checkedAddresses() ?? []) {
      if (one.address === address && one.check === check) users.add(one.service)
    }
    const named = [...users].slice(0, namedUsers).join(',')
    return users.size > namedUsers ? `${named},+${users.size - namedUsers}` : named
  }

  #settle(): void {
    const before = this.#down
    const isHeard = this.#holder !== null && this.#role === 'following'
    this.#down = isHeard ? this.#holder!.down : this.#schedule.down
    if (isHeard) this.#tellHeard(before)
    else if (!isSame(before, this.#down)) this.#holder?.ownDownChanged()
    this.#view?.zones.setDownEndpoints(this.#down)
  }

  /** What another replica found has its events here too. */
  #tellHeard(before: ReadonlySet<string>): void {
    const changes = [...changed(this.#down, before, 'up -> down'), ...changed(before, this.#down, 'down -> up')]
    if (changes.length === 0) return
    const { events } = this.#options
    const by = `found by ${this.#holder!.holder}`
    if (changes.length > toldSharedChanges) {
      events.add({ kind: 'health', text: `${changes.length} addresses went up or down: ${by}` })
    } else {
      for (const { key, text } of changes) {
        const { address, check } = partsOfEndpointKey(key)
        const endpoint = { address, check, of: this.#usersOf(address, check) }
        events.add({ kind: 'health', endpoint, text: `${text}: ${by}` })
      }
    }
    const told = changes.slice(0, toldSharedChanges).map(({ text }) => text)
    this.#options.log.info({ changes: told, by }, 'the health of addresses changed')
  }
}

const changed = (keys: Iterable<string>, other: ReadonlySet<string>, change: string) =>
  [...keys].filter((key) => !other.has(key)).map((key) => ({ key, text: `${key} ${change}` }))

const isSame = (one: ReadonlySet<string>, other: ReadonlySet<string>): boolean =>
  one.size === other.size && [...one].every((key) => other.has(key))
