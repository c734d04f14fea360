/** Addresses of clients as text, kept for those who ask often: reading one from memory makes no new string. */
import { addressWordsToText } from '../../base/ip-address.ts'
import { filledArray } from '../../base/filled-array.ts'
import { rememberedClientAddresses } from '../../base/limits.ts'
import type { MessageBatch } from './message-batch.ts'

const mask = rememberedClientAddresses - 1

export class ClientTexts {
  /** Four words an address; each address has one place, and the last one there keeps it. */
  readonly #words = new Uint32Array(rememberedClientAddresses * 4)
  readonly #texts = filledArray<string | null>(rememberedClientAddresses, null)

  /** The address that a message came from, as `clientAddress` writes it. */
  of(batch: MessageBatch, slot: number): string {
    return batch.isIpv6(slot)
      ? this.#lookUp(
          batch,
          slot,
          batch.addressWord(slot, 0),
          batch.addressWord(slot, 1),
          batch.addressWord(slot, 2),
          batch.addressWord(slot, 3)
        )
      : // No IPv6 address begins like this: the family is told apart by the first three words.
        this.#lookUp(batch, slot, 0, 0, 0xffff_0000, batch.addressWord(slot, 0))
  }

  #lookUp(batch: MessageBatch, slot: number, a: number, b: number, c: number, d: number): string {
    const words = this.#words
    const hash = Math.imul(a ^ Math.imul(b, 0x01000193) ^ Math.imul(c, 0x85ebca6b) ^ d, 0x9e3779b1)
    const place = (hash ^ (hash >>> 15)) & mask
    const at = place * 4
    if (words[at] === a && words[at + 1] === b && words[at + 2] === c && words[at + 3] === d) {
      const text = this.#texts[place]
      if (text !== null) return text!
    }
    const text = textOf(batch.addressOctets(slot))
    words[at] = a
    words[at + 1] = b
    words[at + 2] = c
    words[at + 3] = d
    this.#texts[place] = text
    return text
  }
}

function textOf(octets: Uint8Array): string {
  const view = new DataView(octets.buffer, octets.byteOffset, octets.length)
  const words = Array.from({ length: octets.length / 4 }, (_, word) => view.getUint32(word * 4))
  const isMapped = words.length === 4 && words[0] === 0 && words[1] === 0 && words[2] === 0xffff
  if (isMapped) return addressWordsToText(4, [words[3]!])
  return addressWordsToText(words.length === 4 ? 6 : 4, words)
}
