/**
 * `host:port` as operators write it for listeners and servers: `127.0.0.1:53`, `[fd00::53]:53`, `dns.example.org:53`.
 */
import { isIP } from 'node:net'
import { inBackticks, TextError } from './errors.ts'
import { canonicalAddress } from './ip-address.ts'

/** `host`: an IP address in canonical form (IPv6 without brackets, a zone id kept) or a host name in lower case. */
export type HostPort = Readonly<{ host: string; port: number }>

/** Where to listen: always an address, never a name; port 0 takes a free one. */
export type ListenAddress = Readonly<{ address: string; port: number }>

/** Letters, digits, hyphens and underscores; the last label is not a number (`10.1` is no name, but a bad address). */
const hostName =
  /^(?=.{1,253}$)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*(?!\d+\.?$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.?$/i

function splitPort(text: string): [host: string, port: string | null] {
  const bracketed = /^\[([^\]]*)\](?::(.*))?$/s.exec(text)
  if (bracketed !== null) {
    if (isIP(bracketed[1]!) !== 6) throw new TextError(`${inBackticks(text)}: only an IPv6 address stands in brackets`)
    return [bracketed[1]!, bracketed[2] ?? null]
  }
  if (isIP(text) === 6) return [text, null]
  const colon = text.lastIndexOf(':')
  if (colon < 0) return [text, null]
  const host = text.slice(0, colon)
  if (host.includes(':'))
    throw new TextError(`${inBackticks(text)}: write an IPv6 address with a port in brackets, [::1]:53`)
  return [host, text.slice(colon + 1)]
}

function parsePort(text: string, port: string, lowest: number): number {
  const number = /^\d{1,5}$/.test(port) ? Number(port) : -1
  if (number >= lowest && number <= 65_535) return number
  throw new TextError(`${inBackticks(text)}: a port is a number from ${lowest} to 65535`)
}

/** The address in canonical form with its zone id, or null. */
function parseHostAddress(host: string): string | null {
  const canonical = canonicalAddress(host)
  const zoneAt = host.indexOf('%')
  return canonical === null || zoneAt < 0 ? canonical : canonical + host.slice(zoneAt)
}

/**
 * Reads a server to ask: an address or a host name, with the default port where none is written.
 * @throws TextError
 */
export function parseHostPort(text: string, defaultPort: number): HostPort {
  const [host, port] = splitPort(text)
  const address = parseHostAddress(host)
  if (address === null && !hostName.test(host)) {
    throw new TextError(`${inBackticks(text)} is not an address or host name with a port`)
  }
  return { host: address ?? host.toLowerCase(), port: port === null ? defaultPort : parsePort(text, port, 1) }
}

/**
 * Reads where to listen: an IP address and a port.
 * @throws TextError
 */
export function parseListenAddress(text: string): ListenAddress {
  const [host, port] = splitPort(text)
  const address = parseHostAddress(host)
  if (address === null)
    throw new TextError(`${inBackticks(text)}: listening needs an IP address (0.0.0.0 or [::] for all)`)
  if (port === null) throw new TextError(`${inBackticks(text)} has no port`)
  return { address, port: parsePort(text, port, 0) }
}

/** `host:port`, IPv6 in brackets. */
export const hostPortToText = (host: string, port: number): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
