/**
 * The kinds of options: each turns what stands in the file into a value with a unit, and says what it expects.
 *
 * Only leaves change their value here. Lists and sections keep their form, so that one mistake in a list does not hide
 * the next one (read-draft.ts walks them), and so that `z.toJSONSchema` can describe what stands in the file.
 */
import * as z from 'zod'
import { parseEndpointCheck } from '../base/endpoint-check.ts'
import { inBackticks, TextError, WireError } from '../base/errors.ts'
import { parseHostPort, parseListenAddress, type HostPort, type ListenAddress } from '../base/host-port.ts'
import { canonicalAddress } from '../base/ip-address.ts'
import { parseNetworks, type Network } from '../base/network.ts'
import { durationToText, parseDurationMs, parseSizeOctets } from '../base/quantity.ts'
import { labelsOf, parseName, rootName, type DomainName } from '../wire/name.ts'

// A file is read once: code that is made for its schema costs more than it saves.
z.config({ jitless: true })

/** A key in a schema's metadata that we add to JSON Schema's own. */
export const expectedKey = 'x-expected'

/** How one kind of text is read. `read` throws TextError or WireError. */
type Reader<Value> = Readonly<{ expected: string; read(text: string): Value }>

/** What YAML made of a value, in an operator's words. */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return 'nothing is written here'
  if (Array.isArray(value)) return 'a list stands here'
  if (typeof value === 'object') return 'a mapping stands here'
  if (typeof value === 'string') return `${inBackticks(value)} is text`
  return `\`${JSON.stringify(value)}\` is ${typeof value === 'boolean' ? 'true or false' : 'a number'}`
}

/** What a WireError says beside its code and offset, which mean nothing to an operator. */
export const wordsOf = (error: WireError): string =>
  error.message.replace(/^[A-Z_]+ at \d+(: )?/, '') || error.code.toLowerCase().replaceAll('_', ' ')

function problemOf(error: unknown): { message: string; offset: number } {
  if (error instanceof WireError) return { message: wordsOf(error), offset: error.offset }
  if (error instanceof TextError) return { message: error.message, offset: 0 }
  throw error
}

/** A number where text is wanted: the reader may know better (`5` has no unit) than that quotes are missing. */
function wrongKind(value: unknown, reader: Reader<unknown>): string {
  if (typeof value !== 'number' && typeof value !== 'boolean') return describeValue(value)
  try {
    reader.read(String(value))
    return `${describeValue(value)}: write it in quotes`
  } catch (error) {
    return problemOf(error).message
  }
}

export function textOption<Value>(reader: Reader<Value>) {
  return z
    .string({ error: ({ input }) => wrongKind(input, reader) })
    .transform((text, context): Value => {
      try {
        return reader.read(text)
      } catch (error) {
        const { message, offset } = problemOf(error)
        context.issues.push({ code: 'custom', input: text, message, params: { offset } })
        return z.NEVER
      }
    })
    .meta({ [expectedKey]: reader.expected })
}

/** An option that may be left out: what then holds, and one sentence for the reference. */
export const option = <Type extends z.ZodType>(type: Type, fallback: z.input<Type>, about: string) =>
  // The input type of a ZodType is its own, whatever the compiler knows of `Type` here.
  type.prefault(fallback as never).meta({ description: about })

/** An option that must be written. */
export const required = <Type extends z.ZodType>(type: Type, about: string) => type.meta({ description: about })

/** An option that may be left out, and then stands for what its sentence says. */
export const optional = <Type extends z.ZodType>(type: Type, about: string) =>
  type.optional().meta({ description: about })

/** A mapping of which every key is known. */
export const section = <Shape extends z.ZodRawShape>(shape: Shape) => z.strictObject(shape)

/** A list with at least so many entries. */
export const list = <Item extends z.ZodType>(item: Item, atLeast: 0 | 1 = 0) =>
  atLeast === 0 ? z.array(item) : z.array(item).min(1, { error: () => 'the list is empty' })

const patternReader = (pattern: RegExp, expected: string): Reader<string> => ({
  expected,
  read(written) {
    if (pattern.test(written)) return written
    throw new TextError(written === '' ? 'the text is empty' : `${inBackticks(written)} does not fit`)
  }
})

/** Text that matches a pattern. */
export const text = (pattern: RegExp, expected: string) => textOption(patternReader(pattern, expected))

/** The same, or null for `off`. */
export const textOrOff = (pattern: RegExp, expected: string) =>
  textOption(orWord('off', patternReader(pattern, expected)))

/** A path; what it is relative to is decided when the file is known. */
export const path = () => text(/^[^\0]+$/, "a path; relative ones start at this file's folder, ~ is the home folder")

/** A name in lists, labels of metrics and commands: printable, no blanks around it. */
export const itemName = () => text(/^[!-~]([ -~]{0,61}[!-~])?$/, 'a name of 1 to 63 printable ASCII characters')

/** A name that is also a label in DNS. RFC 1123 §2.1. */
export const dnsLabel = () =>
  text(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'a DNS label: up to 63 of a-z, 0-9 and hyphens inside')

/** One of a few words. */
export const word = <const Words extends readonly [string, ...string[]]>(...words: Words) =>
  z
    .enum(words, {
      error: ({ input }) => (typeof input === 'string' ? `${inBackticks(input)} is not known` : describeValue(input))
    })
    .meta({ [expectedKey]: wordList(words) })

/** `a, b or c`. */
export const wordList = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`

/** true or false. */
export const flag = () =>
  z.boolean({ error: ({ input }) => describeValue(input) }).meta({ [expectedKey]: 'true or false' })

/** true, false, or a word for something between. */
export const flagOr = <const Word extends string>(between: Word) =>
  z.literal([true, false, between], { error: ({ input }) => describeValue(input) })

const outOfBounds = ({ input }: { input?: unknown }): string => `${String(input)} is out of bounds`
const notWhole = ({ input }: { input?: unknown }): string =>
  typeof input === 'number' ? `${input} is not a whole number` : describeValue(input)

/** A whole number within bounds. */
export function whole({ min, max }: { min: number; max: number }) {
  return z
    .int({ error: notWhole })
    .min(min, { error: outOfBounds })
    .max(max, { error: outOfBounds })
    .meta({ [expectedKey]: `a whole number from ${min} to ${max}` })
}

/** The word that turns something off instead of a value; it becomes null. */
const orWord = <Value>(word: string | undefined, reader: Reader<Value>): Reader<Value | null> =>
  word === undefined
    ? reader
    : {
        expected: `${word}, or ${reader.expected}`,
        read: (written) => (written === word ? null : reader.read(written))
      }

type Bounds = Readonly<{ min: string; max: string }>

const inBounds = <Unit extends number>(
  value: Unit,
  written: string,
  min: number,
  max: number,
  bounds: Bounds
): Unit => {
  if (value >= min && value <= max) return value
  throw new TextError(`${inBackticks(written)} is out of bounds: ${bounds.min} to ${bounds.max}`)
}

const durationReader = (bounds: Bounds): Reader<number> => ({
  expected: `a duration from ${bounds.min} to ${bounds.max}, like 500ms, 5s, 1m, 1h`,
  read: (written) =>
    inBounds(parseDurationMs(written), written, parseDurationMs(bounds.min), parseDurationMs(bounds.max), bounds)
})

/** A duration in milliseconds. */
export const duration = (bounds: Bounds) => textOption(durationReader(bounds))
/** A duration in milliseconds, or null for `off`. */
export const durationOrOff = (bounds: Bounds) => textOption(orWord('off', durationReader(bounds)))

const secondsReader = (bounds: Bounds): Reader<number> => ({
  expected: `a duration from ${bounds.min} to ${bounds.max} in whole seconds, like 5s, 1m, 1h`,
  read(written) {
    const durationMs = durationReader(bounds).read(written)
    if (durationMs % 1_000 === 0) return durationMs / 1_000
    throw new TextError(
      `${inBackticks(written)} is not a whole number of seconds: TTLs are (RFC 1035), write ${durationToText(Math.ceil(durationMs / 1_000) * 1_000)}`
    )
  }
})

/** A TTL or another time in whole seconds. */
export const seconds = (bounds: Bounds) => textOption(secondsReader(bounds))
/** The same, or null for `none`. */
export const secondsOrNone = (bounds: Bounds) => textOption(orWord('none', secondsReader(bounds)))

/** A size in octets. */
export const size = (bounds: Bounds) =>
  textOption({
    expected: `a size from ${bounds.min} to ${bounds.max}, like 512KiB, 64MiB, 1GiB`,
    read: (written) =>
      inBounds(parseSizeOctets(written), written, parseSizeOctets(bounds.min), parseSizeOctets(bounds.max), bounds)
  })

/** One entry of a list of networks; a word stands for several. */
export const networks = () =>
  textOption<readonly Network[]>({
    expected: 'a network like 10.8.0.0/14, an address, private or any',
    read: parseNetworks
  })

/** The same as the key of a mapping, kept as it is written. */
export const networkKey = () =>
  textOption<string>({
    expected: 'a network like 10.8.0.0/14',
    read(written) {
      parseNetworks(written)
      return written
    }
  })

/** One network, without words for several. */
export const oneNetwork = () =>
  textOption<readonly Network[]>({
    expected: 'a network like 10.0.0.0/8 or fd00:1::/64',
    read(written) {
      const found = parseNetworks(written)
      if (found.length === 1) return found
      throw new TextError(`${inBackticks(written)} is more than one network`)
    }
  })

const listenReader: Reader<ListenAddress> = {
  expected: 'an address and a port like 127.0.0.1:5300 or [::]:53',
  read: parseListenAddress
}

export const listenAddress = () => textOption(listenReader)
export const listenAddressOrOff = () => textOption(orWord('off', listenReader))

/** The port of DNS, where none is written. RFC 1035 §4.2. */
const dnsPort = 53

/** A DNS server to ask. */
export const server = () =>
  textOption<HostPort>({
    expected: 'host:port like 10.96.0.10:53, [fd00::a]:53 or dns.example.org:53',
    read: (written) => parseHostPort(written, dnsPort)
  })

/** A server, or the path of a resolv.conf that names servers. */
export type Forward = Readonly<{ kind: 'server'; server: HostPort }> | Readonly<{ kind: 'resolv-conf'; path: string }>

export const forward = () =>
  textOption<Forward>({
    expected: 'host:port of a resolver, or the path of a resolv.conf',
    read: (written) =>
      written.includes('/')
        ? { kind: 'resolv-conf', path: written }
        : { kind: 'server', server: parseHostPort(written, dnsPort) }
  })

/** An IP address; its canonical form is kept. */
export const address = () =>
  textOption({
    expected: 'an IP address like 10.9.0.7 or fd00::7',
    read(written) {
      const canonical = canonicalAddress(written)
      if (canonical !== null && !written.includes('%')) return canonical
      throw new TextError(`${inBackticks(written)} is not an IP address`)
    }
  })

/** How the health of addresses is checked, kept as it is written. */
export const endpointCheck = () =>
  textOption({
    expected: 'tcp:PORT, http:PORT/PATH or https:PORT/PATH, like tcp:8080 or http:8080/healthz',
    read(written) {
      parseEndpointCheck(written)
      return written
    }
  })

/** A domain name that host names can lie below. The last dot may be left out. */
export const domainName = () =>
  textOption<DomainName>({
    expected: 'a domain name like backend.svc.cluster.local',
    read(written) {
      let name: DomainName
      try {
        name = parseName(written)
      } catch (error) {
        throw new TextError(`${inBackticks(written)} is not a domain name: ${problemOf(error).message}`)
      }
      if (name === rootName) throw new TextError('the root is not a name to use here')
      const odd = labelsOf(name).find((label) => !/^[a-z0-9_-]+$/.test(label))
      if (odd === '*')
        throw new TextError(`${inBackticks(written)}: a name stands for all names below it, without \`*\``)
      if (odd !== undefined) throw new TextError(`${inBackticks(written)} has a character that no host name has`)
      return name
    }
  })
