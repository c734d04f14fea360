/** The zones themselves before any object is known: SOA, NS, and the records that every zone of a kind has. */
import type { Clock } from '../base/clock.ts'
import { RRTYPE } from '../wire/iana.ts'
import { joinLabels } from '../wire/name.ts'
import type { DomainName } from '../wire/name.ts'
import { nameRdata, txtRdata } from '../wire/rdata.ts'
import type { RRset } from '../wire/rr.ts'
import { serialStepMs } from '../zone/serial.ts'
import type { Synthesize, ZoneStoreOptions } from '../zone/zone-store.ts'
import { ZoneStore } from '../zone/zone-store.ts'
import { addressOctets, canonicalAddress } from './address.ts'
import { RecordSets, toRRsets } from './record-sets.ts'

/** Times of the SOA in seconds, and the longest TTL it is given out with; CoreDNS has the same. */
const refreshSeconds = 7_200
const retrySeconds = 1_800
const expireSeconds = 86_400
const maxSoaTtlSeconds = 300
/** As the specifications' examples have it. */
const versionTtlSeconds = 28_800

export const nameServerOf = (apex: DomainName): DomainName => joinLabels(['ns', 'dns'], apex)

/** A zone that holds its SOA and NS alone. `home` is the zone whose `ns.dns` is the name server. */
export function makeZone(options: {
  apex: DomainName
  home: DomainName
  ttlSeconds: number
  epoch: string
  clock: Clock
  synthesize?: Synthesize
}): ZoneStore {
  const { apex, home, ttlSeconds, epoch, clock, synthesize } = options
  const mname = nameServerOf(home)
  const storeOptions: ZoneStoreOptions = {
    apex,
    epoch,
    clock,
    soa: {
      mname,
      rname: joinLabels(['hostmaster'], home),
      refresh: refreshSeconds,
      retry: retrySeconds,
      expire: expireSeconds,
      minimumSeconds: ttlSeconds,
      ttlSeconds: Math.min(ttlSeconds, maxSoaTtlSeconds)
    },
    ns: { owner: apex, type: RRTYPE.NS, ttlSeconds, rdata: [nameRdata(mname)] },
    gatherMs: serialStepMs
  }
  if (synthesize !== undefined) storeOptions.synthesize = synthesize
  return new ZoneStore(storeOptions)
}

/** `dns-version.<zone>`: the version of the specification that the zone keeps to. */
export function versionSet(apex: DomainName, version: '1.0.0' | '1.1.0'): RRset {
  const owner = joinLabels(['dns-version'], apex)
  return { owner, type: RRTYPE.TXT, ttlSeconds: versionTtlSeconds, rdata: [txtRdata([version])] }
}

/** The addresses of a zone's name server. Unspecified addresses (`0.0.0.0`, `::`) reach nobody and are left out. */
export function nameServerSets(apex: DomainName, addresses: readonly string[], ttlSeconds: number): readonly RRset[] {
  const sets = new RecordSets(ttlSeconds)
  for (const text of addresses) {
    const address = canonicalAddress(text)
    if (address !== null && address !== '0.0.0.0' && address !== '::') {
      sets.addAddress(nameServerOf(apex), addressOctets(address))
    }
  }
  return toRRsets(sets.finish())
}
