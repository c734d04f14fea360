/**
 * Checks of `cluster.records`: lines that can be read, and that do what they seem to say. We have neither wildcards
 * nor delegations, and a name is always a whole one.
 */
import { WireError } from '../base/errors.ts'
import { networksOverlap } from '../base/network.ts'
import { RRTYPE } from '../wire/iana.ts'
import { isAtOrBelow, joinLabels, labelCount, labelsOf, nameToText, type DomainName } from '../wire/name.ts'
import type { ParsedRecord } from '../wire/record-text.ts'
import { namesOfLocal } from './check-policies.ts'
import type { CheckOptions, FileDraft } from './file-draft.ts'
import { wordsOf } from './option.ts'
import { readRecord } from './record-line.ts'
import { networkOfReverseName } from './reverse-name.ts'

type Path = readonly (string | number)[]
type PlacedRecord = ParsedRecord & Readonly<{ path: Path }>

export function checkRecords(draft: FileDraft, options: CheckOptions): void {
  const records = readRecords(draft, options)
  checkAliases(records, options)
  const { zone, clustersetZone, reverse } = draft.cluster ?? {}
  if (zone === undefined || clustersetZone === undefined || reverse === undefined) return
  // Names below a policy's dnsName that `local` answers lie in a zone of that name.
  const apexes = [zone, clustersetZone, ...namesOfLocal(draft)]
  const networks = reverse.flatMap((entry) => entry ?? [])
  for (const record of records) {
    const { owner, type, path } = record
    const tell = (message: string, expected: string): void =>
      options.report({ path, at: 'value', offset: 0, message, expected })
    const network = networkOfReverseName(owner)
    const around = network === null ? [] : networks.filter((own) => networksOverlap(own, network))
    const isInside = around.length > 0 || apexes.some((apex) => isAtOrBelow(owner, apex))
    const text = nameToText(owner)
    if (labelsOf(owner).includes('*')) {
      tell(`${text} is answered for nothing but a literal \`*\`: there are no wildcards`, 'a record for each name')
    } else if (labelCount(owner) < 2 && !isInside) {
      const message = `\`${text}\` is a whole name, and would make this server authoritative for all of \`${text}\``
      const meant = nameToText(joinLabels(labelsOf(owner), zone))
      tell(message, `a name with its zone, such as \`${meant}\``)
    } else if (type === RRTYPE.NS) {
      const isApex =
        apexes.includes(owner) ||
        around.some(({ family, prefixLength }) =>
          isZoneCut(network!.prefixLength, prefixLength, family === 4 ? 8 : 4)
        ) ||
        (!isInside && holdsOthers(record, records))
      const message = `an NS at ${text} delegates nothing: only a zone's own name has NS records here`
      if (!isApex) tell(message, `a policy with a peer for ${text}, or no record`)
    }
  }
}

function readRecords(draft: FileDraft, { report }: CheckOptions): PlacedRecord[] {
  const records: PlacedRecord[] = []
  for (const [index, line] of (draft.cluster?.records ?? []).entries()) {
    const path = ['cluster', 'records', index]
    const record = line === undefined ? null : readRecord(line)
    if (record === null) continue
    if (record instanceof WireError) {
      const expected = 'a zone-file line: owner, TTL, type, data'
      report({ path, at: 'value', offset: record.offset, message: wordsOf(record), expected })
      continue
    }
    records.push({ ...record, path })
  }
  return records
}

function checkAliases(records: readonly PlacedRecord[], { report, lineOf }: CheckOptions): void {
  const typesAt = new Map<DomainName, PlacedRecord>()
  for (const record of records) {
    const other = typesAt.get(record.owner)
    if (other === undefined) typesAt.set(record.owner, record)
    else if ((other.type === RRTYPE.CNAME) !== (record.type === RRTYPE.CNAME)) {
      const message = `a CNAME stands alone at its name (RFC 1034 §3.6.2), and line ${lineOf(other.path)} has another type`
      report({ path: record.path, at: 'value', message })
    }
  }
}

/** Whether a reverse name of this length is the apex of a zone for the network: zones end at octets or nibbles. */
const isZoneCut = (nameBits: number, networkBits: number, labelBits: number): boolean =>
  nameBits === Math.ceil(networkBits / labelBits) * labelBits

/**
 * Outside of every zone the topmost hand-written name is a zone of its own; one with an NS alone is a delegation that
 * was meant.
 */
function holdsOthers({ owner }: PlacedRecord, records: readonly PlacedRecord[]): boolean {
  const others = records.filter((other) => other.owner !== owner || other.type !== RRTYPE.NS)
  const isTopmost = others.every((other) => other.owner === owner || !isAtOrBelow(owner, other.owner))
  return isTopmost && others.some((other) => isAtOrBelow(other.owner, owner))
}
