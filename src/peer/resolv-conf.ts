/** The name servers of a resolv.conf(5), followed as the file changes. */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { Clock } from '../base/clock.ts'
import { watchPaths, type FileWatch } from '../base/file-watch.ts'
import { serverFileOctets, serversPerName } from '../base/limits.ts'
import type { ServerAddress } from './peer-types.ts'

const dnsPort = 53

/**
 * The servers of the `nameserver` lines, in order, each once; IPv6 addresses may carry a zone id (`fe80::1%eth0`).
 *
 * Lines that are wrong are left out, and so is everything else in the file. Without a line there is no server:
 * the resolver's default, 127.0.0.1, could be ourselves.
 */
export function parseResolvConf(text: string): ServerAddress[] {
  const hosts = new Set<string>()
  for (const line of text.split('\n')) {
    const [keyword, host] = line
      .replace(/[#;].*/, '')
      .trim()
      .split(/\s+/)
    if (keyword === 'nameserver' && host !== undefined && isIP(host) !== 0) hosts.add(host)
  }
  return [...hosts].slice(0, serversPerName).map((host) => ({ host, port: dnsPort }))
}

export class ResolvConf {
  readonly #path: string
  readonly #onChange: (servers: readonly ServerAddress[]) => void
  readonly #watch: FileWatch
  #servers: readonly ServerAddress[] = []

  /** Reads the file, and calls back when it names other servers later. */
  constructor(path: string, clock: Clock, onChange: (servers: readonly ServerAddress[]) => void) {
    this.#path = path
    this.#onChange = onChange
    this.#watch = watchPaths([path], () => this.#reread(), clock)
    this.#servers = this.#read()
  }

  get servers(): readonly ServerAddress[] {
    return this.#servers
  }

  close(): void {
    this.#watch.close()
  }

  #reread(): void {
    const servers = this.#read()
    // Who writes the file anew may be half way; a file without servers is kept out while we know some.
    if (servers.length === 0 || JSON.stringify(servers) === JSON.stringify(this.#servers)) return
    this.#servers = servers
    this.#onChange(servers)
  }

  #read(): readonly ServerAddress[] {
    try {
      const octets = readFileSync(this.#path)
      return octets.length <= serverFileOctets ? parseResolvConf(octets.toString('latin1')) : this.#servers
    } catch {
      return this.#servers
    }
  }
}
