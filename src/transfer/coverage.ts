/**
 * Which names of a zone its records alone do not answer: those below a zone cut or a DNAME, and those that a wildcard
 * may match. A copy leaves them to the zone's own servers, so that a name has one answer, whoever gives it.
 * RFC 1034 §4.3.2, RFC 4592, RFC 6672.
 */
import { RRTYPE } from '../wire/iana.ts'
import { parentOf, type DomainName } from '../wire/name.ts'

const isWildcard = (name: DomainName): boolean => name.charCodeAt(0) === 1 && name.charAt(1) === '*'

export class Coverage {
  readonly #apex: DomainName
  /** Names with NS (below the apex) or DNAME records, and how many such RRsets. */
  readonly #cuts = new Map<DomainName, number>()
  /** Names right above a wildcard, and how many RRsets it has. */
  readonly #wildcards = new Map<DomainName, number>()
  #hasSignatures = false

  constructor(apex: DomainName) {
    this.#apex = apex
  }

  /** Whether the zone is signed, so that who asks with DO would get more than a copy's plain records. */
  get hasSignatures(): boolean {
    return this.#hasSignatures
  }

  /** Whether the records tell all that the zone says. */
  get isWhole(): boolean {
    return this.#cuts.size === 0 && this.#wildcards.size === 0
  }

  /** Takes note that an RRset has come (`isThere`) or gone. */
  note(owner: DomainName, type: number, isThere: boolean): void {
    const isCut = (type === RRTYPE.NS && owner !== this.#apex) || type === RRTYPE.DNAME
    if (isCut) count(this.#cuts, owner, isThere)
    if (isWildcard(owner)) count(this.#wildcards, parentOf(owner)!, isThere)
    if (type === RRTYPE.DNSKEY && owner === this.#apex) this.#hasSignatures = isThere
  }

  /** Whether the records tell what the zone says of a name. `exists`: it has records or names below it. */
  covers(qname: DomainName, exists: boolean): boolean {
    if (this.isWhole) return true
    for (
      let name: DomainName | null = qname;
      name !== null && name.length >= this.#apex.length;
      name = parentOf(name)
    ) {
      if (this.#cuts.has(name)) return false
      if (!exists && name !== qname && this.#wildcards.has(name)) return false
    }
    return true
  }
}

function count(counts: Map<DomainName, number>, name: DomainName, isThere: boolean): void {
  const now = (counts.get(name) ?? 0) + (isThere ? 1 : -1)
  if (now <= 0) counts.delete(name)
  else counts.set(name, now)
}
