/** Packets that nobody should send: random octets, and real messages damaged in the ways that break parsers. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const testFolder = join(dirname(fileURLToPath(import.meta.url)), '..')

/** Uniform in [0, 1), the same sequence for the same seed (mulberry32). */
export type Random = () => number

export function randomFrom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export const below = (random: Random, limit: number): number => Math.floor(random() * limit)
export const pick = <T>(random: Random, from: readonly T[]): T => from[below(random, from.length)]!

const hexOctets = (text: string): Uint8Array[] =>
  text
    .split(/[\s|]+/)
    .filter((word) => /^([0-9a-f]{2}){4,}$/i.test(word))
    .map((word) => new Uint8Array(Buffer.from(word, 'hex')))

/** Messages that real programs sent, and those of the table of wire cases. */
export function realMessages(): Uint8Array[] {
  const vectors = readdirSync(join(testFolder, 'vectors'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.hex'))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .map((text) => text.replaceAll(/^[#>].*$/gm, ''))
  const table = readFileSync(join(testFolder, 'cases', 'wire', 'cases.tsv'), 'utf8')
  return [...vectors, table].flatMap(hexOctets)
}

type Mutation = (octets: Uint8Array, random: Random) => Uint8Array

function changed(octets: Uint8Array, change: (copy: Uint8Array) => void): Uint8Array {
  const copy = octets.slice()
  if (copy.length > 0) change(copy)
  return copy
}

const mutations: readonly Mutation[] = [
  // One bit; one octet; a run of octets.
  (octets, random) => changed(octets, (copy) => (copy[below(random, copy.length)]! ^= 1 << below(random, 8))),
  (octets, random) => changed(octets, (copy) => (copy[below(random, copy.length)] = below(random, 256))),
  (octets, random) => changed(octets, (copy) => copy.fill(below(random, 256), below(random, copy.length))),
  // Cut off; rubbish behind.
  (octets, random) => octets.subarray(0, below(random, octets.length + 1)),
  (octets, random) => Buffer.concat([octets, randomOctets(random, 1 + below(random, 64))]),
  // A compression pointer somewhere, most often to itself or forwards.
  (octets, random) =>
    changed(octets, (copy) => {
      const at = below(random, copy.length)
      copy[at] = 0xc0 | below(random, 2)
      if (at + 1 < copy.length) copy[at + 1] = random() < 0.5 ? at : below(random, 256)
    }),
  // Counts that promise more than there is.
  (octets, random) =>
    changed(octets, (copy) => copy.length >= 12 && copy.fill(0xff, 4 + 2 * below(random, 4), 6 + 2 * below(random, 4))),
  // A piece twice, or left out.
  (octets, random) => {
    const at = below(random, octets.length + 1)
    const end = at + below(random, octets.length - at + 1)
    return Buffer.concat([octets.subarray(0, end), octets.subarray(at)])
  },
  (octets, random) => {
    const at = below(random, octets.length + 1)
    return Buffer.concat([octets.subarray(0, at), octets.subarray(at + below(random, 16))])
  },
  // Other flags and opcode.
  (octets, random) =>
    changed(octets, (copy) => copy.length > 3 && copy.set([below(random, 256), below(random, 256)], 2))
]

export function randomOctets(random: Random, size: number): Uint8Array {
  const octets = new Uint8Array(size)
  for (let at = 0; at < size; at++) octets[at] = below(random, 256)
  return octets
}

/** A message damaged once to four times, or plain noise; never more than 65535 octets. */
export function mutated(messages: readonly Uint8Array[], random: Random): Uint8Array {
  if (random() < 0.1) return randomOctets(random, below(random, 600))
  let octets = pick(random, messages)
  for (let times = 1 + below(random, 4); times > 0; times--) octets = pick(random, mutations)(octets, random)
  return octets.subarray(0, 65_535)
}
