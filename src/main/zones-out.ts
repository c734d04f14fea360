/** Zones that others take: this cluster's, as the section `transfer` wants it, and who is told of their changes. */
import { isIP } from 'node:net'
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/config.ts'
import { openDatagrams } from '../peer/datagrams.ts'
import { ServerResolver } from '../peer/resolve-server.ts'
import { Notifier } from '../transfer/notifier.ts'
import { Primary, type PrimaryOptions } from '../transfer/primary.ts'
import type { ZoneSource } from '../transfer/zone-parts.ts'
import type { ClusterView } from './cluster-view.ts'
import { resolveBySystem } from './resolve-by-system.ts'

type Dependencies = Readonly<{ clock: Clock; random: () => number }>

export class ZonesOut {
  readonly primary: Primary
  readonly #notifier: Notifier

  constructor({ clock, random }: Dependencies, config: Config, view: ClusterView) {
    const hosts = new ServerResolver({ hostsPath: '/etc/hosts', resolveHost: resolveBySystem }, clock)
    this.primary = new Primary(clock, primaryOptions(config, view), zoneSource(view), {
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
      sign: (message) => message
    })
    this.#notifier.use(config.transfer.notify)
  }

  /** Takes over another configuration, or another view of the cluster. */
  use(config: Config, view: ClusterView): void {
    this.#notifier.use(config.transfer.notify)
    this.primary.use(primaryOptions(config, view), zoneSource(view))
  }

  close(): void {
    this.#notifier.close()
    this.primary.close()
  }
}

function primaryOptions({ transfer, cluster }: Config, view: ClusterView): PrimaryOptions {
  return {
    allow: transfer.allow,
    export: transfer.export,
    schemaZones: [cluster.zone, cluster.clustersetZone],
    pods: (store) => ({
      mode: store.apex === cluster.zone ? view.zones.options.pods : 'disabled',
      ttlSeconds: view.zones.options.ttlSeconds
    })
  }
}

function zoneSource(view: ClusterView): ZoneSource {
  const { zones } = view
  return {
    // Copies are not given on.
    stores: view.kind === 'mirror' ? [] : zones.zones.all(),
    given: (store) => store,
    isReady: () => zones.hasSynced,
    ageMs: () => view.signOfLifeAgeMs()
  }
}
