/** The edits of one batch, gathered zone by zone; hand-written RRsets hide what is generated in their place. */
import { RRTYPE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import type { NameChange, ServiceState } from '../zone/zone-change.ts'
import type { ZoneEdit } from '../zone/zone-edit.ts'
import type { ZoneStore } from '../zone/zone-store.ts'

type OpenEdit = {
  sets: { owner: DomainName; type: number; after: RRset | null }[]
  services: { owner: DomainName; after: ServiceState | null }[]
  names: NameChange[]
}

/** Hand-written RRsets by owner. */
export type HandWritten = ReadonlyMap<DomainName, readonly RRset[]>

/**
 * Whether a hand-written RRset takes the place of what is generated of an owner and type. A CNAME stands alone
 * (RFC 1034 §3.6.2), so a hand-written one hides all, and any hand-written RRset hides a CNAME.
 */
export function isHidden(handWritten: HandWritten, owner: DomainName, type: number): boolean {
  const sets = handWritten.get(owner)
  if (sets === undefined) return false
  return type === RRTYPE.CNAME || sets.some((set) => set.type === type || set.type === RRTYPE.CNAME)
}

/** Zones that get what is written to another zone. */
export type ZoneCopies = ReadonlyMap<ZoneStore, readonly ZoneStore[]>

const noCopies: ZoneCopies = new Map()

export class EditBatch {
  readonly #handWritten: HandWritten
  readonly #copies: ZoneCopies
  readonly #edits: Map<ZoneStore, OpenEdit>

  constructor(handWritten: HandWritten, copies: ZoneCopies = noCopies, edits = new Map<ZoneStore, OpenEdit>()) {
    this.#handWritten = handWritten
    this.#copies = copies
    this.#edits = edits
  }

  /** The same batch, for what is written to one zone alone. */
  get alone(): EditBatch {
    return new EditBatch(this.#handWritten, noCopies, this.#edits)
  }

  /** A generated RRset, or that there is none; passed over where a hand-written one stands. */
  set(zone: ZoneStore, owner: DomainName, type: number, after: RRset | null): void {
    if (!isHidden(this.#handWritten, owner, type)) this.setByHand(zone, owner, type, after)
  }

  /** A hand-written RRset, or that there is none. */
  setByHand(zone: ZoneStore, owner: DomainName, type: number, after: RRset | null): void {
    this.#edit(zone).sets.push({ owner, type, after })
    for (const copy of this.#copies.get(zone) ?? []) this.#edit(copy).sets.push({ owner, type, after })
  }

  service(zone: ZoneStore, owner: DomainName, after: ServiceState | null): void {
    this.#edit(zone).services.push({ owner, after })
  }

  name(zone: ZoneStore, owner: DomainName, exists: boolean): void {
    this.#edit(zone).names.push({ owner, exists })
    for (const copy of this.#copies.get(zone) ?? []) this.#edit(copy).names.push({ owner, exists })
  }

  /** Carries out one edit for each zone; the number of zones that changed. */
  apply(originAtMs: number): number {
    let changed = 0
    for (const [zone, open] of this.#edits) {
      const edit: ZoneEdit = { ...open, originAtMs }
      if (zone.apply(edit) !== null) changed++
    }
    this.#edits.clear()
    return changed
  }

  #edit(zone: ZoneStore): OpenEdit {
    let edit = this.#edits.get(zone)
    if (edit === undefined) this.#edits.set(zone, (edit = { sets: [], services: [], names: [] }))
    return edit
  }
}
