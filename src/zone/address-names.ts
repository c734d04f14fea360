/**
 * Names that spell an IPv4 address: `10-0-0-7.<anything>`, and `7.0.0.10.in-addr.arpa`. An address is a number from 0
 * to 2^32-1 here, and -1 stands for a name that spells none in its one right way, such as `010-0-0-7`.
 */
import { parseName, type DomainName } from '../wire/name.ts'

const in4 = parseName('in-addr.arpa')
const dash = 0x2d
const zero = 0x30
const decimals = Array.from({ length: 256 }, (_, octet) => String(octet))

/** Whether a first label may spell an address or an octet of one, at the cost of a look at two characters. */
export function mayBeAddress(name: DomainName): boolean {
  const digit = name.charCodeAt(1) - zero
  return digit >= 0 && digit <= 9 && name.charCodeAt(0) <= 15
}

/** The address that the first label spells with dashes. @param name in wire form, as names are. */
export function dashedAddress(name: string): number {
  const end = name.charCodeAt(0) + 1
  let address = 0
  let octet = -1
  let dashes = 0
  for (let at = 1; at < end; at++) {
    const code = name.charCodeAt(at)
    if (code === dash) {
      if (octet < 0 || ++dashes > 3) return -1
      address = address * 256 + octet
      octet = -1
    } else {
      octet = withDigit(octet, code - zero)
      if (octet < 0) return -1
    }
  }
  return dashes === 3 && octet >= 0 ? address * 256 + octet : -1
}

/** The address whose PTR has this owner. */
export function reversedAddress(owner: string): number {
  let at = 0
  let address = 0
  for (let place = 1; place < 2 ** 32; place *= 256) {
    const end = at + 1 + owner.charCodeAt(at)
    if (!(end <= owner.length - in4.length)) return -1
    let octet = -1
    for (at++; at < end; at++) {
      octet = withDigit(octet, owner.charCodeAt(at) - zero)
      if (octet < 0) return -1
    }
    if (octet < 0) return -1
    address += octet * place
  }
  return owner.length - at === in4.length && owner.endsWith(in4) ? address : -1
}

/** A number of one octet with one more digit, without zeros before it; -1: there is none. `octet` -1: no digit yet. */
function withDigit(octet: number, digit: number): number {
  if (!(digit >= 0 && digit <= 9) || octet === 0) return -1
  const longer = octet < 0 ? digit : octet * 10 + digit
  return longer > 255 ? -1 : longer
}

/** The name right below `parent` whose label is the address with dashes; the caller sees to its length. */
export function dashedName(address: number, parent: string): DomainName {
  const [a, b, c, d] = [address >>> 24, (address >>> 16) & 255, (address >>> 8) & 255, address & 255]
  const label = `${decimals[a]!}-${decimals[b]!}-${decimals[c]!}-${decimals[d]!}`
  return (String.fromCharCode(label.length) + label + parent) as DomainName
}

/** The owner of the PTR of an address. RFC 1035 §3.5. */
export const reversedName = (address: number): DomainName => octetName(address & 255, reversedNetwork(address))

/** What stands right above the owners of the PTRs of an address and its 255 neighbours. */
export function reversedNetwork(address: number): DomainName {
  let owner: string = in4
  for (let shift = 24; shift > 0; shift -= 8) owner = octetName((address >>> shift) & 255, owner)
  return owner as DomainName
}

/** The name right below `parent` whose label is this number. */
export function octetName(octet: number, parent: string): DomainName {
  const label = decimals[octet]!
  return (String.fromCharCode(label.length) + label + parent) as DomainName
}

/** The RDATA of an A record, one character an octet. */
export const addressText = (address: number): string =>
  String.fromCharCode(address >>> 24, (address >>> 16) & 255, (address >>> 8) & 255, address & 255)

/** The address in such RDATA. */
export const textAddress = (text: string): number =>
  text.charCodeAt(0) * 2 ** 24 + ((text.charCodeAt(1) << 16) | (text.charCodeAt(2) << 8) | text.charCodeAt(3))
