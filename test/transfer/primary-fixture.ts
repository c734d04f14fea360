/** A zone, the primary that gives it away, and connections that keep what is sent. */
import { NetworkSet } from '../../src/base/network.ts'
import { Primary, type PrimaryOptions, type TransferStream } from '../../src/transfer/primary.ts'
import { ZonePart } from '../../src/transfer/zone-part.ts'
import type { ZoneSource } from '../../src/transfer/zone-parts.ts'
import { RRTYPE } from '../../src/wire/iana.ts'
import { nameToOctets, parseName } from '../../src/wire/name.ts'
import type { PeerdnsOption } from '../../src/wire/peerdns-option.ts'
import type { ServiceState } from '../../src/zone/zone-change.ts'
import { ZoneStore, type ZoneEdit } from '../../src/zone/zone-store.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { rrset } from '../support/records.ts'

export const zoneName = 'cluster.local'

export function newStore(
  clock: ManualClock,
  options: { epoch?: string; serial?: number; apex?: string } = {}
): ZoneStore {
  const apex = options.apex ?? zoneName
  return new ZoneStore({
    apex: parseName(apex),
    epoch: options.epoch ?? 'epoch-1',
    soa: {
      mname: parseName(`ns.dns.${zoneName}`),
      rname: parseName(`hostmaster.${zoneName}`),
      refresh: 7200,
      retry: 1800,
      expire: 86_400,
      minimumSeconds: 5,
      ttlSeconds: 30
    },
    ns: rrset(apex, 'NS', 30, `ns.dns.${zoneName}`),
    clock,
    gatherMs: 50,
    ...(options.serial === undefined ? {} : { serial: options.serial })
  })
}

/** Sets what a Service has: its addresses, its state; no addresses: only its name. */
export function serviceEdit(
  name: string,
  addresses: readonly string[],
  state: ServiceState | null = 'present',
  originAtMs = 0
): ZoneEdit {
  const owner = parseName(`${name}.svc.${zoneName}`)
  const after = addresses.length === 0 ? null : rrset(`${name}.svc.${zoneName}`, 'A', 5, ...addresses)
  const names = [{ owner, exists: addresses.length === 0 && state !== null }]
  return { sets: [{ owner, type: RRTYPE.A, after }], services: [{ owner, after: state }], names, originAtMs }
}

/** A connection: `room` false holds every `send` back until `drain`. */
export class FakeStream implements TransferStream {
  readonly sent: Uint8Array[] = []
  readonly pushed: Uint8Array[] = []
  isClosed = false
  isFull = false
  #waiting: (() => void)[] = []
  #onClose: (() => void)[] = []

  async send(message: Uint8Array): Promise<boolean> {
    if (this.isClosed) return false
    this.sent.push(message)
    if (this.isFull) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    return !this.isClosed
  }

  push(message: Uint8Array): boolean {
    if (this.isClosed) return false
    if (this.isFull) {
      this.destroy()
      return false
    }
    this.pushed.push(message)
    return true
  }

  onClose(callback: () => void): void {
    this.#onClose.push(callback)
  }

  drain(): void {
    this.isFull = false
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  destroy(): void {
    this.isClosed = true
    this.drain()
    for (const callback of this.#onClose.splice(0)) callback()
  }
}

export const sourceOf = (...stores: ZoneStore[]): ZoneSource => ({
  stores,
  given: (store) => store,
  isReady: () => true,
  ageMs: () => 17
})

export const openTo = (networks: readonly string[], rest: Partial<PrimaryOptions> = {}): PrimaryOptions => ({
  allow: NetworkSet.parse(networks),
  needsKey: false,
  keys: [],
  export: { namespaces: [], services: [] },
  schemaZones: [parseName(zoneName)],
  pods: () => ({ mode: 'insecure', ttlSeconds: 5 }),
  ...rest
})

export const newPrimary = (clock: ManualClock, store: ZoneStore, rest: Partial<PrimaryOptions> = {}): Primary =>
  new Primary(clock, openTo(['any'], rest), sourceOf(store))

export const peerdns = (epoch: string | null = null): PeerdnsOption => ({
  instances: [],
  state: null,
  subscribe: false,
  epoch,
  clockMs: null,
  ageMs: null,
  copyOf: null,
  silentMs: null
})

/** Asks for a transfer and gives the messages that came. */
export async function take(
  primary: Primary,
  apex: string,
  options: { serial?: number | null; peerdns?: PeerdnsOption | null; stream?: FakeStream } = {}
): Promise<Uint8Array[]> {
  const part = primary.find(parseName(apex), (options.peerdns ?? null) !== null)
  if (!(part instanceof ZonePart)) throw new Error(part)
  const stream = options.stream ?? new FakeStream()
  const serial = options.serial ?? null
  const type = serial === null ? RRTYPE.AXFR : RRTYPE.IXFR
  const question = Uint8Array.from([...nameToOctets(parseName(apex)), 0, type, 0, 1])
  await primary.transfer(
    { part, id: 4711, question, serial, peerdns: options.peerdns ?? null, edns: null, signer: null },
    stream
  )
  return stream.sent
}
