/**
 * Our own EDNS option: how one peerdns tells another what plain DNS has no field for. docs/edns-option.md.
 *
 * Layout: the magic "pDNS", a version octet, then fields of type (1 octet), length (1 octet) and value. Readers skip
 * fields that they do not know. A foreign server ignores the whole option (RFC 6891 §6.1.2). It is read per hop and
 * never passed on as it came.
 */
import type { EdnsOption } from './edns.ts'

/** From the range for local use (RFC 6891 §9); not 65001, which many programs take for their own. */
export const peerdnsOptionCode = 65_313

const magic = [0x70, 0x44, 0x4e, 0x53, 1] as const
const field = { instances: 1, state: 2 } as const

/** Length of one instance's id in octets: random, new with each start. */
export const instanceIdOctets = 6
/** Servers that one question may pass through; more is a loop. */
export const maxInstances = 8

/**
 * - `instances`: the peerdns processes that the question passed through, first one first, as hex.
 * - `state`: said of an answer: `empty` means that no endpoint of the Service is ready or serving.
 */
export type PeerdnsOption = Readonly<{ instances: readonly string[]; state: 'empty' | null }>

export function encodePeerdnsOption(option: PeerdnsOption): EdnsOption {
  const octets: number[] = [...magic]
  if (option.instances.length > 0) {
    octets.push(field.instances, option.instances.length * instanceIdOctets)
    for (const instance of option.instances) octets.push(...Buffer.from(instance, 'hex'))
  }
  if (option.state === 'empty') octets.push(field.state, 1, 1)
  return { code: peerdnsOptionCode, data: Uint8Array.from(octets) }
}

/** Reads the option from a message's options; null where it is missing or not ours (another use of the same code). */
export function findPeerdnsOption(options: readonly EdnsOption[]): PeerdnsOption | null {
  const found = options.find((option) => option.code === peerdnsOptionCode)
  if (found === undefined) return null
  const { data } = found
  if (magic.some((octet, at) => data[at] !== octet)) return null
  const instances: string[] = []
  let state: PeerdnsOption['state'] = null
  for (let at = magic.length; at + 2 <= data.length;) {
    const length = data[at + 1]!
    const value = data.subarray(at + 2, at + 2 + length)
    if (value.length < length) return null
    if (data[at] === field.instances) {
      for (let id = 0; id + instanceIdOctets <= length; id += instanceIdOctets) {
        instances.push(Buffer.from(value.subarray(id, id + instanceIdOctets)).toString('hex'))
      }
    } else if (data[at] === field.state && length >= 1) {
      state = value[0] === 1 ? 'empty' : null
    }
    at += 2 + length
  }
  return { instances, state }
}
