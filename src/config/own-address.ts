/** Whether a server that we would ask is ourselves: such a query would come back until its budget runs out. */
import { hostPortToText, type HostPort, type ListenAddress } from '../base/host-port.ts'
import { NetworkSet } from '../base/network.ts'

const loopback = NetworkSet.parse(['127.0.0.0/8', '::1'])

/** Addresses that a server's host stands for, as far as the text alone says. */
function addressesOf(host: string): string[] {
  // A packet sent to the unspecified address goes to this machine.
  if (host === '0.0.0.0' || host === 'localhost' || host === 'localhost.') return ['127.0.0.1', '::1']
  return [host === '::' ? '::1' : host]
}

/**
 * The listen address that the server leads back to, as text, or null.
 *
 * A listener on 0.0.0.0 or :: has every loopback address of its family and those in `localAddresses` (canonical).
 */
export function ownAddress(
  listen: readonly ListenAddress[],
  server: HostPort,
  localAddresses: readonly string[]
): string | null {
  const isOwn = (own: ListenAddress, address: string): boolean => {
    if (own.port !== server.port) return false
    if (own.address === address) return true
    const wildcard = address.includes(':') ? '::' : '0.0.0.0'
    return own.address === wildcard && (loopback.contains(address) || localAddresses.includes(address))
  }
  const own = listen.find((one) => addressesOf(server.host).some((address) => isOwn(one, address)))
  return own === undefined ? null : hostPortToText(own.address, own.port)
}

/** Whether two listeners of one protocol can't both be opened. */
export function listenersCollide(one: ListenAddress, other: ListenAddress): boolean {
  if (one.port !== other.port || one.port === 0) return false
  if (one.address === other.address) return true
  const isSameFamily = one.address.includes(':') === other.address.includes(':')
  const isWildcard = [one, other].some(({ address }) => address === '0.0.0.0' || address === '::')
  return isSameFamily && isWildcard
}
