/** The copies of peers' zones that this cluster's own nodes may take from here. */
import type { Config } from '../config/config.ts'
import { MirroredZone } from '../transfer/mirrored-zone.ts'
import type { CopySource, PassedOnFound } from '../transfer/passed-on.ts'
import type { PeerMirror } from '../transfer/peer-mirror.ts'
import { isEpoch } from '../transfer/private-records.ts'
import type { DomainName } from '../wire/name.ts'
import type { ZoneStore } from '../zone/zone-store.ts'

/** What a node calls a peer of its hub, and the hub too: both are of one cluster. */
export const copyOfPeer = ({ cluster }: Config, peer: string): string => `${cluster.name}/${peer}`

type Around = Readonly<{
  config: () => Config | null
  mirrorOf: (peer: string) => PeerMirror | null
  /** Names this process to other peerdns; hex. */
  instanceId: string
}>

export class CopiesOut implements CopySource {
  readonly #around: Around
  /** Histories that no peerdns names are called by us. */
  readonly #epochs = new WeakMap<ZoneStore, string>()
  #named = 0

  constructor(around: Around) {
    this.#around = around
  }

  isNode(key: DomainName | null): boolean {
    const config = this.#around.config()
    // A node passes on nothing.
    if (config === null || config.cluster.source.kind === 'mirror') return false
    return key === null || config.peers.every((peer) => peer.key !== key)
  }

  find(copyOf: string, apex: DomainName): PassedOnFound {
    const config = this.#around.config()
    const peer = config?.peers.find(({ name, mirror }) => mirror === true && copyOf === copyOfPeer(config, name))
    const zone = peer === undefined ? null : (this.#around.mirrorOf(peer.name)?.get(apex) ?? null)
    if (!(zone instanceof MirroredZone)) return 'absent'
    const { copy } = zone
    if (copy === null) return zone.status().state === 'refused' ? 'absent' : 'not-here-yet'
    const { store, pods } = copy
    const tellsTimes = isEpoch(store.epoch)
    return {
      copyOf,
      store,
      epoch: tellsTimes ? store.epoch : this.#epochOf(store),
      ageMs: zone.ageMs()!,
      silentMs: zone.unconfirmedMs()!,
      times: tellsTimes ? { clockOffsetMs: zone.clockOffsetMs ?? 0, pods } : null
    }
  }

  #epochOf(store: ZoneStore): string {
    let epoch = this.#epochs.get(store)
    if (epoch === undefined) this.#epochs.set(store, (epoch = `${this.#around.instanceId}.${++this.#named}`))
    return epoch
  }
}
