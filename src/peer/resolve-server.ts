/**
 * The addresses of servers that are configured by name: the hosts file first, then DNS through a function that is given
 * (never through ourselves, or the server would wait for itself).
 *
 * A question is never kept waiting while an address is known: what is due is looked up in the background, and the last
 * good addresses stay when that fails.
 */
import type { Clock } from '../base/clock.ts'
import {
  hostLookupTimeoutMs,
  hostTtlMaxSeconds,
  hostTtlMinSeconds,
  serverFileRereadMs,
  serversPerName
} from '../base/limits.ts'
import { HostsFile } from './hosts-file.ts'

/** What a Peer needs of it. */
export interface HostAddresses {
  /** The addresses known now, and the same array while they do not change. Never waits. */
  addresses(name: string): readonly string[]
  /** The addresses, waited for where none is known. Never rejects; empty where there are none. */
  resolve(name: string): Promise<readonly string[]>
}

export type ResolveHost = (name: string) => Promise<Readonly<{ addresses: readonly string[]; ttlSeconds: number }>>

type Entry = {
  addresses: readonly string[]
  dueAtMs: number
  /** The look-up under way. */
  lookup: Promise<void> | null
  lastError: string | null
}

export class ServerResolver implements HostAddresses {
  readonly stats = { lookups: 0, failures: 0 }
  readonly #clock: Clock
  readonly #resolveHost: ResolveHost
  readonly #hostsFile: HostsFile | null
  readonly #entries = new Map<string, Entry>()

  /** @param hostsPath the hosts file, or null for none. */
  constructor(options: { hostsPath: string | null; resolveHost: ResolveHost }, clock: Clock) {
    this.#clock = clock
    this.#resolveHost = options.resolveHost
    this.#hostsFile = options.hostsPath === null ? null : new HostsFile(options.hostsPath, clock)
  }

  addresses(name: string): readonly string[] {
    return this.#current(name).addresses
  }

  async resolve(name: string): Promise<readonly string[]> {
    const entry = this.#current(name)
    if (entry.addresses.length === 0) await entry.lookup
    return entry.addresses
  }

  /** Why the last look-up of a name failed; null where it did not. */
  lastError(name: string): string | null {
    return this.#entries.get(name)?.lastError ?? null
  }

  /** The entry of a name, with a look-up under way if it is due. */
  #current(name: string): Entry {
    let entry = this.#entries.get(name)
    if (entry === undefined) {
      entry = { addresses: [], dueAtMs: Number.NEGATIVE_INFINITY, lookup: null, lastError: null }
      this.#entries.set(name, entry)
    }
    if (entry.lookup === null && entry.dueAtMs <= this.#clock.nowMs()) entry.lookup = this.#lookUp(name, entry)
    return entry
  }

  async #lookUp(name: string, entry: Entry): Promise<void> {
    this.stats.lookups++
    let waitMs = serverFileRereadMs
    try {
      let found = (await this.#hostsFile?.addressesOf(name)) ?? []
      if (found.length === 0) {
        const { addresses, ttlSeconds } = await this.#askDns(name)
        found = addresses
        waitMs = Math.min(hostTtlMaxSeconds, Math.max(hostTtlMinSeconds, ttlSeconds)) * 1000
      }
      if (found.length === 0) throw new Error('no address')
      entry.lastError = null
      if (!isSameList(found, entry.addresses)) entry.addresses = found.slice(0, serversPerName)
    } catch (error) {
      this.stats.failures++
      entry.lastError = error instanceof Error ? error.message : String(error)
      waitMs = hostTtlMinSeconds * 1000
    }
    entry.dueAtMs = this.#clock.nowMs() + waitMs
    entry.lookup = null
  }

  /** Rejects after a time, whatever becomes of the look-up. */
  async #askDns(name: string): ReturnType<ResolveHost> {
    const { promise, reject } = Promise.withResolvers<never>()
    const cancelTimer = this.#clock.after(hostLookupTimeoutMs, () => reject(new Error('timeout')))
    try {
      return await Promise.race([this.#resolveHost(name), promise])
    } finally {
      cancelTimer()
    }
  }
}

/** Whether the lists hold the same addresses; DNS gives them in another order each time. */
function isSameList(one: readonly string[], other: readonly string[]): boolean {
  const limited = new Set(one.slice(0, serversPerName))
  return limited.size === other.length && other.every((address) => limited.has(address))
}
