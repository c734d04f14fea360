/** The addresses of a node's hub (`cluster.source.mirror`) as they are now. */
import { isIP } from 'node:net'
import type { Clock } from '../base/clock.ts'
import { hostPortToText, type HostPort } from '../base/host-port.ts'
import { ServerResolver } from '../peer/resolve-server.ts'
import { resolveBySystem } from './resolve-by-system.ts'

/** Gives them as `host:port`, in the order of the configuration. */
export function hubServers(servers: readonly HostPort[], clock: Clock): () => readonly string[] {
  const hosts = new ServerResolver({ hostsPath: '/etc/hosts', resolveHost: resolveBySystem }, clock)
  return () =>
    servers.flatMap(({ host, port }) => {
      const addresses = isIP(host) === 0 ? hosts.addresses(host) : [host]
      return addresses.map((address) => hostPortToText(address, port))
    })
}
