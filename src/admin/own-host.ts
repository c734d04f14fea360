/**
 * Against DNS rebinding: a web site may point its own name at our address, and then its pages are of one origin with
 * us. The browser still says that name in the Host header. A page cannot be under an address that is not its own.
 */
import { isIP } from 'node:net'

/** Whether a Host header (RFC 9110 §7.2) names an IP address, `localhost`, or `own`; whatever the port. */
export function isOwnHost(header: string, own: string): boolean {
  const host = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(header.trim())
  if (host === null) return false
  const [, bracketed, plain = ''] = host
  if (bracketed !== undefined) return isIP(bracketed) === 6
  const name = plain.toLowerCase().replace(/\.$/, '')
  return isIP(name) === 4 || name === 'localhost' || name === own.toLowerCase()
}
