/** Which network a reverse name is about. RFC 1035 §3.5, RFC 3596 §2.5. */
import { parseNetwork, type Network } from '../base/network.ts'
import { labelsOf, type DomainName } from '../wire/name.ts'

/** The network of `2.1.10.in-addr.arpa` (10.1.2.0/24) or of nibbles below `ip6.arpa`; null for any other name. */
export function networkOfReverseName(name: DomainName): Network | null {
  const labels = labelsOf(name).reverse()
  if (labels[0] !== 'arpa') return null
  const parts = labels.slice(2)
  if (
    labels[1] === 'in-addr' &&
    parts.length <= 4 &&
    parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256)
  ) {
    const octets = [...parts.map(Number), 0, 0, 0, 0].slice(0, 4)
    return parseNetwork(`${octets.join('.')}/${8 * parts.length}`)
  }
  if (labels[1] === 'ip6' && parts.length <= 32 && parts.every((part) => /^[0-9a-f]$/.test(part))) {
    const groups = parts.join('').padEnd(32, '0').match(/.{4}/g)!
    return parseNetwork(`${groups.join(':')}/${4 * parts.length}`)
  }
  return null
}
