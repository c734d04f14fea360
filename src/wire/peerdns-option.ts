/**
 * Our own EDNS option: how one peerdns tells another what plain DNS has no field for. docs/edns-option.md.
 *
 * Layout: the magic "pDNS", a version octet, then fields of type (1 octet), length (1 octet) and value. Readers skip
 * fields that they do not know. A foreign server ignores the whole option (RFC 6891 §6.1.2). It is read per hop and
 * never passed on as it came.
 */
import { maxEpochOctets } from '../base/limits.ts'
import type { EdnsOption } from './edns.ts'
import { latin1Of, octetsOf, readU32, readU48, writeU32, writeU48 } from './octets.ts'

/** From the range for local use (RFC 6891 §9); not 65001, which many programs take for their own. */
export const peerdnsOptionCode = 65_313

const magic = [0x70, 0x44, 0x4e, 0x53, 1] as const
const field = { instances: 1, state: 2, subscribe: 3, epoch: 4, clock: 5, age: 6, copyOf: 7, silent: 8 } as const

/** Length of one instance's id in octets: random, new with each start. */
export const instanceIdOctets = 6
/** Servers that one question may pass through; more is a loop. */
export const maxInstances = 8
const maxSpanMs = 0xffff_ffff
/** What one octet can count. */
const maxCopyOfOctets = 255

export type PeerdnsOption = Readonly<{
  /** In a query: the peerdns processes that the question passed through, first one first, as hex. */
  instances: readonly string[]
  /** Said of an answer: `empty` means that no endpoint of the Service is ready or serving. */
  state: 'empty' | null
  /** In a query of type SOA, IXFR or AXFR over TCP: NOTIFY of this zone is wanted down this connection. */
  subscribe: boolean
  /**
   * The history that a serial belongs to: in a query the one that the sender's copy is of, in a response about a zone,
   * or a NOTIFY, that of the zone. 1 to 32 printable ASCII characters; null: none.
   */
  epoch: string | null
  /** In a response about a zone, or a NOTIFY: the sender's wall clock, in milliseconds since 1970. */
  clockMs: number | null
  /** In a response about a zone, or a NOTIFY: since the zone's source last proved that it is right, in milliseconds. */
  ageMs: number | null
  /**
   * The zone that is meant is not the server's own but its copy of another cluster's: in a query that a node asks its
   * hub, and in what answers it. `<cluster>/<peer>`: the hub's cluster, and what that calls the other one. null: its
   * own.
   */
  copyOf: string | null
  /**
   * In a response about such a copy: since it was last known to be equal to the other cluster's zone, in milliseconds.
   */
  silentMs: number | null
}>

const nothing: PeerdnsOption = {
  instances: [],
  state: null,
  subscribe: false,
  epoch: null,
  clockMs: null,
  ageMs: null,
  copyOf: null,
  silentMs: null
}

/** Fields that are not given are not written. */
export function encodePeerdnsOption(given: Partial<PeerdnsOption>): EdnsOption {
  const option = { ...nothing, ...given }
  const octets: number[] = [...magic]
  if (option.instances.length > 0) {
    octets.push(field.instances, option.instances.length * instanceIdOctets)
    for (const instance of option.instances) octets.push(...Buffer.from(instance, 'hex'))
  }
  if (option.state === 'empty') octets.push(field.state, 1, 1)
  if (option.subscribe) octets.push(field.subscribe, 1, 1)
  if (option.epoch !== null) {
    const epoch = octetsOf(option.epoch.slice(0, maxEpochOctets))
    octets.push(field.epoch, epoch.length, ...epoch)
  }
  if (option.clockMs !== null) {
    const clock = new Uint8Array(6)
    writeU48(clock, 0, option.clockMs)
    octets.push(field.clock, clock.length, ...clock)
  }
  if (option.ageMs !== null) octets.push(field.age, 4, ...spanOctets(option.ageMs))
  if (option.copyOf !== null) {
    const copyOf = octetsOf(option.copyOf.slice(0, maxCopyOfOctets))
    octets.push(field.copyOf, copyOf.length, ...copyOf)
  }
  if (option.silentMs !== null) octets.push(field.silent, 4, ...spanOctets(option.silentMs))
  return { code: peerdnsOptionCode, data: Uint8Array.from(octets) }
}

/** Reads the option from a message's options; null where it is missing or not ours (another use of the same code). */
export function findPeerdnsOption(options: readonly EdnsOption[]): PeerdnsOption | null {
  const found = options.find((option) => option.code === peerdnsOptionCode)
  if (found === undefined) return null
  const { data } = found
  if (magic.some((octet, at) => data[at] !== octet)) return null
  const read: { -readonly [Field in keyof PeerdnsOption]: PeerdnsOption[Field] } = { ...nothing }
  for (let at = magic.length; at + 2 <= data.length;) {
    const length = data[at + 1]!
    const value = data.subarray(at + 2, at + 2 + length)
    if (value.length < length) return null
    switch (data[at]) {
      case field.instances:
        read.instances = readInstances(value)
        break
      case field.state:
        read.state = value[0] === 1 ? 'empty' : null
        break
      case field.subscribe:
        read.subscribe = value[0] === 1
        break
      case field.epoch: {
        const epoch = latin1Of(value, 0, length)
        read.epoch = length <= maxEpochOctets && /^[!-~]+$/.test(epoch) ? epoch : null
        break
      }
      case field.clock:
        read.clockMs = length === 6 ? readU48(value, 0) : null
        break
      case field.age:
        read.ageMs = length === 4 ? readU32(value, 0) : null
        break
      case field.copyOf: {
        const copyOf = latin1Of(value, 0, length)
        read.copyOf = /^[!-~]+$/.test(copyOf) ? copyOf : null
        break
      }
      case field.silent:
        read.silentMs = length === 4 ? readU32(value, 0) : null
        break
    }
    at += 2 + length
  }
  return read
}

function spanOctets(ms: number): Uint8Array {
  const octets = new Uint8Array(4)
  writeU32(octets, 0, Math.min(Math.max(0, Math.floor(ms)), maxSpanMs))
  return octets
}

function readInstances(value: Uint8Array): string[] {
  const instances: string[] = []
  for (let id = 0; id + instanceIdOctets <= value.length; id += instanceIdOctets) {
    instances.push(Buffer.from(value.subarray(id, id + instanceIdOctets)).toString('hex'))
  }
  return instances
}
