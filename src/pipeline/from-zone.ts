/** Answers from zones of our own: straight from the store, never cached, always at once. */
import { EDE, RCODE, RRTYPE } from '../wire/iana.ts'
import { readNameRdata, readSrv } from '../wire/rdata.ts'
import { parentOf, type DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import type { Zones } from '../zone/zones.ts'
import { answerOf, errorAnswer, noEde, type Answer, type Ede } from './answer.ts'

export type OwnZones = Readonly<{
  zones: Zones
  /** False from the start until the first complete view of the cluster. */
  hasSynced(zone: ZoneStore): boolean
  /** Since the source last proved that it follows its cluster, in milliseconds; null before the first time. */
  signOfLifeAgeMs(): number | null
  /**
   * The zones are copies whose hub has been silent for longer than its lease: for so long; null, or not there: they are
   * not.
   */
  silentForMs?(): number | null
}>

/** SRV and NS targets whose addresses ride along; more would only be cut off again. */
const maxAdditionalTargets = 16

const none: readonly RRset[] = []

export const notSyncedAnswer = (): Answer =>
  errorAnswer(RCODE.SERVFAIL, { code: EDE.NOT_READY, text: 'the cluster has not been read yet' })

export type ZoneQuestion = Readonly<{
  qname: DomainName
  qtype: number
  nowEpochMs: number
  /** Whether anybody will look at `isEmpty` (policies and peers do; it costs a few look-ups). */
  wantsServiceState: boolean
}>

/**
 * The answer of one of our zones for a name at or below its apex. An alias comes alone: following it is the pipeline's.
 */
export function answerFromZone(own: OwnZones, zone: ZoneStore, question: ZoneQuestion): Answer {
  const { qname, qtype, nowEpochMs } = question
  if (!own.hasSynced(zone)) return notSyncedAnswer()
  const found = zone.lookup(qname, qtype)
  const origin = {
    from: 'zone',
    zone: zone.apex,
    ageMs: own.signOfLifeAgeMs() ?? 0,
    changedAgoMs: Math.max(0, nowEpochMs - zone.lastChangeAtMs)
  } as const
  const silentForMs = own.silentForMs?.() ?? null
  const isEmpty = question.wantsServiceState && isOfEmptyService(zone, qname)
  if (found.kind === 'answer' || found.kind === 'alias') {
    const sections = {
      rcode: RCODE.NOERROR,
      answer: [found.rrset],
      authority: none,
      additional: additionalFor(zone, found.rrset)
    }
    const pendingAlias = found.kind === 'alias' ? readNameRdata(found.rrset.rdata[0]!) : null
    const ede = silentForMs === null ? noEde : [silence(EDE.STALE_ANSWER, silentForMs)]
    return answerOf(sections, { authoritative: true, origin, isEmpty, pendingAlias, ede })
  }
  const rcode = found.kind === 'nodata' ? RCODE.NOERROR : RCODE.NXDOMAIN
  const sections = { rcode, answer: none, authority: [zone.negativeSoa], additional: none }
  const code = rcode === RCODE.NXDOMAIN ? EDE.STALE_NXDOMAIN : EDE.STALE_ANSWER
  const ede = silentForMs === null ? noEde : [silence(code, silentForMs)]
  return answerOf(sections, { authoritative: true, origin, isEmpty, ede })
}

const silence = (code: number, silentForMs: number): Ede => ({
  code,
  text: `our copy: no sign of life from its hub for ${Math.round(silentForMs / 1000)} s`
})

/** Whether the name is that of an empty Service, or of a port or host below one. */
function isOfEmptyService(zone: ZoneStore, qname: DomainName): boolean {
  let name: DomainName | null = qname
  for (let depth = 0; depth < 3 && name !== null && name.length > zone.apex.length; depth++) {
    const state = zone.serviceState(name)
    if (state !== null) return state === 'empty'
    name = parentOf(name)
  }
  return false
}

/**
 * Addresses of the names that SRV and NS records point at, as far as this zone holds them. RFC 2782, RFC 1034 §4.3.2.
 */
function additionalFor(zone: ZoneStore, rrset: RRset): readonly RRset[] {
  if (rrset.type !== RRTYPE.SRV && rrset.type !== RRTYPE.NS) return none
  const additional: RRset[] = []
  const seen = new Set<DomainName>()
  for (const rdata of rrset.rdata) {
    const target = rrset.type === RRTYPE.SRV ? readSrv(rdata).target : readNameRdata(rdata)
    if (seen.size >= maxAdditionalTargets) break
    if (seen.has(target) || !target.endsWith(zone.apex)) continue
    seen.add(target)
    for (const type of [RRTYPE.A, RRTYPE.AAAA]) {
      const found = zone.lookup(target, type)
      if (found.kind === 'answer') additional.push(found.rrset)
    }
  }
  return additional
}
