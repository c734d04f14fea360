/** Addresses as sockets report them, made comparable with the networks of the configuration. */

/** The address without zone id (`fe80::1%eth0`), and as v4 where it is a v4-mapped v6 address (`::ffff:192.0.2.1`). */
export function clientAddress(address: string): string {
  if (!address.includes(':')) return address
  if (address.startsWith('::ffff:') && address.includes('.')) return address.slice(7)
  const zone = address.indexOf('%')
  return zone < 0 ? address : address.slice(0, zone)
}
