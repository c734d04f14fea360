/**
 * The servers of one peer: what is known of each, and in which order they are asked.
 *
 * Time enters through the clock only to stamp what happened; nothing here starts a timer or sends anything.
 */
import { isIP } from 'node:net'
import type { Clock } from '../base/clock.ts'
import { serverBackoffMaxMs, serverBackoffMinMs } from '../base/limits.ts'
import { hostPortToText } from '../base/host-port.ts'
import { UsualTime } from './latency.ts'
import type { AttemptOutcome, ServerAddress } from './peer-types.ts'

/** One address that can be asked. */
export type Server = {
  /** `host:port`, IPv6 in brackets. */
  readonly text: string
  readonly address: string
  readonly port: number
  readonly family: 4 | 6
  /** Smoothed time to an answer in milliseconds; null before the first one. */
  rttMs: number | null
  /** What its answers usually take. */
  readonly usualTime: UsualTime
  /** Failures since the last answer. */
  failures: number
  /** When the last counted failure came. */
  failedAtMs: number
  /** Not asked before others until then, after a failure. */
  restsUntilMs: number
  /** Asked without EDNS until then. */
  plainUntilMs: number
  inFlight: number
  lastOutcome: AttemptOutcome | null
  lastOutcomeAtMs: number
}

/** `doubtful`: it passes its probes and fails what clients ask. */
export type ServerHealth = 'up' | 'down' | 'unknown' | 'doubtful'

/** Weight of the newest measurement in the smoothed RTT. */
const rttGain = 0.25
/** A server keeps its place unless another one is quicker by more than both of these. */
const rttBandShare = 0.2
const rttBandMs = 5

export class ServerTable {
  readonly #clock: Clock
  readonly #random: () => number
  readonly #families: readonly (4 | 6)[]
  readonly #servers = new Map<string, Server>()
  /** The standing order by RTT; who rests or is down is moved back only when it is asked for. */
  #order: Server[] = []

  constructor(families: readonly (4 | 6)[], clock: Clock, random: () => number) {
    this.#families = families
    this.#clock = clock
    this.#random = random
  }

  /**
   * Exchanges the addresses. Those that stay keep their place and what is known of them; new ones come behind, in the
   * given order. Addresses of families that are not wanted, and texts that are none, are left out.
   */
  set(addresses: readonly ServerAddress[]): void {
    const wanted = new Map<string, Server>()
    for (const { host, port } of addresses) {
      const family = isIP(host)
      if ((family !== 4 && family !== 6) || !this.#families.includes(family)) continue
      const text = hostPortToText(host, port)
      wanted.set(text, this.#servers.get(text) ?? newServer(text, host, port, family))
    }
    const staying = this.#order.filter((server) => wanted.has(server.text))
    const added = [...wanted.values()].filter((server) => !this.#servers.has(server.text))
    this.#order = [...staying, ...added]
    this.#servers.clear()
    for (const server of this.#order) this.#servers.set(server.text, server)
  }

  get all(): readonly Server[] {
    return this.#order
  }

  get(text: string): Server | undefined {
    return this.#servers.get(text)
  }

  /**
   * The order for one question: those in use by RTT, then those that rest after a failure or are doubtful, then those
   * that probes call down; never fewer than all.
   *
   * A server whose rest is over goes first again for this one question; others stay away until its outcome is known.
   */
  plan(healthOf: (server: string) => ServerHealth): Server[] {
    const nowMs = this.#clock.nowMs()
    const inUse: Server[] = []
    const resting: Server[] = []
    const down: Server[] = []
    for (const server of this.#order) {
      const health = healthOf(server.text)
      if (health === 'down') down.push(server)
      else (health === 'doubtful' || server.restsUntilMs > nowMs ? resting : inUse).push(server)
    }
    const first = inUse[0]
    if (first !== undefined && first.failures > 0) first.restsUntilMs = nowMs + this.#restMs(first.failures)
    return [...inUse, ...resting, ...down]
  }

  /**
   * Notes an answer and the time it took. Where the datagram was sent again meanwhile, nobody can tell which of them
   * was answered: the time that is nearer to what is known counts (RFC 6298 §3 leaves such measurements out).
   */
  answered(server: Server, tookMs: number, sinceLastMs = tookMs): void {
    const rttMs =
      server.rttMs !== null && Math.abs(sinceLastMs - server.rttMs) < Math.abs(tookMs - server.rttMs)
        ? sinceLastMs
        : tookMs
    server.usualTime.add(rttMs)
    server.failures = 0
    server.restsUntilMs = 0
    server.rttMs = server.rttMs === null ? rttMs : server.rttMs + rttGain * (rttMs - server.rttMs)
    this.#note(server, 'answer')
    this.#sort()
  }

  /**
   * Notes a failure of an attempt that began at `startedAtMs`. Many questions fail together when a server dies: those
   * that began before the last counted failure count as one with it.
   */
  failed(server: Server, outcome: AttemptOutcome, startedAtMs: number): void {
    const nowMs = this.#clock.nowMs()
    this.#note(server, outcome)
    if (startedAtMs < server.failedAtMs) return
    server.failures++
    server.failedAtMs = nowMs
    server.restsUntilMs = nowMs + this.#restMs(server.failures)
  }

  #note(server: Server, outcome: AttemptOutcome): void {
    server.lastOutcome = outcome
    server.lastOutcomeAtMs = this.#clock.nowMs()
  }

  /** 1 s, doubled with each failure up to 10 s, spread by a tenth so that many of us do not return together. */
  #restMs(failures: number): number {
    const restMs = Math.min(serverBackoffMaxMs, serverBackoffMinMs * 2 ** Math.min(failures - 1, 16))
    return restMs * (0.9 + 0.2 * this.#random())
  }

  /** Moves each server before the first one that it beats by more than the band. */
  #sort(): void {
    for (let from = 1; from < this.#order.length; from++) {
      const server = this.#order[from]!
      const to = this.#order.findIndex((other, at) => at < from && isClearlyQuicker(server, other))
      if (to < 0) continue
      this.#order.splice(from, 1)
      this.#order.splice(to, 0, server)
    }
  }
}

function isClearlyQuicker(one: Server, other: Server): boolean {
  if (one.rttMs === null || other.rttMs === null) return false
  return one.rttMs + Math.max(other.rttMs * rttBandShare, rttBandMs) < other.rttMs
}

const newServer = (text: string, address: string, port: number, family: 4 | 6): Server => ({
  text,
  address,
  port,
  family,
  rttMs: null,
  usualTime: new UsualTime(),
  failures: 0,
  failedAtMs: Number.NEGATIVE_INFINITY,
  restsUntilMs: 0,
  plainUntilMs: 0,
  inFlight: 0,
  lastOutcome: null,
  lastOutcomeAtMs: 0
})
