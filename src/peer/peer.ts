/**
 * One peer (another cluster's DNS servers) or the set of upstreams: asks a question of whichever of its servers
 * answers.
 *
 * Nothing is kept here but what is in flight and what is known of the servers; the answer cache is another part, and
 * which peer is asked for a name is the policy's affair.
 */
import { isIP } from 'node:net'
import type { Clock } from '../base/clock.ts'
import { attemptsPerQuestion } from '../base/limits.ts'
import { Flight, type FlightObserver } from './flight.ts'
import { HedgeBudget, UsualTime } from './latency.ts'
import { InFlightLimit } from './in-flight-limit.ts'
import { PeerQuery, questionKey } from './peer-query.ts'
import {
  newPeerStats,
  type AttemptOutcome,
  type PeerOptions,
  type PeerQuestion,
  type PeerReply,
  type PeerStats,
  type ServerAddress
} from './peer-types.ts'
import type { HostAddresses } from './resolve-server.ts'
import type { AttemptParts } from './server-attempt.ts'
import { ServerTable, type Server, type ServerHealth } from './server-table.ts'
import { TcpPool } from './tcp-pool.ts'
import { UdpPorts } from './udp-ports.ts'
import type { OpenUdpSocket } from './udp-socket.ts'

export type PeerDependencies = Readonly<{
  clock: Clock
  /** Uniform in [0, 1); for spreading in time, never for ids. */
  random: () => number
  /** What probes say of a server (`host:port`). */
  health: (server: string) => ServerHealth
  /** Hears how each attempt of a question went; a `timeout` may be followed by a late `answer`. Probes are not told. */
  onOutcome?: (server: string, outcome: AttemptOutcome, tookMs: number, question: PeerQuestion) => void
  /** The limit that all peers share. */
  exchanges?: InFlightLimit
  /** Addresses of servers that are given by name; without it they are never found. */
  hosts?: HostAddresses
  /** How UDP sockets are opened from now on; by node:dgram where it is not there. */
  openSocket?: () => OpenUdpSocket
}>

export type ServerStatus = Readonly<{
  server: string
  health: ServerHealth
  /** Smoothed; null before the first answer. */
  rttMs: number | null
  inFlight: number
  failures: number
  lastOutcome: AttemptOutcome | null
  /** Since the last outcome; null before the first one. */
  lastOutcomeAgeMs: number | null
  tcpConnections: number
  /** The server was found not to understand EDNS. */
  isPlain: boolean
}>

export type PeerStatus = Readonly<{
  id: string
  inFlight: number
  /** In the order in which they are asked. */
  servers: readonly ServerStatus[]
  /** Servers given by name of which no address is known. */
  unresolved: readonly string[]
}>

export class Peer {
  readonly id: string
  readonly stats: PeerStats = newPeerStats()
  readonly #options: PeerOptions
  readonly #parts: PeerDependencies
  readonly #attemptParts: AttemptParts
  readonly #room: InFlightLimit
  readonly #table: ServerTable
  readonly #flights = new Map<string, Flight>()
  /** Questions to one given server (probes): they share nothing. */
  readonly #probes = new Set<Flight>()
  readonly #ports = new Map<string, UdpPorts>()
  readonly #pools = new Map<string, TcpPool>()
  readonly #hedges = new HedgeBudget()
  readonly #usualTime = new UsualTime()
  readonly #observer: FlightObserver
  readonly #probeObserver: FlightObserver
  /** Counts a reply, for who joined another one's question, and for who asked first. */
  readonly #hear = (reply: PeerReply): void => void this.#counted(reply)
  readonly #hearFirst = (reply: PeerReply): void => {
    if (reply.kind === 'answer') this.#usualTime.add(reply.tookMs)
    this.#counted(reply)
  }
  #servers: readonly ServerAddress[]
  /** The addresses that the names among the servers stood for when the table was last set. */
  #lastResolved: readonly (readonly string[])[] | null = null
  #isClosed = false

  constructor(options: PeerOptions, parts: PeerDependencies) {
    this.id = options.id
    this.#options = options
    this.#parts = parts
    this.#servers = options.servers
    this.#room = new InFlightLimit(options.maxInFlight)
    this.#table = new ServerTable(options.families, parts.clock, parts.random)
    this.#attemptParts = {
      clock: parts.clock,
      stats: this.stats,
      transport: options.transport,
      zone: options.zone,
      hedges: this.#hedges,
      portsOf: (server) => this.#portsOf(server),
      poolOf: (server) => this.#poolOf(server)
    }
    this.#probeObserver = {
      answered: (server, tookMs, sinceLastMs) => this.#table.answered(server, tookMs, sinceLastMs),
      failed: (_server, outcome) => this.#count(outcome)
    }
    this.#observer = {
      answered: (server, tookMs, sinceLastMs, question) => {
        this.#table.answered(server, tookMs, sinceLastMs)
        parts.onOutcome?.(server.text, 'answer', tookMs, question)
      },
      failed: (server, outcome, startedAtMs, question) => {
        this.#count(outcome)
        this.#table.failed(server, outcome, startedAtMs)
        parts.onOutcome?.(server.text, outcome, parts.clock.nowMs() - startedAtMs, question)
      }
    }
    this.#refreshTable()
  }

  /**
   * Asks the peer, for at most `budgetMs`. Never rejects.
   *
   * Equal questions in flight share their exchanges. Above the limits the reply is `failed`/`overload`, at once.
   * @param isBackground nobody waits for it: it is not asked a second time because it takes longer than usual, nor lets
   * others be.
   */
  ask(question: PeerQuestion, budgetMs: number, isBackground = false): Promise<PeerReply> {
    this.stats.asked++
    const key = questionKey(question)
    const known = this.#flights.get(key)
    if (known !== undefined) {
      this.stats.joined++
      return known.join(budgetMs, this.#hear)
    }
    if (this.#isClosed) return Promise.resolve(this.#counted(notAsked('no-server', 'closed')))
    const { exchanges } = this.#parts
    if (!this.#room.tryEnter()) {
      const detail = `${this.#room.max} questions are in flight at ${this.id}`
      return Promise.resolve(this.#counted(notAsked('overload', detail)))
    }
    if (exchanges !== undefined && !exchanges.tryEnter()) {
      this.#room.leave()
      const detail = `${exchanges.max} questions are in flight in all`
      return Promise.resolve(this.#counted(notAsked('overload', detail)))
    }
    const query = new PeerQuery(question, this.#options.recursion)
    const attemptParts = isBackground ? { ...this.#attemptParts, hedges: noHedges } : this.#attemptParts
    const flight = new Flight(query, attemptsPerQuestion, attemptParts, this.#observer, () => {
      this.#flights.delete(key)
      this.#room.leave()
      exchanges?.leave()
    })
    this.#flights.set(key, flight)
    if (!isBackground) this.#hedges.earn()
    const reply = flight.join(budgetMs, this.#hearFirst)
    this.#startFlight(flight)
    return reply
  }

  /** The time in milliseconds within which 95 % of the answers to questions come; null while too little is known. */
  get usualMs(): number | null {
    return this.#usualTime.percentileMs
  }

  /** The smoothed round trip of its quickest server in milliseconds; null before any answer. */
  get quickestRttMs(): number | null {
    let quickestMs: number | null = null
    for (const { rttMs } of this.#table.all) {
      if (rttMs !== null && (quickestMs === null || rttMs < quickestMs)) quickestMs = rttMs
    }
    return quickestMs
  }

  /**
   * Whether somebody else may be asked meanwhile because this peer takes longer than usual: for 5 % of its questions.
   */
  mayHedge(): boolean {
    if (!this.#hedges.trySpend()) return false
    this.stats.hedged++
    return true
  }

  /**
   * Asks one server (`host:port` as in status) and no other, once: for probes. Outside of the limits, and not told to
   * `onOutcome`; an answer counts for the server's RTT. Never rejects.
   * @param isBounded it takes one of the places of questions in flight, and is not asked where none is free.
   */
  askServer(server: string, question: PeerQuestion, timeoutMs: number, isBounded = false): Promise<PeerReply> {
    const known = this.#table.get(server)
    if (known === undefined || this.#isClosed)
      return Promise.resolve(notAsked('no-server', `${server} is no server of ${this.id}`))
    if (isBounded && !this.#room.tryEnter()) return Promise.resolve(notAsked('overload', 'no place is free'))
    const flight: Flight = new Flight(
      new PeerQuery(question, this.#options.recursion),
      1,
      this.#attemptParts,
      this.#probeObserver,
      () => {
        this.#probes.delete(flight)
        if (isBounded) this.#room.leave()
      }
    )
    this.#probes.add(flight)
    const reply = flight.join(timeoutMs, () => {})
    flight.start([known])
    return reply
  }

  /** Exchanges the configured servers; what is known of those that stay is kept. */
  setServers(servers: readonly ServerAddress[]): void {
    this.#servers = servers
    this.#lastResolved = null
    this.#refreshTable()
  }

  /** The addresses that can be asked now, as `host:port`, in their standing order. */
  servers(): readonly string[] {
    this.#refreshTable()
    return this.#table.all.map(({ text }) => text)
  }

  status(): PeerStatus {
    this.#refreshTable()
    const nowMs = this.#parts.clock.nowMs()
    const servers = this.#table.all.map((server) => ({
      server: server.text,
      health: this.#parts.health(server.text),
      rttMs: server.rttMs,
      inFlight: server.inFlight,
      failures: server.failures,
      lastOutcome: server.lastOutcome,
      lastOutcomeAgeMs: server.lastOutcome === null ? null : nowMs - server.lastOutcomeAtMs,
      tcpConnections: this.#pools.get(server.text)?.connections ?? 0,
      isPlain: server.plainUntilMs > nowMs
    }))
    const unresolved = this.#names().filter((name) => (this.#parts.hosts?.addresses(name) ?? []).length === 0)
    return { id: this.id, inFlight: this.#room.current, servers, unresolved }
  }

  /** Ends everything in flight (`failed`) and every connection; resolves when the sockets are closed. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const flight of [...this.#flights.values(), ...this.#probes]) flight.giveUp()
    await Promise.all([...this.#ports.values(), ...this.#pools.values()].map((pool) => pool.close()))
    this.#ports.clear()
    this.#pools.clear()
  }

  #startFlight(flight: Flight): void {
    this.#refreshTable()
    const names = this.#table.all.length === 0 ? this.#names() : []
    const { hosts } = this.#parts
    const start = (): void => flight.start(this.#table.plan(this.#parts.health))
    if (names.length === 0 || hosts === undefined) {
      start()
      return
    }
    // No address is known at all: the first name that gives one starts the flight, within the askers' budgets.
    const tryStart = (): void => {
      this.#refreshTable()
      if (this.#table.all.length > 0) start()
    }
    void Promise.all(names.map((name) => hosts.resolve(name).then(tryStart))).then(start)
  }

  #names(): string[] {
    return this.#servers.filter(({ host }) => isIP(host) === 0).map(({ host }) => host)
  }

  /** Takes over the addresses that names stand for now; cheap while nothing changes. */
  #refreshTable(): void {
    const { hosts } = this.#parts
    if (this.#isClosed) return
    if (this.#lastResolved?.length === 0) return
    const resolved = this.#names().map((name) => hosts?.addresses(name) ?? [])
    if (this.#lastResolved !== null && resolved.every((addresses, at) => addresses === this.#lastResolved?.[at])) return
    this.#lastResolved = resolved
    let nextName = 0
    this.#table.set(
      this.#servers.flatMap((server) =>
        isIP(server.host) !== 0 ? [server] : resolved[nextName++]!.map((host) => ({ host, port: server.port }))
      )
    )
    for (const [text, ports] of this.#ports) {
      if (this.#table.get(text) !== undefined) continue
      this.#ports.delete(text)
      ports.retire()
    }
    for (const [text, pool] of this.#pools) {
      if (this.#table.get(text) !== undefined) continue
      this.#pools.delete(text)
      void pool.close()
    }
  }

  #portsOf(server: Server): UdpPorts {
    let ports = this.#ports.get(server.text)
    if (ports === undefined) {
      ports = new UdpPorts(server, this.#parts.clock, this.stats, this.#parts.openSocket)
      this.#ports.set(server.text, ports)
    }
    return ports
  }

  #poolOf(server: Server): TcpPool {
    let pool = this.#pools.get(server.text)
    if (pool === undefined) {
      pool = new TcpPool(server, this.#parts.clock, this.stats)
      this.#pools.set(server.text, pool)
    }
    return pool
  }

  #count(outcome: 'timeout' | 'network' | 'rcode' | 'nonsense'): void {
    if (outcome === 'timeout') this.stats.timeouts++
    else if (outcome === 'network') this.stats.networkErrors++
    else if (outcome === 'rcode') this.stats.rcodes++
    else this.stats.nonsense++
  }

  #counted(reply: PeerReply): PeerReply {
    if (reply.kind === 'answer') this.stats.answered++
    else if (reply.reason === 'overload') this.stats.overloaded++
    else this.stats.failed++
    return reply
  }
}

const noHedges = { trySpend: (): boolean => false }

const notAsked = (reason: 'overload' | 'no-server', detail: string): PeerReply => ({
  kind: 'failed',
  reason,
  rcode: null,
  detail,
  attempts: [],
  tookMs: 0
})
