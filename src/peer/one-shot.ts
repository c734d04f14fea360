/**
 * One question to one server and what came back, as octets: for the command line, which shows an answer as it is.
 * Nothing is retried elsewhere, cleaned or kept; that is what a Peer does.
 */
import type { Clock } from '../base/clock.ts'
import type { ExchangeEnd } from './exchange.ts'
import { isTruncated, PeerQuery } from './peer-query.ts'
import { newPeerStats, type PeerQuestion, type ServerAddress, type Transport } from './peer-types.ts'
import { ServerTable } from './server-table.ts'
import { TcpPool } from './tcp-pool.ts'
import { UdpPorts } from './udp-ports.ts'

export type OneShotOptions = Readonly<{
  /** `host` is an IP address. */
  server: ServerAddress
  question: PeerQuestion
  recursion: boolean
  withEdns: boolean
  /** `auto`: UDP, and TCP where the answer is truncated. */
  transport: 'auto' | 'tcp'
  /** For all of it. */
  timeoutMs: number
  clock: Clock
}>

export type OneShotAnswer =
  | Readonly<{ kind: 'response'; octets: Uint8Array; transport: Transport; wasTruncated: boolean; tookMs: number }>
  | Readonly<{ kind: 'failed'; detail: string; transport: Transport; tookMs: number }>

/** Datagrams that are sent before silence counts as the answer. */
const udpTries = 2

/** Never rejects; leaves nothing open. @throws RangeError where `host` is no IP address. */
export async function askOnce(options: OneShotOptions): Promise<OneShotAnswer> {
  const { clock, timeoutMs, withEdns } = options
  const stats = newPeerStats()
  const startedAtMs = clock.nowMs()
  const table = new ServerTable([4, 6], clock, () => 0)
  table.set([options.server])
  const server = table.all[0]
  if (server === undefined) throw new RangeError(`${options.server.host} is no IP address`)
  const query = new PeerQuery(options.question, options.recursion)
  const pool = new TcpPool(server, clock, stats)
  const ports = new UdpPorts(server, clock, stats)
  let transport: Transport = 'udp'
  let wasTruncated = false

  /** What the exchange brings within its time; null: silence. */
  async function within(ms: number): Promise<ExchangeEnd | null> {
    const { promise, resolve } = Promise.withResolvers<ExchangeEnd | null>()
    const exchange =
      transport === 'udp' ? ports.exchange(query, withEdns, resolve) : pool.exchange(query, withEdns, resolve)
    const cancelTimer = clock.after(ms, () => resolve(null))
    const end = await promise
    cancelTimer()
    exchange.cancel()
    return end
  }

  let end: ExchangeEnd | null = null
  if (options.transport === 'auto') {
    for (let tries = 0; tries < udpTries && end === null; tries++) end = await within(timeoutMs / udpTries)
    wasTruncated = end?.kind === 'response' && isTruncated(end.octets)
  }
  if (options.transport === 'tcp' || wasTruncated) {
    transport = 'tcp'
    end = await within(Math.max(0, timeoutMs - (clock.nowMs() - startedAtMs)))
  }
  await Promise.all([pool.close(), ports.close()])
  const tookMs = clock.nowMs() - startedAtMs
  if (end?.kind === 'response') return { kind: 'response', octets: end.octets, transport, wasTruncated, tookMs }
  const detail = end === null ? `no answer within ${timeoutMs / 1000} s` : end.detail
  return { kind: 'failed', detail, transport, tookMs }
}
