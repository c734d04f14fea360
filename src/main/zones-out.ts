/** Zones that others take: this cluster's, as the section `transfer` wants it, and who is told of their changes. */
import { isIP } from 'node:net'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { openDatagrams } from '../peer/datagrams.ts'
import { ServerResolver } from '../peer/resolve-server.ts'
import { Notifier } from '../transfer/notifier.ts'
import type { CopySource } from '../transfer/passed-on.ts'
import { Primary, type PrimaryOptions } from '../transfer/primary.ts'
import type { TsigKey } from '../transfer/tsig-signer.ts'
import type { ZoneSource } from '../transfer/zone-parts.ts'
import type { ClusterView } from './cluster-view.ts'
import { KeyFiles } from './key-files.ts'
import { resolveBySystem } from './resolve-by-system.ts'

type Dependencies = Readonly<{
  clock: Clock
  log: Logger
  random: () => number
  /** Copies that our own nodes may take. */
  copies: CopySource
}>

export class ZonesOut {
  readonly primary: Primary
  readonly #notifier: Notifier
  readonly #keyFiles: KeyFiles
  readonly #copies: CopySource
  #config: Config
  #view: ClusterView

  constructor({ clock, log, random, copies }: Dependencies, config: Config, view: ClusterView) {
    this.#config = config
    this.#view = view
    this.#copies = copies
    this.#keyFiles = new KeyFiles(clock, log, () => this.use(this.#config, this.#view))
    this.#keyFiles.use(config.transfer.keys)
    const hosts = new ServerResolver({ hostsPath: '/etc/hosts', resolveHost: resolveBySystem }, clock)
    this.primary = new Primary(clock, this.#options(), zoneSource(view), {
      changed: (apex, isZone) => this.#notifier.changed(apex, isZone),
      noteInterest: (address, apex) => this.#notifier.noteInterest(address, apex)
    })
    this.#notifier = new Notifier({
      clock,
      random,
      stats: this.primary.stats,
      open: openDatagrams,
      addressesOf: (host) => (isIP(host) === 0 ? hosts.addresses(host) : [host]),
      message: (apex) => this.primary.notifyMessage(apex, false),
      sign: (message, address) => this.primary.signFor(address, message)
    })
    this.#notifier.use(config.transfer.notify)
  }

  /** The keys for transfers that could be read. */
  get keys(): readonly TsigKey[] {
    return this.#keyFiles.keys
  }

  /** Takes over another configuration, or another view of the cluster. */
  use(config: Config, view: ClusterView): void {
    // Whoever holds a zone with its serial would else never learn of it: no record of ours has changed.
    if (view === this.#view && shownOf(config) !== shownOf(this.#config)) renewSerials(zoneSource(view))
    this.#config = config
    this.#view = view
    this.#keyFiles.use(config.transfer.keys)
    this.#notifier.use(config.transfer.notify)
    this.primary.use(this.#options(), zoneSource(view))
  }

  #options(): PrimaryOptions {
    return { ...primaryOptions(this.#config, this.#view, this.#keyFiles.keys), copies: this.#copies }
  }

  close(): void {
    this.#keyFiles.close()
    this.#notifier.close()
    this.primary.close()
  }
}

/** What is said in transfers beside the records of a zone, and which of them are shown. */
const shownOf = ({ cluster, transfer }: Config): string =>
  JSON.stringify([transfer.export.namespaces, transfer.export.services, cluster.pods, cluster.ttlSeconds])

/** Gives each zone a serial that no journal leads to, so that it is taken whole. */
function renewSerials({ stores, given }: ZoneSource): void {
  for (const store of new Set(stores.flatMap((own) => [own, given(own, true), given(own, false)]))) {
    store.takeOverFrom(store)
  }
}

function primaryOptions({ transfer, cluster }: Config, view: ClusterView, keys: readonly TsigKey[]): PrimaryOptions {
  return {
    allow: transfer.allow,
    needsKey: transfer.keys.length > 0,
    keys,
    export: transfer.export,
    schemaZones: [cluster.zone, cluster.clustersetZone],
    pods: (store) => ({
      // Where single Services are exported, pods are not.
      mode: store.apex === cluster.zone && transfer.export.services.length === 0 ? view.zones.options.pods : 'disabled',
      ttlSeconds: view.zones.options.ttlSeconds
    })
  }
}

function zoneSource(view: ClusterView): ZoneSource {
  const { zones } = view
  return {
    // Copies are not given on.
    stores: view.kind === 'mirror' ? [] : zones.zones.all(),
    given: (store, toPeerdns) => (store === zones.zone ? zones.exports.given(toPeerdns) : store),
    isReady: () => zones.hasSynced,
    ageMs: () => view.signOfLifeAgeMs()
  }
}
