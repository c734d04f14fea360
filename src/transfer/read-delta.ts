/** One delta with its private records read: what it says beside RRsets, and when it happened. */
import type { DomainName } from '../wire/name.ts'
import type { ResourceRecord } from '../wire/rr.ts'
import type { ServiceState } from '../zone/zone-change.ts'
import {
  decodeLater,
  decodeMeta,
  decodeState,
  isPrivateType,
  privateType,
  type TransferMeta
} from './private-records.ts'
import { TransferFault, type Delta } from './transfer-reader.ts'

/** When a change happened and how far it had come, by the clocks of those concerned; null: the server told nothing. */
export type Times = Pick<TransferMeta, 'originAtMs' | 'learnedAtMs' | 'sentAtMs'> | null

/** One step of several that came together: the names that it touched, and when it happened. */
export type Step = Readonly<{
  owners: readonly DomainName[]
  /** The one that it leads to. */
  serial: number
  times: Times
  /** How much later than `times` says some of the names were touched, in milliseconds. */
  laterMs: ReadonlyMap<DomainName, number>
}>

/** A delta, sorted. */
export type DeltaStep = {
  readonly toSerial: number
  readonly deleted: ResourceRecord[]
  readonly added: ResourceRecord[]
  readonly states: { owner: DomainName; state: ServiceState; isAdded: boolean }[]
  readonly names: { owner: DomainName; exists: boolean }[]
  readonly laterMs: Map<DomainName, number>
  meta: TransferMeta | null
}

/**
 * @param epoch that the message names; null: its server is no peerdns, and no record is private.
 * @throws TransferFault or WireError for private records that are none.
 */
export function readDelta({ deleted, added, toSerial }: Delta, apex: DomainName, epoch: string | null): DeltaStep {
  const step: DeltaStep = { toSerial, deleted: [], added: [], states: [], names: [], laterMs: new Map(), meta: null }
  const split = (records: readonly ResourceRecord[], plain: ResourceRecord[], isAdded: boolean): void => {
    for (const record of records) {
      const { owner, type, rdata } = record
      if (epoch === null || !isPrivateType(type)) plain.push(record)
      else if (type === privateType.state) step.states.push({ owner, state: decodeState(rdata), isAdded })
      else if (type === privateType.name) step.names.push({ owner, exists: isAdded })
      else if (type === privateType.later) step.laterMs.set(owner, decodeLater(rdata))
      else {
        const meta = decodeMeta(rdata)
        if (owner !== apex || meta.epoch !== epoch) {
          throw new TransferFault('delta', 'times of another zone or history')
        }
        step.meta = meta
      }
    }
  }
  split(deleted, step.deleted, false)
  split(added, step.added, true)
  return step
}

export const stepOf = (step: DeltaStep): Step => ({
  owners: ownersOf(step),
  serial: step.toSerial,
  times: step.meta,
  laterMs: step.laterMs
})

function ownersOf({ deleted, added, states, names }: DeltaStep): DomainName[] {
  const owners = new Set<DomainName>()
  for (const { owner } of [...deleted, ...added, ...states, ...names]) owners.add(owner)
  return [...owners]
}
