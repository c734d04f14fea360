/** Checks of the section `cluster`: its source, its zones, and its hand-written records. */
import { WireError } from '../base/errors.ts'
import { maxReverseZones } from '../base/limits.ts'
import type { Network } from '../base/network.ts'
import { RRTYPE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import { parseRecordLine } from '../wire/record-text.ts'
import type { CheckOptions, FileDraft } from './file-draft.ts'
import { wordList, wordsOf } from './option.ts'

const sourceKinds = ['manifests', 'kubernetes', 'mirror'] as const

export function checkCluster(draft: FileDraft, options: CheckOptions): void {
  const { report } = options
  const { source, zone, clustersetZone, reverse } = draft.cluster ?? {}
  if (source !== undefined) {
    const given = sourceKinds.filter((kind) => Object.hasOwn(source, kind))
    const expected = `exactly one of ${wordList(sourceKinds)}`
    const path = ['cluster', 'source']
    if (given.length === 0) report({ path, at: 'key', message: 'there is no source', expected })
    for (const kind of given.slice(1)) {
      report({ path: [...path, kind], at: 'key', message: `a second source beside \`${given[0]}\``, expected })
    }
  }
  if (zone !== undefined && zone === clustersetZone) {
    const message = 'the zone of Services and that of ServiceImports are the same one'
    report({ path: ['cluster', 'clustersetZone'], at: 'value', message, expected: 'another name' })
  }
  const networks = (reverse ?? []).flatMap((entry) => entry ?? [])
  const zones = networks.reduce((sum, network) => sum + reverseZoneCount(network), 0)
  if (zones > maxReverseZones) {
    const message = `these networks are ${zones} reverse zones, and ${maxReverseZones} are the most`
    report({ path: ['cluster', 'reverse'], at: 'value', message, expected: 'prefix lengths that end at an octet' })
  }
  checkRecords(draft, options)
}

/** Reverse zones end at octets (RFC 1035 §3.5) or nibbles (RFC 3596 §2.5). */
const reverseZoneCount = ({ family, prefixLength }: Network): number => {
  const step = family === 4 ? 8 : 4
  return 2 ** ((step - (prefixLength % step)) % step)
}

function checkRecords(draft: FileDraft, { report, lineOf }: CheckOptions): void {
  const typesAt = new Map<DomainName, { type: number; path: readonly (string | number)[] }>()
  for (const [index, line] of (draft.cluster?.records ?? []).entries()) {
    const path = ['cluster', 'records', index]
    const record = line === undefined ? null : readRecord(line)
    if (record === null) continue
    if (record instanceof WireError) {
      const expected = 'a zone-file line: owner, TTL, type, data'
      report({ path, at: 'value', offset: record.offset, message: wordsOf(record), expected })
      continue
    }
    const other = typesAt.get(record.owner)
    if (other === undefined) typesAt.set(record.owner, { type: record.type, path })
    else if ((other.type === RRTYPE.CNAME) !== (record.type === RRTYPE.CNAME)) {
      const message = `a CNAME stands alone at its name (RFC 1034 §3.6.2), and line ${lineOf(other.path)} has another type`
      report({ path, at: 'value', message })
    }
  }
}

/** The record of a line, or what is wrong with it. */
export function readRecord(line: string): ReturnType<typeof parseRecordLine> | WireError {
  try {
    return parseRecordLine(line, { defaultTtlSeconds: 0 })
  } catch (error) {
    if (error instanceof WireError) return error
    throw error
  }
}
