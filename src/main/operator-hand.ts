/**
 * The operator's hand on a running server: what happened lately, and what was drained or disabled beside the
 * configuration.
 */
import type { ActionRequest, OverridesStatus } from '../admin/inspectable.ts'
import type { Clock } from '../base/clock.ts'
import { durationToText } from '../base/quantity.ts'
import type { Logger } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { EventRing } from '../operator/event-ring.ts'
import {
  OverridePlaceError,
  OverrideStore,
  type OverrideCause,
  type OverridePlace
} from '../operator/override-store.ts'
import { disablingOf, type Override, type OverrideAction, type Overrides } from '../operator/overrides.ts'
import { apiAccess } from './cluster-source.ts'
import { ConfigMapPlace } from './config-map-place.ts'
import { StateFile } from '../operator/state-file.ts'

export type OperatorHandOptions = Readonly<{
  config: Config
  clock: Clock
  log: Logger
  random: () => number
  /** Called after each change of what holds. */
  onChange(): void
}>

export class OperatorHand {
  readonly events: EventRing
  readonly #options: OperatorHandOptions
  #blueprint: string
  #store: OverrideStore

  constructor(options: OperatorHandOptions) {
    this.#options = options
    this.events = new EventRing(options.clock)
    this.#blueprint = blueprintOf(options.config)
    this.#store = this.#newStore(options.config)
  }

  /** What is in force now. */
  get holding(): Overrides {
    return this.#store.holding
  }

  isDrained(peer: string): boolean {
    return this.holding.drainedPeers.has(peer)
  }

  isDisabled(policy: string): boolean {
    return this.disablingOf(policy) !== null
  }

  /** What disables a policy now; null: nothing. */
  disablingOf(policy: string): Override | null {
    return disablingOf(this.holding, policy)
  }

  /** Resolves when what is kept has been looked at, or takes too long. */
  async start(): Promise<void> {
    await this.#store.start()
  }

  /** Goes over to another place, if the configuration names one. */
  async use(config: Config): Promise<void> {
    if (this.#blueprint === blueprintOf(config)) return
    this.#blueprint = blueprintOf(config)
    await this.#store.close()
    this.#store = this.#newStore(config)
    await this.#store.start()
  }

  async close(): Promise<void> {
    await this.#store.close()
  }

  status(): OverridesStatus {
    const { where, problem, holding } = this.#store
    return { where, problem, ...holding }
  }

  /** Takes an action; why it could not be taken, or null. Each leaves one line in the log. */
  async act({ action, clientAddress }: ActionRequest): Promise<string | null> {
    const { log } = this.#options
    const audit = { audit: action.kind, ...subjectOf(action), ...wordsOf(action), clientAddress }
    try {
      await this.#store.act(action)
      log.info(audit, 'an operator acted')
      return null
    } catch (error) {
      if (!(error instanceof OverridePlaceError)) throw error
      log.warn({ ...audit, reason: error.message }, 'an action could not be taken')
      return error.message
    }
  }

  #newStore(config: Config): OverrideStore {
    const { clock, log } = this.#options
    return new OverrideStore({
      place: placeOf(config, this.#options),
      clock,
      log,
      onChange: (actions, cause) => this.#noteChange(actions, cause),
      onProblem: (problem) => {
        if (problem !== null) log.warn({ problem }, 'drains and disabled policies cannot be read')
        this.events.add({ kind: 'overrides', text: problem ?? 'can be read again' })
      }
    })
  }

  #noteChange(actions: readonly OverrideAction[], cause: OverrideCause): void {
    const nowEpochMs = this.#options.clock.epochMs()
    for (const action of actions) {
      // What is found at the start, or was done through another server, happened before now.
      const atEpochMs = 'override' in action ? Math.min(action.override.sinceEpochMs, nowEpochMs) : nowEpochMs
      const text = actionText(action, cause, atEpochMs)
      this.events.add({ kind: action.kind, ...subjectOf(action), text, atEpochMs })
      const change = actionText(action, cause, nowEpochMs)
      this.#options.log.info({ ...subjectOf(action), change }, 'what the operator set has changed')
    }
    this.#options.onChange()
  }
}

const blueprintOf = ({ overrides, cluster }: Config): string => JSON.stringify([overrides, cluster.source])

function placeOf({ overrides, cluster }: Config, { clock, random }: OperatorHandOptions): OverridePlace | null {
  if (overrides.kind === 'off') return null
  if (overrides.kind === 'file') return new StateFile(overrides.path, clock)
  const { source } = cluster
  if (source.kind !== 'kubernetes')
    throw new Error('a ConfigMap without an API server is refused with the configuration')
  const access = apiAccess(source.kubeconfig, source.context, clock)
  const { namespace, name } = overrides
  return new ConfigMapPlace({ access, clock, random, namespace, name })
}

function subjectOf(action: OverrideAction): { peer?: string; policy?: string } {
  if ('peer' in action) return { peer: action.peer }
  return action.policy === null ? {} : { policy: action.policy }
}

function wordsOf(action: OverrideAction): { until?: string; why?: string; by?: string } {
  if (!('override' in action)) return {}
  const { untilEpochMs, reason, by } = action.override
  return { ...(untilEpochMs === null ? {} : { until: new Date(untilEpochMs).toISOString() }), why: reason, by }
}

function actionText(action: OverrideAction, cause: OverrideCause, atEpochMs: number): string {
  const what =
    'peer' in action ? `peer ${action.peer}` : action.policy === null ? 'all policies' : `policy ${action.policy}`
  const done = { drain: 'drained', undrain: 'no longer drained', disable: 'disabled', enable: 'no longer disabled' }
  const text = `${what} ${done[action.kind]}`
  if (!('override' in action)) return cause === 'time' ? `${text}: its time is over` : text
  return `${text} ${overrideText(action.override, atEpochMs)}`
}

function overrideText({ untilEpochMs, reason, by }: Override, atEpochMs: number): string {
  const leftMs = untilEpochMs === null ? null : Math.max(1_000, Math.round((untilEpochMs - atEpochMs) / 1_000) * 1_000)
  const until = leftMs === null ? 'until it is taken back' : `for ${durationToText(leftMs)}`
  return `${until}${by === '' ? '' : ` by ${by}`}${reason === '' ? '' : `: ${reason}`}`
}
