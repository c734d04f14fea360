/** A hosts file (hosts(5)), read again when it is asked after it has grown old. */
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import type { Clock } from '../base/clock.ts'
import { serverFileOctets, serverFileRereadMs } from '../base/limits.ts'

export class HostsFile {
  readonly #path: string
  readonly #clock: Clock
  #addresses: ReadonlyMap<string, readonly string[]> = new Map()
  #dueAtMs = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | null = null

  constructor(path: string, clock: Clock) {
    this.#path = path
    this.#clock = clock
  }

  /** The addresses of a host name (case does not matter), in the file's order; empty where it has none. */
  async addressesOf(name: string): Promise<readonly string[]> {
    if (this.#dueAtMs <= this.#clock.nowMs()) await (this.#reading ??= this.#read())
    return this.#addresses.get(canonicalHost(name)) ?? []
  }

  /** A file that cannot be read keeps what it said before; a missing one says nothing. */
  async #read(): Promise<void> {
    try {
      const octets = await readFile(this.#path)
      if (octets.length <= serverFileOctets) this.#addresses = parseHosts(octets.toString('latin1'))
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') this.#addresses = new Map()
    }
    this.#dueAtMs = this.#clock.nowMs() + serverFileRereadMs
    this.#reading = null
  }
}

/** Addresses by host name in lower case without a last dot. Lines that are wrong are left out. */
export function parseHosts(text: string): Map<string, string[]> {
  const addresses = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address, ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    if (address === undefined || isIP(address) === 0) continue
    for (const name of names.map(canonicalHost)) {
      const known = addresses.get(name)
      if (known === undefined) addresses.set(name, [address])
      else if (!known.includes(address)) known.push(address)
    }
  }
  return addresses
}

const canonicalHost = (name: string): string => name.toLowerCase().replace(/\.$/, '')
