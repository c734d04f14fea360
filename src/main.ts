/**
 * The composition root: builds every part once, joins them, exchanges them when the configuration changes, and takes
 * them down in order.
 */
import { randomBytes } from 'node:crypto'
import type { Inspectable } from './admin/inspectable.ts'
import { systemClock, type Cancel, type Clock } from './base/clock.ts'
import type { ListenAddress } from './base/host-port.ts'
import { drainTimeoutMs, cacheSweepEntries, cacheSweepEveryMs, viewTakeoverMs } from './base/limits.ts'
import { createLog, type Logger } from './base/log.ts'
import { AnswerCache } from './cache/answer-cache.ts'
import type { Config } from './config/config.ts'
import type { ConfigProblem } from './config/problem.ts'
import { ConfigWatcher } from './config/reload.ts'
import { ClusterView } from './main/cluster-view.ts'
import { addressesOf, reloadEvents } from './main/config-changes.ts'
import { EndpointProbes } from './main/endpoint-probes.ts'
import { inspectionOf } from './main/inspection.ts'
import { loadOptions } from './main/load-options.ts'
import { MirrorSet, type TransferParts } from './main/mirror-set.ts'
import { OperatorHand } from './main/operator-hand.ts'
import { partsOf } from './main/parts.ts'
import { PeerSet } from './main/peer-set.ts'
import { Serving } from './main/serving.ts'
import { readVersion } from './main/version.ts'
import { ZonesOut } from './main/zones-out.ts'
import { DataPlane } from './pipeline/data-plane.ts'
import { Freshness } from './pipeline/freshness.ts'
import { KnownServices } from './pipeline/known-services.ts'
import type { Parts } from './pipeline/parts.ts'
import { sharedReadyFor } from './pipeline/ready/shared-ready.ts'
import type { Libc } from './server/mmsg/libc.ts'
import type { Listeners } from './server/listeners.ts'
import { rootName } from './wire/name.ts'
import { instanceIdOctets } from './wire/peerdns-option.ts'

export type StartOptions = Readonly<{
  clock?: Clock
  log?: Logger
  /** Follow the configuration file as it changes; true by default. */
  watchConfig?: boolean
}>

export type StopOptions = Readonly<{
  /** Close at once, also where a drain is under way. */
  force?: boolean
}>

/** Uniform in [0, 1), fast: for order and jitter, never for ids. */
const random = (): number => Math.random()

/** All parts, joined; nothing is open and nothing runs before `start`. */
export function buildServer(config: Config, options: Omit<StartOptions, 'watchConfig'> = {}): RunningServer {
  return new RunningServer(config, options.clock ?? systemClock, options.log ?? createLog(config.log.level))
}

/** Builds and starts a server. @throws ListenError where an address is taken or missing, with nothing left open. */
export async function startServer(config: Config, options: StartOptions = {}): Promise<RunningServer> {
  const server = buildServer(config, options)
  await server.start(options.watchConfig)
  return server
}

type StartedView = Readonly<{ hasLooked: Promise<void>; isWhole: Promise<void> }>

export class RunningServer {
  readonly version = readVersion()
  readonly startedAtEpochMs: number
  readonly clock: Clock
  readonly log: Logger
  readonly dataPlane: DataPlane
  readonly peers: PeerSet
  readonly operator: OperatorHand
  readonly endpoints: EndpointProbes
  readonly mirrors: MirrorSet
  readonly zonesOut: ZonesOut
  readonly freshness: Freshness
  readonly inspect: Inspectable
  readonly reloads = { taken: 0, refused: 0 }
  #config: Config
  /** What is listened on, as the configuration of the start had it: later ones cannot change it. */
  readonly #boundAddresses: string
  #view: ClusterView
  #firstView: StartedView | null = null
  #serving: Serving | null = null
  #watcher: ConfigWatcher | null = null
  #configProblems: readonly ConfigProblem[] = []
  #isDraining = false
  #stopped: Promise<void> | null = null
  #cancelSweep: Cancel = () => {}
  #endLameDuck: () => void = () => {}
  /** Reloads run one after the other. */
  #reloading: Promise<void> = Promise.resolve()
  readonly #instanceId = randomBytes(instanceIdOctets).toString('hex')
  readonly #knownServices = new KnownServices()
  #cache: AnswerCache

  /** @param mayHaveWorkers false: one thread does everything, whatever the configuration says */
  constructor(config: Config, clock: Clock, log: Logger, mayHaveWorkers = true) {
    this.clock = clock
    this.log = log
    this.startedAtEpochMs = clock.epochMs()
    this.#config = config
    this.#boundAddresses = addressesOf(config)
    this.#cache = newCache(config)
    this.freshness = new Freshness(clock)
    this.#view = this.#newView(config, config.listen)
    this.operator = new OperatorHand({ config, clock, log, random, onChange: () => this.dataPlane.use(this.#parts()) })
    this.peers = new PeerSet(
      { clock, log, random, instanceId: this.#instanceId, events: this.operator.events },
      config.limits.inFlightQueries
    )
    this.peers.update(config)
    const { events } = this.operator
    this.endpoints = new EndpointProbes({ clock, log, random, events, instanceId: this.#instanceId })
    this.mirrors = new MirrorSet({
      ...this.#shared(),
      freshness: this.freshness,
      cache: () => this.#cache,
      serversOf: (peer) => this.peers.serversOf(peer),
      onCopyChanged: (copyOf, apex) => this.zonesOut.primary.copyChanged(copyOf, apex)
    })
    this.mirrors.update(config)
    this.zonesOut = new ZonesOut({ clock, log, random, copies: this.mirrors.out }, config, this.#view)
    const shared = sharedReadyFor(mayHaveWorkers && config.batching !== 'off' ? config.threads : 0)
    this.dataPlane = new DataPlane(this.#parts(), { shared })
    this.peers.onStandingChange = () => this.dataPlane.standingsChanged()
    if (shared !== null) this.freshness.expectLateNotes(() => this.count())
    this.inspect = inspectionOf(this)
  }

  get config(): Config {
    return this.#config
  }

  get view(): ClusterView {
    return this.#view
  }

  get cache(): AnswerCache {
    return this.#cache
  }

  get listeners(): Listeners | null {
    return this.#serving?.listeners ?? null
  }

  get configProblems(): readonly ConfigProblem[] {
    return this.#configProblems
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  /** The sockets, and the threads that answer; null before they are open. */
  get serving(): Serving | null {
    return this.#serving
  }

  /** Counts what workers have answered until now. */
  count(): void {
    this.#serving?.workers?.count()
  }

  get dnsAddresses(): readonly ListenAddress[] {
    return this.#serving?.listeners.addresses ?? []
  }

  get adminAddress(): ListenAddress | null {
    return this.#serving?.admin.adminAddress ?? null
  }

  get observeAddress(): ListenAddress | null {
    return this.#serving?.admin.observeAddress ?? null
  }

  /**
   * Starts everything and resolves once the sockets are bound; the cluster may still be being read (`isReady` tells).
   * @throws ListenError where an address is taken or missing, with nothing left open.
   */
  async start(watchConfig = true): Promise<void> {
    const { log, clock, dataPlane, inspect } = this
    try {
      // An API server takes a moment to answer: it is asked before anything else.
      if (this.#view.kind === 'kubernetes') this.#startFirstView()
      // What an operator took out before the restart must not be used by the first query.
      await this.operator.start()
      const becomeAble = async (): Promise<void> => this.#startFirstView().isWhole
      const useLibc = (libc: Libc): void => this.peers.useLibc(libc)
      const parts = { responder: dataPlane, dataPlane, inspect, clock, log, becomeAble, useLibc }
      const serving = await Serving.open(this.#config, parts)
      if (this.#isDraining) return await serving.abandon()
      this.#serving = serving
    } catch (error) {
      await this.stop({ force: true })
      throw error
    }
    this.#sweep()
    log.info(
      {
        cluster: this.#config.cluster.name,
        version: this.version,
        dns: this.dnsAddresses,
        admin: this.adminAddress,
        observe: this.observeAddress
      },
      'listening'
    )
    const text = `version ${this.version} with configuration ${this.#config.hash.slice(0, 12)}`
    this.operator.events.add({ kind: 'start', text })
    // Files are read in a moment; what is away for longer must not keep peered names waiting.
    await this.#startFirstView().hasLooked
    const { unreadManifests } = this.#view
    if (unreadManifests.length > 0) {
      log.error(
        { missing: unreadManifests },
        'configured manifests are not there: not ready, and names of this cluster fail, until they are'
      )
    }
    if (this.#isDraining) return
    this.endpoints.use(this.#config, this.#view)
    if (watchConfig) this.#watch()
  }

  /** Takes over another configuration, as far as it differs. Runs after reloads that are still going on. */
  async use(config: Config): Promise<void> {
    const done = this.#reloading.then(async () => this.#take(config))
    this.#reloading = done.catch(() => {})
    return done
  }

  /** Reads the configuration file now, as after SIGHUP. */
  async reload(): Promise<void> {
    const isNew = this.#watcher?.check() === true
    // Who asked for it hears of it also where the file is as it was, or was seen to change a moment before.
    this.log.info({ file: this.#config.file, isNew }, 'the configuration file was read again, as asked')
    await this.#reloading
  }

  /**
   * Not ready, `lameDuck`, finish what is in flight, close. A second call waits for the first; `force` ends the
   * waiting.
   */
  async stop(options: StopOptions = {}): Promise<void> {
    this.#stopped ??= this.#drain(options.force === true)
    if (options.force === true) {
      this.#serving?.hurry()
      this.#endLameDuck()
      void this.listeners?.stop({ drainTimeoutMs: 0, force: true })
    }
    return this.#stopped
  }

  async #drain(isForced: boolean): Promise<void> {
    this.#isDraining = true
    this.#watcher?.close()
    if (!isForced) await this.#serving?.untilTakenOver()
    if (!isForced && this.#config.lameDuckMs > 0 && this.#serving?.isTakenOver === false) {
      this.log.info({ lameDuckMs: this.#config.lameDuckMs }, 'not ready any more, still serving')
      const over = Promise.withResolvers<void>()
      this.#endLameDuck = over.resolve
      // A plain timer would not keep the process alive; the open sockets do.
      const cancel = this.clock.after(this.#config.lameDuckMs, over.resolve)
      await over.promise
      cancel()
    }
    await this.#serving?.workers?.close()
    const unanswered = (await this.listeners?.stop({ drainTimeoutMs, force: isForced })) ?? 0
    this.#cancelSweep()
    this.zonesOut.close()
    await this.endpoints.close()
    await this.#view.close()
    await this.operator.close()
    this.mirrors.stop()
    await this.peers.close()
    await this.#serving?.close()
    // Where nothing was started, only why is worth a line.
    if (this.#serving !== null) this.log.info({ unanswered }, 'stopped')
  }

  #newView(config: Config, listen: readonly ListenAddress[]): ClusterView {
    const onStored = this.freshness.stored.bind(this.freshness)
    return new ClusterView(config, listen, { ...this.#shared(), onStored })
  }

  /** What all who take zones from others need. */
  #shared(): TransferParts {
    const keyOf: TransferParts['keyOf'] = (name) => this.zonesOut.keys.find((key) => key.name === name) ?? null
    return { clock: this.clock, log: this.log, random, instanceId: this.#instanceId, keyOf }
  }

  /** Begun before there are sockets where another process serves until this one is able to. */
  #startFirstView(): StartedView {
    return (this.#firstView ??= this.#startView(this.#view))
  }

  /** `hasLooked`: there is nothing to wait for in a moment's time. `isWhole`: the whole cluster has been read. */
  #startView(view: ClusterView): StartedView {
    const startedAtMs = this.clock.nowMs()
    const whole = Promise.withResolvers<void>()
    const hasLooked = view.start(() => {
      const { objects, problemsTotal } = view.status()
      this.log.info(
        { objects, problemsTotal, tookMs: Math.round(this.clock.nowMs() - startedAtMs) },
        'the cluster is read'
      )
      if (view === this.#view) this.zonesOut.primary.announce()
      whole.resolve()
    })
    return { hasLooked, isWhole: whole.promise }
  }

  async #take(config: Config): Promise<void> {
    const before = this.#config
    const isSameSource = JSON.stringify(before.cluster.source) === JSON.stringify(config.cluster.source)
    if (!isSameSource || !this.#view.reconfigure(config, this.dnsAddresses, this.log)) {
      await this.#exchangeView(this.#newView(config, this.dnsAddresses))
    }
    if (JSON.stringify(before.cache) !== JSON.stringify(config.cache)) this.#cache = newCache(config)
    await this.operator.use(config)
    this.#config = config
    this.log.level = config.log.level
    for (const name of this.peers.update(config)) this.#cache.flushSuffix(rootName, `peer:${name}`)
    this.mirrors.update(config)
    this.zonesOut.use(config, this.#view)
    this.endpoints.use(config, this.#view)
    this.dataPlane.use(this.#parts())
    this.#configProblems = []
    this.reloads.taken++
    for (const event of reloadEvents(before, config)) this.operator.events.add(event)
    if (addressesOf(config) !== this.#boundAddresses) {
      const text = 'listen, admin, observe, threads, batching and takeover take effect with the next start only'
      this.operator.events.add({ kind: 'reload', text })
      this.log.warn(text)
    }
    this.log.info({ hash: config.hash }, 'the configuration is in use')
  }

  /**
   * Lets a new view take over when it is complete; until then the old one answers.
   * @throws Error where that takes too long, or the server stops meanwhile; the old view stays.
   */
  async #exchangeView(view: ClusterView): Promise<void> {
    const timeIsUp = Promise.withResolvers<'late'>()
    const cancel = this.clock.after(viewTakeoverMs, () => timeIsUp.resolve('late'))
    const outcome = await Promise.race([this.#startView(view).isWhole, timeIsUp.promise])
    cancel()
    if (outcome === 'late' || this.#isDraining) {
      await view.close()
      throw new Error(
        this.#isDraining ? 'the server is stopping' : 'the new source did not give a whole cluster in time'
      )
    }
    const old = this.#view
    // Serials that come by transfer are not ours to choose.
    if (view.kind !== 'mirror') {
      view.zones.zones.takeOverFrom(old.zones.zones)
      view.zones.exports.takeOverFrom(old.zones.exports)
    }
    this.#view = view
    await old.close()
  }

  #watch(): void {
    this.#watcher = new ConfigWatcher({
      file: this.#config.file,
      hash: this.#config.hash,
      load: loadOptions(),
      clock: this.clock,
      onLoaded: (config) => {
        this.use(config).catch((error: unknown) => this.log.error({ err: error }, 'a new configuration was not taken'))
      },
      onProblem: (error) => {
        this.#configProblems = error.problems
        this.reloads.refused++
        this.operator.events.add({ kind: 'reload-refused', text: error.message })
        this.log.error(
          { problems: error.problems },
          'the configuration file is wrong; the old configuration stays in use'
        )
      }
    })
  }

  #parts(): Parts {
    return partsOf(this, { instanceId: this.#instanceId, random, knownServices: this.#knownServices })
  }

  #sweep(): void {
    this.#cache.sweep(this.clock.nowMs(), cacheSweepEntries)
    this.#cancelSweep = this.clock.after(cacheSweepEveryMs, () => this.#sweep())
  }
}

const newCache = ({ cache }: Config): AnswerCache =>
  new AnswerCache({ maxBytes: cache.maxOctets, serveStaleMs: cache.serveStaleSeconds * 1000 })
