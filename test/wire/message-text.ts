/** Messages as lines of text, and the golden vectors of test/vectors/. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { classToText, OPCODE, rcodeToText, typeToText } from '../../src/wire/iana.ts'
import type { Message } from '../../src/wire/message.ts'
import { nameToText } from '../../src/wire/name.ts'
import { recordToText } from '../../src/wire/record-text.ts'

const opcodeNames = new Map<number, string>(Object.entries(OPCODE).map(([name, number]) => [number, name]))
const flagNames = ['qr', 'aa', 'tc', 'rd', 'ra', 'ad', 'cd'] as const

/** One line for the header, then one for each question, record, and the OPT. */
export function messageToLines(message: Message): string[] {
  const { id, opcode, rcode, edns } = message
  const flags = flagNames.filter((flag) => message[flag])
  const lines = [
    [id.toString(16).padStart(4, '0'), opcodeNames.get(opcode) ?? opcode, rcodeToText(rcode), ...flags].join(' ')
  ]
  for (const { name, type, class: qclass } of message.questions) {
    lines.push(`question ${nameToText(name)} ${classToText(qclass)} ${typeToText(type)}`)
  }
  for (const section of ['answer', 'authority', 'additional'] as const) {
    lines.push(...message[section].map((record) => `${section} ${recordToText(record)}`))
  }
  if (edns !== null) {
    const options = edns.options.map(({ code, data }) => `${code}=${Buffer.from(data).toString('hex')}`)
    lines.push(['edns', edns.version, edns.udpPayloadOctets, ...(edns.dnssecOk ? ['do'] : []), ...options].join(' '))
  }
  return lines
}

export type Vector = { name: string; octets: Uint8Array; lines: string[] }

const folder = join(fileURLToPath(import.meta.url), '..', '..', 'vectors')

/**
 * The golden messages. In a file, `#` starts a comment, `>` a line of what the message says (as `messageToLines`), and
 * all other lines are the octets in hex.
 */
export function readVectors(): Vector[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.hex'))
    .sort()
    .map((file) => parseVector(file.slice(0, -'.hex'.length), readFileSync(join(folder, file), 'utf8')))
}

/** Inputs that once did harm: `crashers/*.hex`, octets only. */
export function readCrashers(): Vector[] {
  const crashers = join(folder, 'crashers')
  return readdirSync(crashers)
    .filter((file) => file.endsWith('.hex'))
    .sort()
    .map((file) => parseVector(file, readFileSync(join(crashers, file), 'utf8')))
}

function parseVector(name: string, text: string): Vector {
  const rows = text.split('\n')
  const lines = rows.filter((row) => row.startsWith('> ')).map((row) => row.slice(2))
  return { name, lines, octets: hex(rows.filter((row) => !/^[#>]/.test(row)).join('')) }
}

/**
 * Octets from hex with spaces; `61*3` repeats an octet.
 * @throws Error for anything else, so that a typing error never makes a test pass.
 */
export function hex(text: string): Uint8Array {
  const words = text.trim() === '' ? [] : text.trim().split(/\s+/)
  const octets = words.map((word) => {
    const repeated = /^([0-9a-f]{2})\*(\d+)$/i.exec(word)
    if (repeated !== null) return new Uint8Array(Number(repeated[2])).fill(Number.parseInt(repeated[1]!, 16))
    if (!/^([0-9a-f]{2})+$/i.test(word)) throw new Error(`no hex: ${word}`)
    return Buffer.from(word, 'hex')
  })
  return Uint8Array.from(Buffer.concat(octets))
}
