/** Reverse zones: which zones cover the configured networks, and where an address lies in them. */
import { TextError } from '../base/errors.ts'
import { maxReverseZones } from '../base/limits.ts'
import type { Network } from '../base/network.ts'
import { joinLabels, parseName } from '../wire/name.ts'
import type { DomainName } from '../wire/name.ts'
import { addressOctets, isIPv6 } from './address.ts'

const in4 = parseName('in-addr.arpa')
const in6 = parseName('ip6.arpa')

/** The octets (IPv4) or nibbles (IPv6) of an address as labels, in reading order. */
function parts(octets: readonly number[]): string[] {
  if (octets.length === 4) return octets.map(String)
  return octets.flatMap((octet) => [octet >> 4, octet & 0xf]).map((nibble) => nibble.toString(16))
}

/** The owner of the PTR record of an address in canonical spelling. RFC 1035 §3.5, RFC 3596 §2.5. */
export function reverseName(address: string): DomainName {
  if (!isIPv6(address)) {
    // Nothing but digits, so nothing has to be checked or put in lower case.
    let owner: string = in4
    for (const part of address.split('.')) owner = String.fromCharCode(part.length) + part + owner
    return owner as DomainName
  }
  return joinLabels(parts([...Buffer.from(addressOctets(address), 'latin1')]).reverse(), in6)
}

/** A reverse zone as the octets or nibbles that all its addresses begin with, joined by dots. */
type ZoneKey = { isIPv6: boolean; prefix: readonly string[] }

/** The zones that cover exactly one network: it is split where its length falls between two label borders. */
function split({ family, words, prefixLength }: Network): ZoneKey[] {
  const octets = words.flatMap((word) => [word >>> 24, (word >>> 16) & 0xff, (word >>> 8) & 0xff, word & 0xff])
  const labels = parts(octets)
  const isIPv6 = family === 6
  const labelBits = isIPv6 ? 4 : 8
  const whole = Math.ceil(prefixLength / labelBits)
  const spareBits = whole * labelBits - prefixLength
  if (spareBits === 0) return [{ isIPv6, prefix: labels.slice(0, whole) }]
  const radix = isIPv6 ? 16 : 10
  const first = Number.parseInt(labels[whole - 1]!, radix)
  return Array.from({ length: 1 << spareBits }, (_, at) => ({
    isIPv6,
    prefix: [...labels.slice(0, whole - 1), (first + at).toString(radix)]
  }))
}

/**
 * The apexes of the fewest octet or nibble zones that cover the networks and nothing else.
 * @throws TextError for more of them than `maxReverseZones`.
 */
export function reverseZones(networks: readonly Network[]): DomainName[] {
  const zones = new Map<string, ZoneKey>()
  const keyOf = ({ isIPv6, prefix }: ZoneKey): string => [isIPv6 ? '6' : '4', ...prefix].join('.')
  for (const network of networks) for (const zone of split(network)) zones.set(keyOf(zone), zone)

  const isCovered = ({ isIPv6, prefix }: ZoneKey): boolean =>
    prefix.some((_, length) => zones.has(keyOf({ isIPv6, prefix: prefix.slice(0, length) })))
  for (const [key, zone] of zones) if (isCovered(zone)) zones.delete(key)

  // Where every child of a zone is there, the zone itself takes their place; that may complete its parent in turn.
  const longestFirst = [...zones.values()].sort((one, other) => other.prefix.length - one.prefix.length)
  for (const { isIPv6, prefix } of longestFirst) {
    for (let length = prefix.length - 1; length >= 0; length--) {
      const parent: ZoneKey = { isIPv6, prefix: prefix.slice(0, length) }
      const radix = isIPv6 ? 16 : 10
      const children = Array.from({ length: isIPv6 ? 16 : 256 }, (_, at) =>
        keyOf({ isIPv6, prefix: [...parent.prefix, at.toString(radix)] })
      )
      if (!children.every((child) => zones.has(child))) break
      for (const child of children) zones.delete(child)
      zones.set(keyOf(parent), parent)
    }
  }
  if (zones.size > maxReverseZones)
    throw new TextError(`more than ${maxReverseZones} reverse zones: write shorter prefixes`)
  return Array.from(zones.values(), ({ isIPv6, prefix }) => joinLabels(prefix.toReversed(), isIPv6 ? in6 : in4))
}
