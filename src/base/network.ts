/**
 * Networks of clients and addresses: CIDR notation, the words `private` and `any`, and the test whether an address
 * lies in one, which runs once for every query and allocates nothing.
 *
 * An IPv4-mapped network (::ffff:10.0.0.0/104) is the IPv4 network.
 */
import { isIP } from 'node:net'
import { inBackticks, TextError } from './errors.ts'
import { addressWords, addressWordsToText, mappedPrefix, readAddress } from './ip-address.ts'

export type Network = Readonly<{
  /** As `toString` would write it: canonical address, slash, prefix length. */
  text: string
  family: 4 | 6
  /** The network's first address: one unsigned 32-bit word for IPv4, four for IPv6. */
  words: readonly number[]
  /** 0 to 32, or to 128. */
  prefixLength: number
}>

/** RFC 1918, shared address space (RFC 6598), loopback, link-local (RFC 3927, RFC 4291), unique local (RFC 4193). */
const privateNetworks = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '::1/128',
  'fc00::/7',
  'fe80::/10'
]

/** Words that stand for several networks. */
const networkWords: ReadonlyMap<string, readonly string[]> = new Map([
  ['private', privateNetworks],
  ['any', ['0.0.0.0/0', '::/0']]
])

/** The bits of word `index` that a prefix of this length fixes. */
function maskOfWord(prefixLength: number, index: number): number {
  const bits = Math.min(32, Math.max(0, prefixLength - 32 * index))
  return bits === 0 ? 0 : (0xffff_ffff << (32 - bits)) >>> 0
}

/**
 * Reads one network in CIDR notation, or one address, which is a network of its own.
 *
 * Strict: `010.0.0.0/8`, `10/8` and a network with bits behind its prefix (`10.1.0.0/8`) are errors.
 * @throws TextError
 */
export function parseNetwork(text: string): Network {
  const slash = text.indexOf('/')
  const address = slash < 0 ? text : text.slice(0, slash)
  const version = isIP(address)
  if (version === 0 || address.includes('%')) throw new TextError(`${inBackticks(text)} is not a network`)
  const maxLength = version === 4 ? 32 : 128
  const lengthText = slash < 0 ? String(maxLength) : text.slice(slash + 1)
  if (!/^(0|[1-9]\d{0,2})$/.test(lengthText) || Number(lengthText) > maxLength) {
    throw new TextError(`${inBackticks(text)}: a prefix length is a number from 0 to ${maxLength}`)
  }
  let prefixLength = Number(lengthText)
  let family = readAddress(address) as 4 | 6
  if (version === 6 && family === 4) {
    // IPv4-mapped: the same network in IPv4's own terms, unless it reaches beyond the mapped block.
    if (prefixLength >= 96) prefixLength -= 96
    else {
      family = 6
      addressWords.set([0, 0, mappedPrefix, addressWords[0]!])
    }
  }
  const written = family === 4 ? [addressWords[0]!] : [...addressWords]
  const words = written.map((word, index) => (word & maskOfWord(prefixLength, index)) >>> 0)
  const canonical = `${addressWordsToText(family, words)}/${prefixLength}`
  if (words.some((word, index) => word !== written[index])) {
    throw new TextError(`${inBackticks(text)} has bits set behind its prefix: write ${canonical}`)
  }
  return { text: canonical, family, words, prefixLength }
}

/** Whether one of the two networks lies in the other one. */
export function networksOverlap(one: Network, other: Network): boolean {
  if (one.family !== other.family) return false
  const prefixLength = Math.min(one.prefixLength, other.prefixLength)
  return one.words.every((word, index) => ((word ^ other.words[index]!) & maskOfWord(prefixLength, index)) === 0)
}

/** A set of networks of both families, and the question whether an address is in it. */
export class NetworkSet {
  readonly networks: readonly Network[]
  /** First addresses and masks: one word each for IPv4, four for IPv6. */
  readonly #bases4: Uint32Array
  readonly #masks4: Uint32Array
  readonly #bases6: Uint32Array
  readonly #masks6: Uint32Array
  /** Most queries come from the client that asked last. */
  #lastAddress = ''
  #lastResult = false

  constructor(networks: readonly Network[]) {
    this.networks = networks
    const arraysOf = (family: 4 | 6): [Uint32Array, Uint32Array] => {
      const own = networks.filter((network) => network.family === family)
      const masks = own.map((network) => network.words.map((_, index) => maskOfWord(network.prefixLength, index)))
      return [Uint32Array.from(own.flatMap((network) => network.words)), Uint32Array.from(masks.flat())]
    }
    ;[this.#bases4, this.#masks4] = arraysOf(4)
    ;[this.#bases6, this.#masks6] = arraysOf(6)
  }

  /**
   * Reads networks, addresses, and the words `private` and `any`.
   * @throws TextError
   */
  static parse(texts: readonly string[]): NetworkSet {
    return new NetworkSet(texts.flatMap((text) => parseNetworks(text)))
  }

  /** Whether the address lies in one of the networks; false for what is no address. Allocates nothing. */
  contains(address: string): boolean {
    if (address === this.#lastAddress) return this.#lastResult
    this.#lastResult = this.#look(address)
    this.#lastAddress = address
    return this.#lastResult
  }

  overlaps(other: NetworkSet): boolean {
    return this.networks.some((one) => other.networks.some((two) => networksOverlap(one, two)))
  }

  toString(): string {
    return this.networks.map((network) => network.text).join(', ')
  }

  #look(address: string): boolean {
    const family = readAddress(address)
    if (family === 0) return false
    const w0 = addressWords[0]!
    if (family === 4) {
      const bases = this.#bases4
      for (let at = 0; at < bases.length; at++) if (((w0 ^ bases[at]!) & this.#masks4[at]!) === 0) return true
      return false
    }
    const [w1, w2, w3] = [addressWords[1]!, addressWords[2]!, addressWords[3]!]
    const bases = this.#bases6
    const masks = this.#masks6
    for (let at = 0; at < bases.length; at += 4) {
      const isInside =
        ((w0 ^ bases[at]!) & masks[at]!) === 0 &&
        ((w1 ^ bases[at + 1]!) & masks[at + 1]!) === 0 &&
        ((w2 ^ bases[at + 2]!) & masks[at + 2]!) === 0 &&
        ((w3 ^ bases[at + 3]!) & masks[at + 3]!) === 0
      if (isInside) return true
    }
    return false
  }
}

/**
 * Reads one entry of a list of networks: CIDR notation, an address, or the words `private` and `any`.
 * @throws TextError
 */
export function parseNetworks(text: string): Network[] {
  return (networkWords.get(text) ?? [text]).map(parseNetwork)
}
