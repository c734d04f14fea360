/** Regions of clients by their networks: the longest prefix that holds a client counts. */
import { addressWords, readAddress } from '../base/ip-address.ts'
import type { Network } from '../base/network.ts'

export type NetworkRegion = Readonly<{ network: Network; region: string }>

/** The networks of one family that have prefixes of one length. */
type Prefixes = { readonly length: number; readonly regions: Map<string, string> }

export class ClientRegions {
  readonly #ownRegion: string
  /** Longest prefixes first. */
  readonly #families: ReadonlyMap<4 | 6, readonly Prefixes[]>
  /** Most queries come from the client that asked last. */
  #lastAddress = ''
  #lastRegion = ''

  /**
   * @param ownRegion the region of clients in none of the networks: this cluster's. Of two equal networks the later one
   * counts.
   */
  constructor(networks: readonly NetworkRegion[], ownRegion: string) {
    this.#ownRegion = ownRegion
    this.#lastRegion = ownRegion
    this.#families = new Map(([4, 6] as const).map((family) => [family, prefixesOf(networks, family)]))
  }

  /**
   * The client's region; '' where none is known. Costs one look-up for each length of prefix, and nothing for the
   * client that asked last.
   */
  regionOf(address: string): string {
    if (address !== this.#lastAddress) {
      this.#lastRegion = this.#find(address) ?? this.#ownRegion
      this.#lastAddress = address
    }
    return this.#lastRegion
  }

  #find(address: string): string | null {
    const family = readAddress(address)
    if (family === 0) return null
    const words = addressWords.subarray(0, family === 4 ? 1 : 4)
    for (const { length, regions } of this.#families.get(family)!) {
      const region = regions.get(prefixKey(words, length))
      if (region !== undefined) return region
    }
    return null
  }
}

function prefixesOf(networks: readonly NetworkRegion[], family: 4 | 6): Prefixes[] {
  const byLength = new Map<number, Map<string, string>>()
  for (const { network, region } of networks) {
    if (network.family !== family) continue
    const { prefixLength, words } = network
    let regions = byLength.get(prefixLength)
    if (regions === undefined) byLength.set(prefixLength, (regions = new Map()))
    regions.set(prefixKey(words, prefixLength), region)
  }
  return [...byLength]
    .map(([length, regions]) => ({ length, regions }))
    .toSorted((one, other) => other.length - one.length)
}

/** The address's first `length` bits as a map key. */
function prefixKey(words: ArrayLike<number>, length: number): string {
  let key = ''
  for (let index = 0; index * 32 < length; index++) {
    const bits = Math.min(32, length - index * 32)
    key += `${words[index]! >>> (32 - bits)} `
  }
  return key
}
