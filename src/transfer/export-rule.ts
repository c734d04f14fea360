/**
 * Which names of our zones others may see: the export policy's namespaces and Services, told from a name alone.
 *
 * A name that belongs to no namespace (the apex, `dns-version`, `ns.dns`) is always seen. Where both lists are set, a
 * Service has to be in both.
 */
import { RRTYPE } from '../wire/iana.ts'
import { isAtOrBelow, labelsBelow, type DomainName } from '../wire/name.ts'
import { readNameRdata } from '../wire/rdata.ts'
import type { RRset } from '../wire/rr.ts'

export type ExportLists = Readonly<{
  /** Empty: all. */
  namespaces: readonly string[]
  /** `namespace/name`; empty: all. */
  services: readonly string[]
}>

export class ExportRule {
  /** Whether it hides nothing. */
  readonly isOpen: boolean
  readonly #namespaces: ReadonlySet<string>
  readonly #services: ReadonlySet<string>
  /** Namespaces of the listed Services. */
  readonly #ofServices: ReadonlySet<string>
  /** The zones whose names the Kubernetes schema explains: cluster zone and clusterset zone. */
  readonly #schemaZones: readonly DomainName[]

  constructor(lists: ExportLists, schemaZones: readonly DomainName[]) {
    this.#namespaces = new Set(lists.namespaces)
    this.#services = new Set(lists.services)
    this.#ofServices = new Set(lists.services.map((service) => service.slice(0, service.indexOf('/'))))
    this.#schemaZones = schemaZones
    this.isOpen = lists.namespaces.length + lists.services.length === 0
  }

  /** Hides nothing. */
  static readonly open = new ExportRule({ namespaces: [], services: [] }, [])

  /** Whether a name may be seen; names outside of the zones with a schema always may. */
  shows(name: DomainName): boolean {
    if (this.isOpen) return true
    const zone = this.#schemaZones.find((apex) => isAtOrBelow(name, apex))
    if (zone === undefined) return true
    const labels = labelsBelow(name, zone)
    const root = labels.at(-1)
    const namespace = labels.at(-2)
    if (namespace === undefined || (root !== 'svc' && root !== 'pod')) return true
    if (this.#namespaces.size > 0 && !this.#namespaces.has(namespace)) return false
    if (this.#services.size === 0) return true
    if (root === 'pod') return false
    const service = labels.at(-3)
    return service === undefined ? this.#ofServices.has(namespace) : this.#services.has(`${namespace}/${service}`)
  }

  /** Whether the lists name exactly this namespace or Service. */
  names(name: DomainName): boolean {
    const zone = this.#schemaZones.find((apex) => isAtOrBelow(name, apex))
    if (zone === undefined) return false
    const [root, namespace, service, ...more] = labelsBelow(name, zone).toReversed()
    if (root !== 'svc' || namespace === undefined || more.length > 0) return false
    if (service !== undefined) return this.#services.has(`${namespace}/${service}`)
    return this.#namespaces.has(namespace) || this.#ofServices.has(namespace)
  }

  /** The RRset without what may not be seen; null where nothing is left. PTR records show the names they point to. */
  visible(rrset: RRset): RRset | null {
    if (this.isOpen) return rrset
    if (!this.shows(rrset.owner)) return null
    if (rrset.type !== RRTYPE.PTR) return rrset
    const rdata = rrset.rdata.filter((target) => this.shows(readNameRdata(target)))
    if (rdata.length === rrset.rdata.length) return rrset
    return rdata.length === 0 ? null : { ...rrset, rdata }
  }
}
