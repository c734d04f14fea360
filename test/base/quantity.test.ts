import * as fc from 'fast-check'
import { test } from 'tap'
import { TextError } from '../../src/base/errors.ts'
import { durationToText, parseDurationMs, parseSizeOctets, sizeToText } from '../../src/base/quantity.ts'

void test('parseDurationMs reads numbers with units', async (t) => {
  const rows: [text: string, wantMs: number, back: string][] = [
    ['500ms', 500, '500ms'],
    ['0s', 0, '0s'],
    ['0ms', 0, '0s'],
    ['5s', 5_000, '5s'],
    ['1m', 60_000, '1m'],
    ['1h', 3_600_000, '1h'],
    ['1d', 86_400_000, '1d'],
    ['1.5s', 1_500, '1s500ms'],
    ['1.1s', 1_100, '1s100ms'],
    ['90s', 90_000, '1m30s'],
    ['1h30m', 5_400_000, '1h30m'],
    ['2h0m1s', 7_201_000, '2h1s']
  ]
  for (const [text, wantMs, back] of rows) {
    t.equal(parseDurationMs(text), wantMs, text)
    t.equal(durationToText(wantMs), back)
  }
})

void test('parseDurationMs says what is wrong', async (t) => {
  const rows: [text: string, want: RegExp][] = [
    ['5', /bare number has no unit: write 5s/],
    ['0', /bare number has no unit/],
    ['1.5', /bare number/],
    ['-5', /bare number/],
    ['.5', /bare number/],
    ['-5s', /not a duration/],
    ['5 s', /not a duration/],
    ['s', /not a duration/],
    ['', /not a duration/],
    ['5S', /not a duration/],
    ['1e3s', /`e` is no unit of time/],
    ['5sec', /`sec` is no unit of time/],
    ['5us', /`us` is no unit/],
    ['0.5ms', /whole number of milliseconds/],
    ['30m1h', /largest unit to the smallest/],
    ['1s1s', /largest unit to the smallest/],
    ['9999999999999s', /too many digits/],
    ['1'.repeat(1_000_000), /1\.\.\.` is too long for a duration/]
  ]
  for (const [text, want] of rows) {
    t.throws(() => parseDurationMs(text), want, JSON.stringify(text))
    t.throws(() => parseDurationMs(text), TextError)
  }
})

void test('parseSizeOctets reads powers of 1024 only', async (t) => {
  const rows: [text: string, want: number, back: string][] = [
    ['64MiB', 67_108_864, '64MiB'],
    ['1KiB', 1_024, '1KiB'],
    ['2GiB', 2_147_483_648, '2GiB'],
    ['1TiB', 1_099_511_627_776, '1TiB'],
    ['0B', 0, '0B'],
    ['1500B', 1_500, '1500B'],
    ['1.5KiB', 1_536, '1536B'],
    ['1024KiB', 1_048_576, '1MiB']
  ]
  for (const [text, want, back] of rows) {
    t.equal(parseSizeOctets(text), want, text)
    t.equal(sizeToText(want), back)
  }
  const bad: [text: string, want: RegExp][] = [
    ['64', /bare number has no unit: write 64MiB/],
    ['64MB', /`MB` is no unit of size: use B, KiB, MiB, GiB or TiB/],
    ['64Mi', /`Mi` is no unit of size/],
    ['64mib', /`mib` is no unit of size/],
    ['64 MiB', /not a size/],
    ['MiB', /not a size/],
    ['-1MiB', /not a size/],
    ['0.3B', /whole number of octets/],
    ['999999999999TiB', /whole number of octets/],
    ['1'.repeat(1_000_000), /1\.\.\.` is too long for a size/]
  ]
  for (const [text, want] of bad) t.throws(() => parseSizeOctets(text), want, JSON.stringify(text))
})

void test('what durationToText and sizeToText write is read back, and other text gives a TextError', async (t) => {
  const seed = 20261130
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.nat(10_000_000_000), (number) => parseDurationMs(durationToText(number)) === number),
      { seed }
    )
  )
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.nat(10_000_000_000), (number) => parseSizeOctets(sizeToText(number)) === number),
      { seed }
    )
  )
  const onlyTextErrors = (parse: (text: string) => number) => (text: string) => {
    try {
      return Number.isSafeInteger(parse(text))
    } catch (error) {
      return error instanceof TextError
    }
  }
  const text = fc.oneof(fc.string(), fc.stringMatching(/^[0-9.msdhKMGiB -]{0,12}$/))
  for (const parse of [parseDurationMs, parseSizeOctets]) {
    t.doesNotThrow(() => fc.assert(fc.property(text, onlyTextErrors(parse)), { seed, numRuns: 2_000 }))
  }
})
