/**
 * The names of a zone and the RRsets at them.
 *
 * A map holds every name that exists: those with records, those that were made to exist without any, and the empty
 * non-terminals above them. Nearly all names have one RRset and nothing below, and these are held by their answer
 * alone; the others have a node. Of these nearly all follow from their first label, and are held in the node above
 * them (compact-names.ts). Each node counts its children, so a name comes and goes with the last reason for it, at the
 * cost of its labels below the apex.
 */
import { RRTYPE } from '../wire/iana.ts'
import { parentOf, type DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import { hostPointer, hostRRset, type AddressHosts } from './address-hosts.ts'
import { dashedName, mayBeAddress, reversedName, reversedNetwork } from './address-names.ts'
import { CompactHosts, CompactPointers, compactNamesFor, isCompact, type CompactNames } from './compact-names.ts'
import { packRRset, type PackedRRset } from './packed-rrset.ts'
import { SharedTexts } from './shared-texts.ts'
import type { NameChange } from './zone-change.ts'

/** An RRset as lookup hands it out, made once so that a lookup allocates nothing. */
export type FoundAnswer = Readonly<{ kind: 'answer'; rrset: RRset }>
export type FoundAlias = Readonly<{ kind: 'alias'; rrset: RRset }>

export type NameNode = {
  readonly kind: 'node'
  /** One for each type, in the order they came. Few, so a search beats a map. */
  answers: readonly FoundAnswer[]
  /** The CNAME again, for questions of another type. */
  alias: FoundAlias | null
  /** Exists without records of its own. */
  isNamed: boolean
  /** Names one label below. */
  children: number
  /** Those of them that are held here and not in the map; null: there are none. */
  compact: CompactNames | null
}

/** A name with one RRset that is no CNAME and nothing below it, or any other name. */
export type NameEntry = FoundAnswer | NameNode

const noAnswers: readonly FoundAnswer[] = []

export class NameTree {
  readonly #apex: DomainName
  readonly #entries = new Map<DomainName, NameEntry>()
  /** Names that came or went since the last `takeExistenceChanges`. */
  #existence = new Map<DomainName, boolean>()
  readonly #texts = new SharedTexts()
  #notesExistence = true
  #rrsets = 0
  #compactNames = 0
  /** The node that the last new name was put below: names of one Service come one after the other. */
  #lastParent: Readonly<{ name: DomainName; node: NameNode }> | null = null

  /** The nodes that hold names in the map which may spell an address, or held some. */
  readonly #spelled = new Set<NameNode>()

  /** Begins with the apex alone, which always exists. */
  constructor(apex: DomainName) {
    this.#apex = apex
    this.#entries.set(apex, {
      kind: 'node',
      answers: noAnswers,
      alias: null,
      isNamed: true,
      children: 0,
      compact: null
    })
  }

  /** How many names exist. */
  get names(): number {
    return this.#entries.size + this.#compactNames
  }

  get rrsets(): number {
    return this.#rrsets
  }

  entry(name: DomainName): NameEntry | undefined {
    return this.#entries.get(name) ?? this.#holderOf(name)?.compact?.rrset(name) ?? undefined
  }

  isNamed(name: DomainName): boolean {
    const entry = this.#entries.get(name)
    return entry?.kind === 'node' && entry.isNamed
  }

  rrset(owner: DomainName, type: number): RRset | null {
    const entry = this.entry(owner)
    if (entry === undefined) return null
    if (entry.kind === 'answer') return entry.rrset.type === type ? entry.rrset : null
    return findAnswer(entry, type)?.rrset ?? null
  }

  /** Puts an RRset in the place of the one of its owner and type. */
  put(given: RRset): void {
    const rrset = packRRset(given)
    const answer: FoundAnswer = rrset
    const { owner, type } = rrset
    if (this.#putCompact(rrset)) return
    const entry = this.#general(owner)
    if (entry === undefined && type !== RRTYPE.CNAME) {
      this.#rrsets += 1
      this.#add(owner, answer)
      return
    }
    if (entry?.kind === 'answer' && entry.rrset.type === type) {
      this.#entries.set(owner, answer)
      return
    }
    const node = this.#node(owner)
    const at = node.answers.findIndex((other) => other.rrset.type === type)
    if (at < 0) this.#rrsets += 1
    // concat makes an array of just the right size, a spread one with room for 17.
    node.answers = at < 0 ? node.answers.concat(answer) : node.answers.with(at, answer)
    if (type === RRTYPE.CNAME) node.alias = { kind: 'alias', rrset }
  }

  /** Puts the A record of each of these hosts. Nobody is told of the existence of those that are new. */
  putHosts(hosts: AddressHosts): void {
    const { owner, ttlSeconds, addresses } = hosts
    if (addresses.length === 0) return
    const node = this.#node(owner)
    for (const address of addresses) {
      const compact = node.compact ?? new CompactHosts(ttlSeconds)
      const isFit = compact instanceof CompactHosts && compact.ttlSeconds === ttlSeconds
      if (!isFit || (this.#spelled.has(node) && this.#entries.has(dashedName(address, owner)))) {
        this.put(hostRRset(address, hosts))
        continue
      }
      node.compact = compact
      if (compact.add(address)) this.#countCompact(node)
    }
  }

  /** Puts the PTR record of each of these hosts. Nobody is told of the existence of those that are new. */
  putPointers(hosts: AddressHosts): void {
    const { owner, ttlSeconds, addresses } = hosts
    let network = -1
    let node: NameNode | null = null
    for (const address of addresses) {
      if (node === null || address >>> 8 !== network) {
        network = address >>> 8
        node = this.#node(reversedNetwork(address))
      }
      const compact = node.compact ?? new CompactPointers(ttlSeconds, this.#texts)
      const isFit = compact instanceof CompactPointers && compact.ttlSeconds === ttlSeconds
      if (!isFit || (this.#spelled.has(node) && this.#entries.has(reversedName(address)))) {
        this.put(hostPointer(address, hosts))
        continue
      }
      node.compact = compact
      if (compact.add(address, owner)) this.#countCompact(node)
    }
  }

  /** Takes an RRset away, and with it the names that had no other reason to exist. */
  remove(owner: DomainName, type: number): void {
    const entry = this.#entries.get(owner)
    if (entry === undefined) {
      this.#removeCompact(owner, type)
      return
    }
    if (entry.kind === 'answer') {
      if (entry.rrset.type !== type) return
      this.#rrsets -= 1
      this.#delete(owner)
      return
    }
    const left = entry.answers.filter((answer) => answer.rrset.type !== type)
    this.#rrsets -= entry.answers.length - left.length
    entry.answers = left.length === 0 ? noAnswers : left
    if (type === RRTYPE.CNAME) entry.alias = null
    this.#prune(owner, entry)
  }

  /** Makes a name exist without records of its own, or no longer. */
  setNamed(name: DomainName, isNamed: boolean): void {
    if (!isNamed && this.#entries.get(name)?.kind !== 'node') return
    const node = this.#node(name)
    node.isNamed = isNamed
    this.#prune(name, node)
  }

  /** Does what changes this tree while nobody asks which names came or went. @throws what `work` throws */
  withoutNoting(work: () => void): void {
    this.#notesExistence = false
    try {
      work()
    } finally {
      this.#notesExistence = true
    }
  }

  /** The names that came or went since the last call, each once and only where the end differs from the start. */
  takeExistenceChanges(): NameChange[] {
    const changes = Array.from(this.#existence, ([owner, exists]) => ({ owner, exists }))
    this.#existence = new Map()
    return changes
  }

  /** All names that exist, the apex first, else in no order. */
  *entries(): Generator<[DomainName, NameEntry]> {
    for (const named of this.#entries) {
      yield named
      const [name, entry] = named
      if (entry.kind === 'answer' || entry.compact === null) continue
      for (const rrset of entry.compact.all(name)) yield [rrset.owner, rrset]
    }
  }

  /** Whether the RRset is held in the node above it now. */
  #putCompact(rrset: PackedRRset): boolean {
    const { owner, type, ttlSeconds } = rrset
    if (!mayBeAddress(owner) || !isCompact(rrset) || this.#entries.has(owner)) return false
    const node = this.#parent(owner)
    const compact = (node.compact ??= compactNamesFor(rrset, this.#texts))
    if (compact.type !== type || compact.ttlSeconds !== ttlSeconds) return false
    if (!compact.put(rrset)) return true
    this.#countCompact(node)
    this.#noteExistence(owner, true)
    return true
  }

  #countCompact(node: NameNode): void {
    node.children += 1
    this.#compactNames += 1
    this.#rrsets += 1
  }

  #removeCompact(owner: DomainName, type: number): void {
    const node = this.#holderOf(owner)
    if (node === null || node.compact!.type !== type || !this.#takeOut(owner, node)) return
    node.children -= 1
    this.#rrsets -= 1
    this.#noteExistence(owner, false)
    this.#prune(parentOf(owner)!, node)
  }

  /** The name's entry in the map, where a name that was held in the node above it goes now. */
  #general(name: DomainName): NameEntry | undefined {
    const entry = this.#entries.get(name)
    if (entry !== undefined) return entry
    const node = this.#holderOf(name)
    const rrset = node?.compact?.rrset(name) ?? null
    if (node === null || rrset === null) return undefined
    this.#takeOut(name, node)
    this.#spelled.add(node)
    this.#entries.set(name, rrset)
    return rrset
  }

  #takeOut(name: DomainName, node: NameNode): boolean {
    if (!node.compact!.delete(name)) return false
    this.#compactNames -= 1
    if (node.compact!.size === 0) node.compact = null
    return true
  }

  /** The node that may hold the name; null: it is held nowhere, or in the map. */
  #holderOf(name: DomainName): NameNode | null {
    if (!mayBeAddress(name)) return null
    const last = this.#lastParent
    const above = last !== null && isRightBelow(name, last.name) ? last.node : this.#entries.get(parentOf(name)!)
    return above?.kind === 'node' && above.compact !== null ? above : null
  }

  /** The name's node, made where there is none. */
  #node(name: DomainName): NameNode {
    const known = this.#general(name)
    if (known?.kind === 'node') return known
    const answers = known === undefined ? noAnswers : [known]
    const created: NameNode = { kind: 'node', answers, alias: null, isNamed: false, children: 0, compact: null }
    if (known === undefined) this.#add(name, created)
    else this.#entries.set(name, created)
    return created
  }

  #add(name: DomainName, entry: NameEntry): void {
    this.#entries.set(name, entry)
    this.#noteExistence(name, true)
    const parent = this.#parent(name)
    parent.children += 1
    if (mayBeAddress(name)) this.#spelled.add(parent)
  }

  /** The node one label above, made where there is none. */
  #parent(name: DomainName): NameNode {
    const last = this.#lastParent
    if (last !== null && isRightBelow(name, last.name)) return last.node
    const above = parentOf(name)!
    const node = this.#node(above)
    this.#lastParent = { name: above, node }
    return node
  }

  #prune(name: DomainName, node: NameNode): void {
    if (node.children === 0) this.#spelled.delete(node)
    if (node.isNamed || node.children > 0 || name === this.#apex) return
    if (node.answers.length === 0) this.#delete(name)
    else if (node.answers.length === 1 && node.alias === null) this.#entries.set(name, node.answers[0]!)
    this.#lastParent = null
  }

  #delete(name: DomainName): void {
    this.#entries.delete(name)
    this.#noteExistence(name, false)
    const parent = parentOf(name)!
    // What has something below it is held by a node.
    const above = this.#entries.get(parent) as NameNode
    above.children -= 1
    this.#prune(parent, above)
  }

  #noteExistence(name: DomainName, exists: boolean): void {
    if (!this.#notesExistence) return
    // Came and went again within one change: nothing has changed.
    if (!this.#existence.delete(name)) this.#existence.set(name, exists)
  }
}

/** Whether a name is one label longer than another one that it ends with. */
const isRightBelow = (name: DomainName, parent: DomainName): boolean =>
  name.length - name.charCodeAt(0) - 1 === parent.length && name.endsWith(parent)

/** The RRset of a type at a node, ready to hand out. */
export function findAnswer(node: NameNode, type: number): FoundAnswer | null {
  for (const answer of node.answers) if (answer.rrset.type === type) return answer
  return null
}
