/**
 * The sockets that are served on, for DNS and HTTP: opened, or taken over from the process that serves them until now
 * (`takeover: on`), and given to the one that comes after us.
 */
import { startAdmin, type RunningAdmin } from '../admin/http-server.ts'
import type { Inspectable } from '../admin/inspectable.ts'
import type { Cancel, Clock } from '../base/clock.ts'
import { ListenError } from '../base/errors.ts'
import { takeoverAttempts, takeoverRetryMs, takeoverWaitMs } from '../base/socket-limits.ts'
import type { Logger } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import type { DataPlane } from '../pipeline/data-plane.ts'
import { Listeners } from '../server/listeners.ts'
import { chooseUdpIo, type ChosenIo } from '../server/mmsg/batched-io.ts'
import type { Libc } from '../server/mmsg/libc.ts'
import type { Responder } from '../server/responder.ts'
import { ListeningSockets } from '../server/takeover/listening-sockets.ts'
import { Predecessor } from '../server/takeover/predecessor.ts'
import { Successors } from '../server/takeover/successors.ts'
import { UnixListener } from '../server/takeover/unix-channel.ts'
import { dgramIo } from '../server/udp-listener.ts'
import { keepMemorySmall } from './memory.ts'
import { readFirstSockets, Workers } from './threads/workers.ts'

export type ServingParts = Readonly<{
  responder: Responder
  /** Who that is, for workers. */
  dataPlane: DataPlane
  inspect: Inspectable
  clock: Clock
  log: Logger
  /**
   * Resolves when queries can be answered: nothing is taken over before. Called only where somebody else serves
   * meanwhile.
   */
  becomeAble: () => Promise<unknown>
  /** Hears that datagrams are read by the C library. */
  useLibc: (libc: Libc) => void
}>

type IoWithWorkers = ChosenIo & Pick<Serving, 'workers' | 'wantedWorkers' | 'whyNoWorkers'>

export class Serving {
  readonly listeners: Listeners
  readonly admin: RunningAdmin
  /** The threads that answer from memory; null: there is one thread for everything. */
  readonly workers: Workers | null
  /** How many of them the configuration of the start asks for. */
  readonly wantedWorkers: number
  /** Why there are none though the configuration asks for some; null: it is as it says. */
  readonly whyNoWorkers: string | null
  readonly #sockets: ListeningSockets | null
  readonly #predecessor: Predecessor | null
  readonly #successors: Successors | null
  readonly #clock: Clock
  #endWaiting: () => void = () => {}
  readonly #endKeepingSmall: Cancel

  /** @throws ListenError where an address is taken or missing, with nothing left open. */
  static async open(config: Config, parts: ServingParts): Promise<Serving> {
    const { clock, log } = parts
    const chosen: ChosenIo =
      config.batching === 'off' ? { udpIo: dgramIo, whyNotBatched: null, libc: null } : await chooseUdpIo(clock)
    if (chosen.whyNotBatched !== null) log.info({ why: chosen.whyNotBatched }, 'UDP is read one datagram at a time')
    const io = { ...chosen, ...startWorkers(config, parts, chosen) }
    const { libc } = io
    if (libc !== null) parts.useLibc(libc)
    try {
      if (!config.takeover) return await Serving.#bind(config, parts, io, null, null)
      if (libc === null) {
        log.warn('sockets are neither taken over nor handed over: that needs UDP in batches')
        return await Serving.#bind(config, parts, io, null, null)
      }
      return await Serving.#takeOverOrBind(config, parts, { ...io, libc })
    } catch (error) {
      await io.workers?.close()
      throw error
    }
  }

  static async #takeOverOrBind(
    config: Config,
    parts: ServingParts,
    io: IoWithWorkers & { libc: Libc }
  ): Promise<Serving> {
    const { clock, log } = parts
    for (let attempt = 1; ; attempt++) {
      const predecessor = Predecessor.find(io.libc, config.listen)
      let taken: ReadonlyMap<string, number> | null = null
      if (predecessor !== null) {
        log.info('another process serves these addresses: its sockets are taken over once the cluster is read')
        const able = Promise.all([parts.becomeAble(), io.workers?.prepared()])
        const isAble = await Promise.race([able.then(() => true), predecessor.gone.then(() => false)])
        taken = isAble ? await predecessor.take() : null
      }
      const sockets = new ListeningSockets(io.libc, taken ?? new Map<string, number>())
      try {
        const serving = await Serving.#bind(config, parts, io, sockets, predecessor)
        if (taken !== null) log.info({ sockets: [...taken.keys()] }, 'sockets are taken over')
        return serving
      } catch (error) {
        sockets.close()
        predecessor?.close()
        // Who has the address may be about to hand it over, or to end.
        const mayGoAway = error instanceof ListenError && error.code === 'EADDRINUSE' && taken === null
        if (!mayGoAway || attempt === takeoverAttempts) throw error
      }
      await waitAMoment(io.libc, clock)
    }
  }

  static async #bind(
    config: Config,
    { responder, inspect, clock, log }: ServingParts,
    { udpIo, libc, workers, wantedWorkers, whyNoWorkers }: IoWithWorkers,
    sockets: ListeningSockets | null,
    predecessor: Predecessor | null
  ): Promise<Serving> {
    const listeners = await Listeners.open({
      addresses: config.listen,
      responder,
      clock,
      udpIo,
      udpSockets: workers?.size ?? 1,
      sockets,
      limits: {
        inFlightQueries: config.limits.inFlightQueries,
        tcpConnections: config.limits.tcpConnections,
        tcpIdleTimeoutMs: config.limits.tcpIdleTimeoutMs
      },
      onFault: (error) => log.error({ err: error }, 'a responder threw')
    })
    try {
      const { observe, admin } = config
      const openSocket = (where: Readonly<{ address: string; port: number }>): number | null =>
        sockets?.tcp(where, { ipv6Only: false })?.fd ?? null
      const running = await startAdmin({ observe, admin, inspect, clock, log, openSocket })
      if (workers !== null) workers.serve(listeners)
      else if (libc !== null) readFirstSockets(libc, listeners)
      return new Serving(listeners, running, {
        libc,
        sockets,
        predecessor,
        workers,
        wantedWorkers,
        whyNoWorkers,
        clock,
        log
      })
    } catch (error) {
      await listeners.stop({ drainTimeoutMs: 0, force: true })
      throw error
    }
  }

  private constructor(
    listeners: Listeners,
    admin: RunningAdmin,
    parts: Readonly<{
      libc: Libc | null
      sockets: ListeningSockets | null
      predecessor: Predecessor | null
      workers: Workers | null
      wantedWorkers: number
      whyNoWorkers: string | null
      clock: Clock
      log: Logger
    }>
  ) {
    const { libc, sockets, predecessor, workers, clock, log } = parts
    this.workers = workers
    this.wantedWorkers = parts.wantedWorkers
    this.whyNoWorkers = parts.whyNoWorkers
    this.listeners = listeners
    this.admin = admin
    this.#sockets = sockets
    this.#predecessor = predecessor
    this.#clock = clock
    sockets?.closeUnused()
    this.#endKeepingSmall = keepMemorySmall(clock, libc?.mallocTrim ?? null)
    this.#successors =
      libc === null || sockets === null
        ? null
        : new Successors(libc, listeners.addresses, () => sockets.kept, {
            onHello: () => log.info('another process will take over as soon as it can serve'),
            onTaken: () => {
              listeners.pause()
              workers?.pause()
              admin.pause()
              log.info('another process has taken the sockets over: it serves as long as it lives')
            },
            onReturned: () => {
              listeners.resume()
              workers?.resume()
              admin.resume().catch((error: unknown) => log.error({ err: error }, 'HTTP could not be resumed'))
              log.warn('the process that had taken over is gone: serving again')
            },
            onProblem: (error) => log.warn({ err: error }, 'no other process will find us to take over')
          })
  }

  /** Another process serves in our place. */
  get isTakenOver(): boolean {
    return this.#successors?.isTaken === true
  }

  /** Waits for a process that has said that it will take over, but not for ever. */
  async untilTakenOver(): Promise<void> {
    if (this.#successors === null) return
    const isOver = Promise.withResolvers<void>()
    this.#endWaiting = isOver.resolve
    const cancel = this.#clock.after(takeoverWaitMs, isOver.resolve)
    await Promise.race([this.#successors.decided(), isOver.promise])
    cancel()
    this.#endWaiting = () => {}
  }

  /** Ends `untilTakenOver`. */
  hurry(): void {
    this.#endWaiting()
  }

  /** Closes everything at once: the server was stopped while this was being opened. */
  async abandon(): Promise<void> {
    await this.workers?.close()
    await this.listeners.stop({ drainTimeoutMs: 0, force: true })
    await this.close()
  }

  /**
   * Closes what is left when the listeners are stopped; a process that had its sockets from us, or gave them to us,
   * keeps its own.
   */
  async close(): Promise<void> {
    this.#endKeepingSmall()
    this.#successors?.close()
    await this.admin.close()
    this.#sockets?.close()
    this.#predecessor?.close()
  }
}

/** Starts the threads that answer, where this machine and the configuration let them be. */
function startWorkers(
  { threads, batching, listen }: Config,
  { dataPlane, clock, log }: ServingParts,
  { libc, whyNotBatched }: ChosenIo
): Pick<Serving, 'workers' | 'wantedWorkers' | 'whyNoWorkers'> {
  // Nobody wants any, or nothing is kept where they could read it.
  if (threads === 0 || dataPlane.ready === null || (batching !== 'off' && dataPlane.ready.shared === null)) {
    return { workers: null, wantedWorkers: 0, whyNoWorkers: null }
  }
  if (libc !== null) {
    const workers = new Workers(threads, listen.length, { libc, dataPlane, clock, log })
    return { workers, wantedWorkers: threads, whyNoWorkers: null }
  }
  const why = batching === 'off' ? 'batching is off' : (whyNotBatched ?? 'UDP is not read in batches')
  log.info({ threads, why }, 'one thread does everything: others can only answer where UDP is read in batches')
  return { workers: null, wantedWorkers: threads, whyNoWorkers: why }
}

/** Timers keep no process alive; a socket that nobody knows does. */
async function waitAMoment(libc: Libc, clock: Clock): Promise<void> {
  const alive = new UnixListener(libc, `peerdns waits ${process.pid}`, (channel) => channel.close())
  await new Promise<void>((resolve) => {
    clock.after(takeoverRetryMs, resolve)
  })
  alive.close()
}
