/**
 * Records of private-use types that one peerdns puts into a transfer to another: what a zone holds that is no RRset.
 *
 * The history that a serial belongs to, the times of a change, how pods are named, the states of Services, and names
 * that exist without records. docs/transfer.md says where in a transfer they stand. A server that did not ask with our
 * EDNS option never gets them, and no store ever holds them.
 */
import { WireError } from '../base/errors.ts'
import { maxEpochOctets, maxRecordTtlSeconds } from '../base/limits.ts'
import { CLASS } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import { latin1Of, octetsOf, readU16, readU32, readU48, writeU16, writeU32, writeU48 } from '../wire/octets.ts'
import type { Rdata, ResourceRecord } from '../wire/rr.ts'
import type { ServiceState } from '../zone/zone-change.ts'

/** From the range for private use, 65280 to 65534 (RFC 6895 §3.1). */
export const privateType = { meta: 65_313, state: 65_314, name: 65_315, later: 65_316 } as const

export type PodMode = 'disabled' | 'insecure' | 'verified'

/** What stands beside the SOA of one serial. All times by wall clocks, in milliseconds since 1970. */
export type TransferMeta = Readonly<{
  /** The history that the serial belongs to. Serials of two epochs cannot be compared. */
  epoch: string
  /** When what led to this serial happened, the earliest of its changes, by the clock of where it happened. */
  originAtMs: number
  /** When the sender learned of it, by the sender's clock. */
  learnedAtMs: number
  /** The sender's clock as it wrote the record: what the two times above are compared with. */
  sentAtMs: number
  /** How names of pods below `<namespace>.pod.<apex>` are answered; `insecure` ones are computed with this TTL. */
  pods: Readonly<{ mode: PodMode; ttlSeconds: number }>
}>

const version = 1
/** Where in the RDATA of a meta record the sender's clock stands. */
export const sentAtOffset = 13
const podModes: readonly PodMode[] = ['disabled', 'insecure', 'verified']
const states: readonly ServiceState[] = ['present', 'empty', 'unknown']
/** Version, three times of 48 bits, pods mode, their TTL, length of the epoch. */
const fixedMetaOctets = 1 + 3 * 6 + 1 + 4 + 1

/** Whether records of this type are ours and belong into no store. */
export const isPrivateType = (type: number): boolean => type >= privateType.meta && type <= privateType.later

/** An epoch is printable ASCII without spaces, at least one character. */
export const isEpoch = (text: string): boolean => text.length <= maxEpochOctets && /^[!-~]+$/.test(text)

/** @throws RangeError for an epoch that is none. */
export function encodeMeta(meta: TransferMeta): Rdata {
  if (!isEpoch(meta.epoch)) throw new RangeError('an epoch is printable ASCII')
  const rdata = new Uint8Array(fixedMetaOctets + meta.epoch.length)
  rdata[0] = version
  writeU48(rdata, 1, meta.originAtMs)
  writeU48(rdata, 7, meta.learnedAtMs)
  writeU48(rdata, sentAtOffset, meta.sentAtMs)
  rdata[19] = podModes.indexOf(meta.pods.mode)
  writeU32(rdata, 20, meta.pods.ttlSeconds)
  rdata[24] = meta.epoch.length
  rdata.set(octetsOf(meta.epoch), fixedMetaOctets)
  return rdata
}

/** Octets behind the known fields are passed over. @throws WireError BAD_RDATA */
export function decodeMeta(rdata: Rdata): TransferMeta {
  checkVersion(rdata)
  if (rdata.length < fixedMetaOctets) throw bad(rdata.length, 'half a record of times')
  const mode = podModes[rdata[19]!]
  if (mode === undefined) throw bad(19, 'an unknown pods mode')
  const ttlSeconds = readU32(rdata, 20)
  if (ttlSeconds > maxRecordTtlSeconds) throw bad(20, 'a TTL that no record has')
  const end = fixedMetaOctets + rdata[24]!
  if (end > rdata.length) throw bad(24, 'half an epoch')
  const epoch = latin1Of(rdata, fixedMetaOctets, end)
  if (!isEpoch(epoch)) throw bad(fixedMetaOctets, 'an epoch is printable ASCII')
  return {
    epoch,
    originAtMs: readU48(rdata, 1),
    learnedAtMs: readU48(rdata, 7),
    sentAtMs: readU48(rdata, sentAtOffset),
    pods: { mode, ttlSeconds }
  }
}

export const encodeState = (state: ServiceState): Rdata => Uint8Array.of(version, states.indexOf(state))

/** @throws WireError BAD_RDATA */
export function decodeState(rdata: Rdata): ServiceState {
  checkVersion(rdata)
  const state = rdata.length < 2 ? undefined : states[rdata[1]!]
  if (state === undefined) throw bad(1, 'an unknown state of a Service')
  return state
}

/** The RDATA of every record that says a name exists. */
export const encodeName = (): Rdata => Uint8Array.of(version)

/** @throws WireError BAD_RDATA */
export const decodeName = (rdata: Rdata): void => checkVersion(rdata)

/** How much later than the serial's origin time the name was touched; milliseconds, at most 65,535. */
export const encodeLater = (laterMs: number): Rdata => {
  const rdata = new Uint8Array(3)
  rdata[0] = version
  writeU16(rdata, 1, Math.min(Math.max(0, Math.round(laterMs)), 0xffff))
  return rdata
}

/** @throws WireError BAD_RDATA */
export function decodeLater(rdata: Rdata): number {
  checkVersion(rdata)
  if (rdata.length < 3) throw bad(rdata.length, 'half a time')
  return readU16(rdata, 1)
}

/** The record at a name that was touched later than the meta record of its serial says. */
export const laterRecord = (owner: DomainName, laterMs: number): ResourceRecord =>
  record(owner, privateType.later, encodeLater(laterMs))

/** The record at the apex with the times and the epoch of a serial. */
export const metaRecord = (apex: DomainName, meta: TransferMeta): ResourceRecord =>
  record(apex, privateType.meta, encodeMeta(meta))

/** The record at a Service's owner with its state. */
export const stateRecord = (owner: DomainName, state: ServiceState): ResourceRecord =>
  record(owner, privateType.state, encodeState(state))

/** The record at a name that exists without records of its own. */
export const nameRecord = (owner: DomainName): ResourceRecord => record(owner, privateType.name, encodeName())

const record = (owner: DomainName, type: number, rdata: Rdata): ResourceRecord => ({
  owner,
  type,
  class: CLASS.IN,
  ttlSeconds: 0,
  rdata
})

function checkVersion(rdata: Rdata): void {
  if (rdata[0] !== version) throw bad(0, 'an unknown version of a private record')
}

const bad = (offset: number, detail: string): WireError => new WireError('BAD_RDATA', offset, detail)
