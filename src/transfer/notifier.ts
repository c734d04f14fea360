/**
 * NOTIFY over UDP: to the servers that the operator lists, and to those that took or asked for a zone lately.
 *
 * One request for a server and zone is under way at a time; what changes meanwhile is one more after it. Without a
 * response it is sent again with growing pauses (RFC 1996 §3.6); a server that was not listed is forgotten then.
 */
import type { Cancel, Clock } from '../base/clock.ts'
import { hostPortToText, type HostPort } from '../base/host-port.ts'
import {
  notifyEveryMs,
  notifyFirstWaitMs,
  notifyPeers,
  notifyPeerMemoryMs,
  notifyTries,
  notifyZonesPerServer
} from '../base/transfer-limits.ts'
import { headerRcode } from '../wire/header.ts'
import { RCODE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import { notifyResponseId, withId } from './notify-message.ts'
import type { TransferStats } from './transfer-stats.ts'

/** Where secondaries listen that were not listed. */
const dnsPort = 53

/** An exchange of datagrams with one address: as many as it takes, until it is closed. */
export type Datagrams = Readonly<{ send(octets: Uint8Array): void; close(): void }>

export type OpenDatagrams = (
  to: Readonly<{ address: string; port: number }>,
  onMessage: (octets: Uint8Array) => void
) => Datagrams

export type NotifierOptions = Readonly<{
  clock: Clock
  /** Uniform in [0, 1). */
  random: () => number
  stats: TransferStats
  open: OpenDatagrams
  /** Addresses of a host name as far as they are known; of an address the address itself. Never waits. */
  addressesOf(host: string): readonly string[]
  /** The NOTIFY of a zone as it is now, without id; null where there is no such zone for other servers. */
  message(apex: DomainName): Uint8Array | null
  /** Signs what goes to an address with the key that it used last; as it is where it used none. */
  sign(message: Uint8Array, address: string): Uint8Array
}>

/** One zone of one server. */
type Duty = {
  readonly server: Server
  readonly apex: DomainName
  /** The request under way. */
  exchange: Datagrams | null
  id: number
  tries: number
  isBehind: boolean
  lastAtMs: number
  cancel: Cancel
}

type Server = {
  readonly address: string
  readonly port: number
  readonly isListed: boolean
  /** Zones that it asked for. */
  readonly wanted: Set<DomainName>
  /** Zones that it said it has not. */
  readonly unwanted: Set<DomainName>
  readonly duties: Map<DomainName, Duty>
  askedAtMs: number
}

export class Notifier {
  readonly #options: NotifierOptions
  readonly #clock: Clock
  #listed: readonly HostPort[] = []
  /** By `host:port`; those that were not listed in the order in which they asked last. */
  readonly #servers = new Map<string, Server>()
  #isClosed = false

  constructor(options: NotifierOptions) {
    this.#options = options
    this.#clock = options.clock
  }

  /** Exchanges the list of the operator; what is under way to others ends. */
  use(listed: readonly HostPort[]): void {
    this.#listed = listed
    const texts = new Set(this.#listedAddresses().map(({ host, port }) => hostPortToText(host, port)))
    for (const [text, server] of this.#servers) if (server.isListed && !texts.has(text)) this.#forget(text, server)
  }

  /** A server that is no peerdns took a zone, or asked for its SOA. */
  noteInterest(address: string, apex: DomainName): void {
    const nowMs = this.#clock.nowMs()
    const listed = this.#listedServers().filter((server) => server.address === address)
    for (const server of listed) {
      want(server, apex)
      server.unwanted.delete(apex)
    }
    if (listed.length > 0) return
    const text = hostPortToText(address, dnsPort)
    const server = this.#servers.get(text) ?? newServer(address, dnsPort, false)
    server.askedAtMs = nowMs
    want(server, apex)
    this.#servers.delete(text)
    this.#servers.set(text, server)
    this.#boundUnlisted(nowMs)
  }

  /** A zone has another serial. `isZone`: it is one of our zones, no suffix, so that listed servers may have it. */
  changed(apex: DomainName, isZone: boolean): void {
    if (this.#isClosed) return
    for (const server of [...this.#listedServers(), ...this.#unlisted()]) {
      const isWanted = server.wanted.has(apex) || (server.isListed && isZone && !server.unwanted.has(apex))
      if (isWanted) this.#tell(server, apex)
    }
  }

  /** Ends everything that is under way. */
  close(): void {
    this.#isClosed = true
    for (const [text, server] of this.#servers) this.#forget(text, server)
  }

  #listedAddresses(): HostPort[] {
    return this.#listed.flatMap(({ host, port }) =>
      this.#options.addressesOf(host).map((address) => ({ host: address, port }))
    )
  }

  #listedServers(): Server[] {
    return this.#listedAddresses().map(({ host, port }) => {
      const text = hostPortToText(host, port)
      let server = this.#servers.get(text)
      if (server === undefined || !server.isListed) {
        if (server !== undefined) this.#forget(text, server)
        this.#servers.set(text, (server = newServer(host, port, true)))
      }
      return server
    })
  }

  #unlisted(): Server[] {
    return [...this.#servers.values()].filter(({ isListed }) => !isListed)
  }

  #boundUnlisted(nowMs: number): void {
    let over = this.#unlisted().length - notifyPeers
    for (const [text, server] of this.#servers) {
      if (server.isListed) continue
      if (over <= 0 && nowMs - server.askedAtMs <= notifyPeerMemoryMs) return
      this.#forget(text, server)
      over -= 1
    }
  }

  #forget(text: string, server: Server): void {
    this.#servers.delete(text)
    for (const duty of server.duties.values()) this.#end(duty)
  }

  #tell(server: Server, apex: DomainName): void {
    let duty = server.duties.get(apex)
    if (duty === undefined) {
      const lastAtMs = Number.NEGATIVE_INFINITY
      duty = { server, apex, exchange: null, id: 0, tries: 0, isBehind: false, lastAtMs, cancel: () => {} }
      server.duties.set(apex, duty)
    }
    if (duty.exchange !== null || duty.isBehind) {
      duty.isBehind = true
      return
    }
    const waitMs = duty.lastAtMs + notifyEveryMs - this.#clock.nowMs()
    if (waitMs <= 0) {
      this.#begin(duty)
      return
    }
    duty.isBehind = true
    duty.cancel = this.#clock.after(waitMs, () => this.#begin(duty))
  }

  #begin(duty: Duty): void {
    duty.isBehind = false
    duty.lastAtMs = this.#clock.nowMs()
    duty.tries = 0
    duty.id = Math.floor(this.#options.random() * 0x1_0000)
    duty.exchange = this.#options.open(duty.server, (octets) => this.#take(duty, octets))
    this.#send(duty)
  }

  #send(duty: Duty): void {
    const message = this.#options.message(duty.apex)
    if (message === null || duty.exchange === null) {
      this.#end(duty)
      return
    }
    if (duty.tries >= notifyTries) {
      this.#options.stats.notifyLostTotal += 1
      this.#end(duty)
      const { server } = duty
      if (!server.isListed) this.#forget(hostPortToText(server.address, server.port), server)
      return
    }
    // What changed since is in this one too.
    duty.isBehind = false
    this.#options.stats.notifySentTotal += 1
    duty.exchange.send(this.#options.sign(withId(message, duty.id), duty.server.address))
    duty.cancel = this.#clock.after(notifyFirstWaitMs * 2 ** duty.tries, () => this.#send(duty))
    duty.tries += 1
  }

  #take(duty: Duty, octets: Uint8Array): void {
    if (duty.exchange === null || notifyResponseId(octets, octets.length) !== duty.id) return
    this.#options.stats.notifyAnsweredTotal += 1
    const { server, apex, isBehind } = duty
    this.#end(duty)
    const rcode = headerRcode(octets)
    if (rcode === RCODE.NOTAUTH || rcode === RCODE.REFUSED || rcode === RCODE.NOTIMP) {
      server.wanted.delete(apex)
      if (server.isListed) server.unwanted.add(apex)
      return
    }
    if (isBehind) this.#tell(server, apex)
  }

  #end(duty: Duty): void {
    duty.cancel()
    duty.exchange?.close()
    duty.exchange = null
    duty.isBehind = false
  }
}

function want({ wanted }: Server, apex: DomainName): void {
  if (wanted.size < notifyZonesPerServer) wanted.add(apex)
}

const newServer = (address: string, port: number, isListed: boolean): Server => ({
  address,
  port,
  isListed,
  wanted: new Set(),
  unwanted: new Set(),
  duties: new Map(),
  askedAtMs: Number.NEGATIVE_INFINITY
})
