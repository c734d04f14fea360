/**
 * The zones that others may take: each of ours, and suffixes of them as zones of their own; kept while they are asked
 * for, and told of every batch of their store.
 */
import { transferParts } from '../base/transfer-limits.ts'
import { isAtOrBelow, labelsBelow, type DomainName } from '../wire/name.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import type { ExportRule } from './export-rule.ts'
import { ZonePart } from './zone-part.ts'

/** What the zones come from. Another object of this means other zones. */
export type ZoneSource = Readonly<{
  /** Our zones, each once. */
  stores: readonly ZoneStore[]
  /** What is given instead of a zone: to a peerdns, or to any other server. */
  given(store: ZoneStore, toPeerdns: boolean): ZoneStore
  /** Whether the zones are complete. */
  isReady(): boolean
  /** Since the zones' source last proved that they are right, in milliseconds; null before the first time. */
  ageMs(): number | null
}>

/**
 * - a part: the name is one of a zone that is given away.
 * - `not-authoritative`: no zone of ours, and no suffix of one that can be given away; for servers that are no peerdns
 *   also a namespace or Service that does not exist.
 * - `hidden`: the export policy does not show it.
 */
export type PartFound = ZonePart | 'not-authoritative' | 'hidden'

export type PartListener = (part: ZonePart) => void

/** Longest suffix that is given away, below a zone: `<svc>.<ns>.svc`. */
const maxSuffixLabels = 3

export class ZoneParts {
  readonly source: ZoneSource
  readonly #rule: ExportRule
  readonly #suffixZones: readonly DomainName[]
  readonly #onChange: PartListener
  readonly #isKept: (part: ZonePart) => boolean
  /** By store, then apex; the part asked for last is the last one. */
  readonly #parts = new Map<ZoneStore, Map<DomainName, ZonePart>>()
  readonly #unsubscribe: (() => void)[] = []
  #suffixes = 0

  /**
   * @param options.suffixZones apexes of the zones whose suffixes may be taken alone.
   * @param options.onChange called when a part has another serial.
   * @param options.isKept whether somebody waits for changes of a part, so that it may not go.
   */
  constructor(
    source: ZoneSource,
    options: Readonly<{
      rule: ExportRule
      suffixZones: readonly DomainName[]
      onChange: PartListener
      isKept: (part: ZonePart) => boolean
    }>
  ) {
    this.source = source
    this.#rule = options.rule
    this.#suffixZones = options.suffixZones
    this.#onChange = options.onChange
    this.#isKept = options.isKept
    const given = source.stores.flatMap((store) => [source.given(store, true), source.given(store, false)])
    for (const store of new Set(given)) {
      this.#parts.set(store, new Map())
      this.#unsubscribe.push(
        store.subscribeBatches((batch) => {
          // Whoever is told looks parts up, which moves them in the map.
          const changed = [...this.#parts.get(store)!.values()].filter((part) => part.note(batch))
          for (const part of changed) this.#onChange(part)
        })
      )
    }
    // Those who are told of changes without having asked want to know of every zone.
    for (const store of source.stores)
      for (const toPeerdns of [true, false]) this.#part(source.given(store, toPeerdns), store.apex)
  }

  /** The zone of exactly this apex, for a peerdns or another server. */
  find(apex: DomainName, toPeerdns: boolean): PartFound {
    const store = this.#storeOf(apex)
    if (store === null) return 'not-authoritative'
    if (!this.#rule.shows(apex)) return 'hidden'
    const given = this.source.given(store, toPeerdns)
    if (apex !== store.apex && !toPeerdns && !this.#isThere(given, apex)) return 'not-authoritative'
    return this.#part(given, apex)
  }

  /**
   * Whether a suffix can be taken by a server that would keep an empty zone for a name that nobody meant. Who took it
   * while it existed has to hear that it is empty now.
   */
  #isThere(store: ZoneStore, apex: DomainName): boolean {
    const isTop = labelsBelow(apex, store.apex).length === 1
    return (
      isTop ||
      store.exists(apex) ||
      this.#rule.names(apex) ||
      this.#parts.get(store)!.has(apex) ||
      !this.source.isReady()
    )
  }

  /** Ends listening to the stores. */
  close(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    this.#parts.clear()
  }

  #storeOf(apex: DomainName): ZoneStore | null {
    let above: ZoneStore | null = null
    for (const store of this.source.stores) {
      if (store.apex === apex) return store
      if (isAtOrBelow(apex, store.apex) && (above === null || store.apex.length > above.apex.length)) above = store
    }
    if (above === null || !this.#suffixZones.includes(above.apex)) return null
    const labels = labelsBelow(apex, above.apex)
    return labels.length <= maxSuffixLabels && labels.at(-1) === 'svc' ? above : null
  }

  #part(store: ZoneStore, apex: DomainName): ZonePart {
    const parts = this.#parts.get(store)!
    let part = parts.get(apex)
    if (part === undefined) {
      part = new ZonePart(store, apex, this.#rule)
      if (apex !== store.apex) this.#suffixes += 1
    } else {
      parts.delete(apex)
    }
    parts.set(apex, part)
    if (this.#suffixes > transferParts) this.#dropOldest(parts, part)
    return part
  }

  #dropOldest(parts: Map<DomainName, ZonePart>, newest: ZonePart): void {
    for (const [apex, part] of parts) {
      if (part === newest || part.apex === part.store.apex || this.#isKept(part)) continue
      parts.delete(apex)
      this.#suffixes -= 1
      return
    }
  }
}
