/**
 * Durations and sizes as operators write them: `500ms`, `5s`, `1h30m`, `64MiB`.
 *
 * A number without a unit is refused everywhere: `ttl: 5` has meant seconds, milliseconds and minutes in the
 * configuration of other servers.
 */
import { inBackticks, TextError } from './errors.ts'

/** Milliseconds in each unit, longest first. */
const durationUnits: ReadonlyMap<string, number> = new Map([
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1]
])

/** Octets in each unit, largest first. */
const sizeUnits: ReadonlyMap<string, number> = new Map([
  ['TiB', 1024 ** 4],
  ['GiB', 1024 ** 3],
  ['MiB', 1024 ** 2],
  ['KiB', 1024],
  ['B', 1]
])

/** Digits before the point; enough for every unit, and few enough that nothing loses precision. */
const maxDigits = 12
const bareNumber = /^[+-]?\d*\.?\d+$/
/** No duration or size is longer; the patterns below must not be fed what a stranger wrote without end. */
const maxCharacters = 64

/**
 * Milliseconds of a duration: whole or decimal numbers with the units ms, s, m, h, d, largest unit first.
 * @throws TextError
 */
export function parseDurationMs(text: string): number {
  if (text.length > maxCharacters) throw new TextError(`${inBackticks(text)} is too long for a duration`)
  if (bareNumber.test(text)) throw new TextError(`a bare number has no unit: write ${text}s, or ${text}ms`)
  if (!/^(\d+(\.\d+)?[a-z]+)+$/.test(text)) throw new TextError(`${inBackticks(text)} is not a duration`)
  let totalMs = 0
  let lastUnitMs = Number.POSITIVE_INFINITY
  for (const [part, number, unit] of text.matchAll(/(\d+(?:\.\d+)?)([a-z]+)/g)) {
    const unitMs = durationUnits.get(unit!)
    if (unitMs === undefined) throw new TextError(`${inBackticks(unit!)} is no unit of time: use ms, s, m, h or d`)
    if (unitMs >= lastUnitMs)
      throw new TextError(`${inBackticks(text)} does not go from the largest unit to the smallest`)
    if (number!.length > maxDigits) throw new TextError(`${inBackticks(part)} has too many digits`)
    lastUnitMs = unitMs
    totalMs += Number(number) * unitMs
  }
  // Decimal fractions such as 1.1 s are not exact in binary.
  const wholeMs = Math.round(totalMs)
  if (Math.abs(totalMs - wholeMs) > 1e-6)
    throw new TextError(`${inBackticks(text)} is not a whole number of milliseconds`)
  return wholeMs
}

/** The duration in the fewest units, as parseDurationMs reads it: `1m30s`, `500ms`, `0s`. */
export function durationToText(durationMs: number): string {
  let text = ''
  let restMs = Math.round(durationMs)
  for (const [unit, unitMs] of durationUnits) {
    // 1h30m, but 90s would be 1m30s and 36h stays 1d12h: every unit is used once.
    const count = Math.floor(restMs / unitMs)
    if (count > 0) text += `${count}${unit}`
    restMs -= count * unitMs
  }
  return text === '' ? '0s' : text
}

/**
 * Octets of a size: a whole or decimal number with the unit B, KiB, MiB, GiB or TiB.
 * @throws TextError
 */
export function parseSizeOctets(text: string): number {
  if (text.length > maxCharacters) throw new TextError(`${inBackticks(text)} is too long for a size`)
  if (bareNumber.test(text)) throw new TextError(`a bare number has no unit: write ${text}MiB, or ${text}B`)
  const match = /^(\d+(?:\.\d+)?)([A-Za-z]+)$/.exec(text)
  if (match === null) throw new TextError(`${inBackticks(text)} is not a size`)
  const [, number, unit] = match
  const unitOctets = sizeUnits.get(unit!)
  if (unitOctets === undefined) {
    throw new TextError(`${inBackticks(unit!)} is no unit of size: use B, KiB, MiB, GiB or TiB (powers of 1024)`)
  }
  if (number!.length > maxDigits) throw new TextError(`${inBackticks(text)} has too many digits`)
  const octets = Number(number) * unitOctets
  if (!Number.isSafeInteger(octets)) throw new TextError(`${inBackticks(text)} is not a whole number of octets`)
  return octets
}

/** The size in the largest unit that divides it: `64MiB`, `1500B`. */
export function sizeToText(sizeOctets: number): string {
  for (const [unit, unitOctets] of sizeUnits) {
    if (sizeOctets >= unitOctets && sizeOctets % unitOctets === 0) return `${sizeOctets / unitOctets}${unit}`
  }
  return `${sizeOctets}B`
}
