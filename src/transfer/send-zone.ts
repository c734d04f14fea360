/**
 * The records of one transfer in their order: a whole zone (RFC 5936 §2.2), differences (RFC 1995 §4), or the SOA alone
 * for who has everything.
 */
import type { RRset } from '../wire/rr.ts'
import type { MessagePacker } from './message-packer.ts'
import { laterRecord, metaRecord, nameRecord, sentAtOffset, stateRecord, type PodMode } from './private-records.ts'
import type { PartContent, PartDifference, SentRecord, ZonePart } from './zone-part.ts'
import type { BatchTimes } from '../zone/zone-store.ts'

/** What a meta record says beside the times of a change; null: the asker is no peerdns and gets no private records. */
export type MetaSource = Readonly<{
  nowEpochMs(): number
  /** The clock of where changes happened less ours: what is told is by our clock. */
  clockOffsetMs: number
  pods: Readonly<{ mode: PodMode; ttlSeconds: number }>
}>

/** Packs records and counts them. */
export class ZoneSender {
  recordsSent = 0
  /** Where our clock was written, 48 bits each: in which message, and at which octet. */
  readonly clocks: Readonly<{ message: number; at: number }>[] = []
  readonly #packer: MessagePacker
  readonly #part: ZonePart
  readonly #meta: MetaSource | null

  constructor(packer: MessagePacker, part: ZonePart, meta: MetaSource | null) {
    this.#packer = packer
    this.#part = part
    this.#meta = meta
  }

  /** False where the asker is gone. */
  async soaAlone(serial: number): Promise<boolean> {
    return (await this.#set(this.#part.soaAt(serial))) && this.#packer.flush()
  }

  /** @param content of the moment at which the zone had this serial. */
  async whole(content: PartContent, serial: number, times: BatchTimes): Promise<boolean> {
    const soa = this.#part.soaAt(serial)
    if (!(await this.#set(soa)) || !(await this.#times(times)) || !(await this.#set(this.#part.ns))) return false
    for (const rrset of content.rrsets) if (!(await this.#set(rrset))) return false
    if (this.#meta !== null) {
      for (const [owner, state] of content.services) if (!(await this.#add(stateRecord(owner, state)))) return false
      for (const name of content.names) if (!(await this.#add(nameRecord(name)))) return false
    }
    return (await this.#set(soa)) && this.#packer.flush()
  }

  /** @param differences at least one. */
  async differences(differences: readonly PartDifference[], fromSerial: number): Promise<boolean> {
    const newest = this.#part.soaAt(differences.at(-1)!.toSerial)
    if (!(await this.#set(newest))) return false
    let serial = fromSerial
    for (const { toSerial, times, gone, come, late } of differences) {
      if (!(await this.#set(this.#part.soaAt(serial)))) return false
      for (const record of gone) if (!(await this.#add(record))) return false
      if (!(await this.#set(this.#part.soaAt(toSerial))) || !(await this.#times(times))) return false
      for (const one of this.#meta === null ? [] : late) {
        if (!(await this.#add(laterRecord(one.owner, one.originAtMs - times.originAtMs)))) return false
      }
      for (const record of come) if (!(await this.#add(record))) return false
      serial = toSerial
    }
    return (await this.#set(newest)) && this.#packer.flush()
  }

  async #set({ owner, type, ttlSeconds, rdata }: RRset): Promise<boolean> {
    for (const octets of rdata) {
      if (!(await this.#add({ owner, type, ttlSeconds, rdata: octets }))) return false
    }
    return true
  }

  async #times({ originAtMs, learnedAtMs }: BatchTimes): Promise<boolean> {
    if (this.#meta === null) return true
    const { epoch } = this.#part
    const { pods, clockOffsetMs } = this.#meta
    const sentAtMs = this.#meta.nowEpochMs()
    const happenedAtMs = Math.max(0, Math.round(originAtMs - clockOffsetMs))
    const record = metaRecord(this.#part.apex, { epoch, originAtMs: happenedAtMs, learnedAtMs, sentAtMs, pods })
    if (!(await this.#add(record))) return false
    const { message, at } = this.#packer.place
    this.clocks.push({ message, at: at - record.rdata.length + sentAtOffset })
    return true
  }

  async #add(record: SentRecord): Promise<boolean> {
    this.recordsSent += 1
    // Waiting costs, and most records just go in.
    return this.#packer.tryAdd(record) || this.#packer.add(record)
  }
}
