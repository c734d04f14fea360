/**
 * The names of a zone and the RRsets at them.
 *
 * A map from name to node holds every name that exists: those with records, those that were made to exist without
 * any, and the empty non-terminals above them. Each node counts its children, so a name comes and goes with the last
 * reason for it, at the cost of its labels below the apex.
 */
import { RRTYPE } from '../wire/iana.ts'
import { parentOf, type DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import type { NameChange } from './zone-change.ts'

/** An RRset as lookup hands it out, made once so that a lookup allocates nothing. */
export type FoundAnswer = Readonly<{ kind: 'answer'; rrset: RRset }>
export type FoundAlias = Readonly<{ kind: 'alias'; rrset: RRset }>

export type NameNode = {
  /** One for each type, in the order they came. Few, so a search beats a map. */
  answers: readonly FoundAnswer[]
  /** The CNAME again, for questions of another type. */
  alias: FoundAlias | null
  /** Exists without records of its own. */
  isNamed: boolean
  /** Nodes one label below. */
  children: number
}

const noAnswers: readonly FoundAnswer[] = []

export class NameTree {
  readonly #apex: DomainName
  readonly #nodes = new Map<DomainName, NameNode>()
  /** Names that came or went since the last `takeExistenceChanges`. */
  #existence = new Map<DomainName, boolean>()
  #rrsets = 0

  /** Begins with the apex alone, which always exists. */
  constructor(apex: DomainName) {
    this.#apex = apex
    this.#nodes.set(apex, { answers: noAnswers, alias: null, isNamed: true, children: 0 })
  }

  /** How many names exist. */
  get names(): number {
    return this.#nodes.size
  }

  get rrsets(): number {
    return this.#rrsets
  }

  node(name: DomainName): NameNode | undefined {
    return this.#nodes.get(name)
  }

  rrset(owner: DomainName, type: number): RRset | null {
    const node = this.#nodes.get(owner)
    return node === undefined ? null : (findAnswer(node, type)?.rrset ?? null)
  }

  /** Puts an RRset in the place of the one of its owner and type. */
  put(rrset: RRset): void {
    const node = this.#ensure(rrset.owner)
    const answer: FoundAnswer = { kind: 'answer', rrset }
    const at = node.answers.findIndex((other) => other.rrset.type === rrset.type)
    if (at < 0) this.#rrsets += 1
    // concat makes an array of just the right size, a spread one with room for 17.
    node.answers = at < 0 ? node.answers.concat(answer) : node.answers.with(at, answer)
    if (rrset.type === RRTYPE.CNAME) node.alias = { kind: 'alias', rrset }
  }

  /** Takes an RRset away, and with it the names that had no other reason to exist. */
  remove(owner: DomainName, type: number): void {
    const node = this.#nodes.get(owner)
    if (node === undefined) return
    const left = node.answers.filter((answer) => answer.rrset.type !== type)
    this.#rrsets -= node.answers.length - left.length
    node.answers = left.length === 0 ? noAnswers : left
    if (type === RRTYPE.CNAME) node.alias = null
    this.#prune(owner, node)
  }

  /** Makes a name exist without records of its own, or no longer. */
  setNamed(name: DomainName, isNamed: boolean): void {
    const node = isNamed ? this.#ensure(name) : this.#nodes.get(name)
    if (node === undefined) return
    node.isNamed = isNamed
    this.#prune(name, node)
  }

  /** The names that came or went since the last call, each once and only where the end differs from the start. */
  takeExistenceChanges(): NameChange[] {
    const changes = Array.from(this.#existence, ([owner, exists]) => ({ owner, exists }))
    this.#existence = new Map()
    return changes
  }

  /** All names that exist, the apex first, else in no order. */
  entries(): MapIterator<[DomainName, NameNode]> {
    return this.#nodes.entries()
  }

  #ensure(name: DomainName): NameNode {
    const known = this.#nodes.get(name)
    if (known !== undefined) return known
    const created: NameNode = { answers: noAnswers, alias: null, isNamed: false, children: 0 }
    this.#nodes.set(name, created)
    this.#noteExistence(name, true)
    this.#ensure(parentOf(name)!).children += 1
    return created
  }

  #prune(name: DomainName, node: NameNode): void {
    if (node.answers.length > 0 || node.isNamed || node.children > 0 || name === this.#apex) return
    this.#nodes.delete(name)
    this.#noteExistence(name, false)
    const parent = parentOf(name)!
    const above = this.#nodes.get(parent)!
    above.children -= 1
    this.#prune(parent, above)
  }

  #noteExistence(name: DomainName, exists: boolean): void {
    // Came and went again within one change: nothing has changed.
    if (!this.#existence.delete(name)) this.#existence.set(name, exists)
  }
}

/** The RRset of a type at a node, ready to hand out. */
export function findAnswer(node: NameNode, type: number): FoundAnswer | null {
  for (const answer of node.answers) if (answer.rrset.type === type) return answer
  return null
}
