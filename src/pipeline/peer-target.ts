/**
 * What one peer says of one name: from the cache where it still holds, else by asking. Names go out and are kept as
 * the peer calls them; they become ours when the answer is used.
 */
import { decodeEde, type EdnsOption } from '../wire/edns.ts'
import { encodePeerdnsOption, findPeerdnsOption } from '../wire/peerdns-option.ts'
import { EDE, RCODE, RRTYPE } from '../wire/iana.ts'
import { isAtOrBelow, nameToText, rootName, type DomainName } from '../wire/name.ts'
import { readNameRdata } from '../wire/rdata.ts'
import type { RRset, Sections } from '../wire/rr.ts'
import { maxAliases } from '../base/limits.ts'
import type { Peer } from '../peer/peer.ts'
import { sectionsToOurs, toOurs, type ZoneMapping } from '../policy/zone-mapping.ts'
import type { TargetId } from '../policy/policy.ts'
import type { TargetOutcome } from '../policy/decide.ts'
import { answerOf, lowestTtlSeconds, settledSections, staleForMs, unlimitedTtlSeconds, type Answer } from './answer.ts'
import { fromCopy, type PeerCopies } from './from-copy.ts'
import type { Parts } from './parts.ts'
import type { Query } from './query.ts'
import {
  keyOf,
  remembered,
  rememberedFailure,
  rememberFailure,
  staleTtlSeconds,
  type Remembered,
  type TargetQuestion,
  type TtlCaps
} from './remembered.ts'

/** Where and how one target of a policy (or the forward rule) is asked. */
export type PeerRoute = Readonly<{
  peer: Peer
  target: TargetId
  kind: 'peer' | 'upstream'
  /** Zones of the target that are kept here. */
  copies: PeerCopies | null
  /** The zone that names in the target's answers may speak of; the root: any. */
  zone: DomainName
  /** That zone may begin above the name given as `zone`. */
  soaMayBeAbove: boolean
  mapping: ZoneMapping
  caps: TtlCaps
  /** No client waits for the answer. */
  isBackground: boolean
}>

export type Outcome = TargetOutcome<Answer>

/** TTL in seconds of an answer that may be from before a change that we have just been told of. */
const doubtTtlSeconds = 1

/** Extended DNS Errors that say that the data are older than they should be. RFC 8914 §4.4, §4.20. */
const staleReasons: ReadonlySet<number> = new Set([EDE.STALE_ANSWER, EDE.STALE_NXDOMAIN])

/** The end of the alias chain where the answer does not hold it; null where nothing is missing. */
function openAlias(answer: Answer, qname: DomainName, qtype: number): DomainName | null {
  if (qtype === RRTYPE.CNAME || qtype === RRTYPE.ANY) return null
  const { answer: rrsets, rcode } = answer.sections
  if (rcode !== RCODE.NOERROR || aliasesIn(answer) === 0) return null
  let name = qname
  for (let aliases = 0; aliases <= rrsets.length; aliases++) {
    const alias = rrsets.find((rrset) => rrset.owner === name && rrset.type === RRTYPE.CNAME)
    if (alias === undefined) break
    name = readNameRdata(alias.rdata[0]!)
  }
  if (name === qname || rrsets.some((rrset) => rrset.owner === name && rrset.type === qtype)) return null
  return name
}

/** Joins an alias with the answer for its end, both settled to their TTLs of now. */
export function joinAlias(alias: Answer, end: Answer): Answer {
  const head = settledSections(alias)
  const tail = settledSections(end)
  const known = new Set(head.answer.map((rrset) => `${rrset.type} ${rrset.owner}`))
  const added = tail.answer.filter((rrset: RRset) => !known.has(`${rrset.type} ${rrset.owner}`))
  return {
    ...alias,
    sections: {
      rcode: tail.rcode,
      answer: [...head.answer, ...added],
      authority: tail.authority,
      additional: tail.additional
    },
    ageSeconds: 0,
    maxTtlSeconds: end.maxTtlSeconds,
    ede: [...alias.ede, ...end.ede],
    pendingAlias: end.pendingAlias
  }
}

/** Sorts a usable answer by what it says of the name. */
function outcomeOf(answer: Answer): Outcome {
  const { rcode, answer: rrsets, authority } = answer.sections
  if (rcode === RCODE.NXDOMAIN && rrsets.length === 0) {
    return { kind: answer.isEmpty ? 'empty' : 'absent', reply: answer }
  }
  if (answer.isEmpty) return { kind: 'empty', reply: answer }
  const isBare = rrsets.length === 0 && !authority.some((rrset) => rrset.type === RRTYPE.SOA)
  return { kind: isBare ? 'bare' : 'has', reply: answer }
}

/** The outcome with names as our clients know them; an alias that leads out of the target's zone stays open. */
function outcomeToOurs(outcome: Outcome, route: PeerRoute, name: DomainName, qtype: number): Outcome {
  if (outcome.kind === 'unreachable') {
    return outcome.stale === null ? outcome : { ...outcome, stale: answerToOurs(outcome.stale, route, name, qtype) }
  }
  return { ...outcome, reply: answerToOurs(outcome.reply, route, name, qtype) }
}

function answerToOurs(answer: Answer, route: PeerRoute, name: DomainName, qtype: number): Answer {
  const open = route.kind === 'upstream' ? null : openAlias(answer, name, qtype)
  const pendingAlias = open === null || isAtOrBelow(open, route.zone) ? null : open
  const sections = sectionsToOurs(answer.sections, route.mapping)
  if (sections === answer.sections && pendingAlias === null) return answer
  return { ...answer, sections, pendingAlias: pendingAlias === null ? null : toOurs(pendingAlias, route.mapping) }
}

/** An alias inside the target's zone means the target's own name: its end is asked there too. */
const openAliasInZone = (route: PeerRoute, answer: Answer, name: DomainName, qtype: number): DomainName | null => {
  if (route.kind === 'upstream' || route.zone === rootName) return null
  const open = openAlias(answer, name, qtype)
  return open !== null && isAtOrBelow(open, route.zone) ? open : null
}

/**
 * A held answer with the ends of its aliases inside the target's zone, as far as they are held too; null where one is
 * missing: an alias alone would tell the client that its end has no such records. It is as stale as its stalest part.
 */
function wholeOf(
  parts: Parts,
  query: Query,
  route: PeerRoute,
  head: Answer | null,
  name: DomainName,
  qtype: number
): Answer | null {
  let whole = head
  for (let aliases = 0; aliases < maxAliases && whole !== null; aliases++) {
    const open = openAliasInZone(route, whole, name, qtype)
    if (open === null) break
    const end = held(parts, query, route, { target: route.target, name: open, type: qtype }, false)
    if (end === null) return null
    whole = joinStale(whole, end.answer)
    if (end.answer.sections.answer.length === 0) break
  }
  return whole
}

const joinStale = (alias: Answer, end: Answer): Answer => ({
  ...joinAlias(alias, end),
  origin: staleForMs(end) > staleForMs(alias) ? end.origin : alias.origin
})

/** What is known without asking; null: the target has to be asked. `name` is as the target calls it. */
export function peerOutcomeFromMemory(
  parts: Parts,
  query: Query,
  route: PeerRoute,
  name: DomainName,
  qtype: number
): Outcome | null {
  const question = { target: route.target, name, type: qtype }
  const known = held(parts, query, route, question, true)
  if (known?.kind !== 'fresh') {
    const why = rememberedFailure(parts, question, query)
    if (why === null) return null
    const stale = wholeOf(parts, query, route, known?.answer ?? null, name, qtype)
    return outcomeToOurs({ kind: 'unreachable', why, isCached: true, stale }, route, name, qtype)
  }
  let answer = known.answer
  for (;;) {
    if (aliasesIn(answer) > maxAliases) return null
    const open = openAliasInZone(route, answer, name, qtype)
    if (open === null) break
    const end = held(parts, query, route, { target: route.target, name: open, type: qtype }, true)
    if (end?.kind !== 'fresh') return null
    const joined = joinAlias(answer, end.answer)
    // A denial adds nothing, and neither does a loop: each alias once.
    const isOver = joined.sections.answer.length === answer.sections.answer.length
    answer = joined
    if (isOver) break
  }
  traceHeld(parts, query, route, known.answer)
  return outcomeToOurs(outcomeOf(answer), route, name, qtype)
}

/**
 * The target's last word on a question, as far as we hold it: from a copy of its zone while that may stand for it, from
 * the cache while a TTL runs, else the staler one that is still of use.
 */
function held(
  parts: Parts,
  query: Query,
  route: PeerRoute,
  question: TargetQuestion,
  isFirstLook: boolean
): Remembered | null {
  const copied = route.copies?.areKept !== true ? null : fromCopy(parts, route.copies, question, query, route.caps)
  if (copied?.kind === 'fresh') return copied
  const cached = remembered(parts, question, query, route.caps, isFirstLook)
  return cached?.kind === 'fresh' ? cached : (copied ?? cached)
}

function traceHeld({ clock }: Parts, { trace }: Query, { target }: PeerRoute, answer: Answer): void {
  const { origin } = answer
  const isCopy = origin.from === 'mirror'
  trace?.add(clock.nowMs(), {
    step: isCopy ? 'mirror' : 'cache',
    detail: isCopy ? `${target}: our copy of ${nameToText(origin.zone)}` : `${target}: a fresh answer is held`,
    ageMs: origin.from === 'cache' || isCopy ? origin.ageMs : 0,
    ttlSeconds: lowestTtlSeconds(answer)
  })
}

/** The target's last answer, fresh or stale, with names as our clients know them; null where none is held. */
export function lastAnswer(
  parts: Parts,
  query: Query,
  route: PeerRoute,
  name: DomainName,
  qtype: number
): Answer | null {
  const known = held(parts, query, route, { target: route.target, name, type: qtype }, false)
  const whole = wholeOf(parts, query, route, known?.answer ?? null, name, qtype)
  return whole === null ? null : answerToOurs(whole, route, name, qtype)
}

/** Asks the target, cache first. Never rejects. `name` is as the target calls it. */
export async function peerOutcome(
  parts: Parts,
  query: Query,
  route: PeerRoute,
  name: DomainName,
  qtype: number,
  deadlineMs: number
): Promise<Outcome> {
  let outcome = await oneOutcome(parts, query, route, { target: route.target, name, type: qtype }, deadlineMs)
  if (outcome.kind === 'unreachable') {
    outcome = { ...outcome, stale: wholeOf(parts, query, route, outcome.stale, name, qtype) }
  }
  while (outcome.kind === 'has') {
    if (aliasesIn(outcome.reply) > maxAliases)
      return { kind: 'unreachable', why: endlessAliases, isCached: false, stale: null }
    const open = openAliasInZone(route, outcome.reply, name, qtype)
    if (open === null) break
    const end = await oneOutcome(parts, query, route, { target: route.target, name: open, type: qtype }, deadlineMs)
    if (end.kind === 'unreachable') {
      const stale = end.stale === null ? null : joinStale(outcome.reply, end.stale)
      return outcomeToOurs({ ...end, stale }, route, name, qtype)
    }
    const isLoop = end.reply.sections.answer.every(
      (rrset) => rrset.type === RRTYPE.CNAME && outcomeHolds(outcome, rrset)
    )
    outcome = { kind: 'has', reply: joinAlias(outcome.reply, end.reply) }
    if (isLoop) break
  }
  return outcomeToOurs(outcome, route, name, qtype)
}

/** Counts where it is lower than the TTL that came. */
function adaptiveCapSeconds(
  { copies }: PeerRoute,
  key: string,
  name: DomainName,
  sections: Sections,
  nowMs: number
): number {
  const adaptive = copies?.adaptiveTtl(name) ?? null
  if (adaptive === null) return unlimitedTtlSeconds
  const capSeconds = Math.min(unlimitedTtlSeconds, adaptive.note(key, name, sections, nowMs))
  const isLower = [...sections.answer, ...sections.authority].some(({ ttlSeconds }) => ttlSeconds > capSeconds)
  if (isLower) adaptive.stats.capped++
  return capSeconds
}

function aliasesIn({ sections }: Answer): number {
  let aliases = 0
  for (const { type } of sections.answer) if (type === RRTYPE.CNAME) aliases++
  return aliases
}

const endlessAliases = `more than ${maxAliases} aliases`

const outcomeHolds = (outcome: Outcome, rrset: RRset): boolean =>
  outcome.kind !== 'unreachable' &&
  outcome.reply.sections.answer.some((held) => held.owner === rrset.owner && held.type === rrset.type)

const noInstances: readonly string[] = []
let ownHop: Readonly<{ instanceId: string; options: readonly EdnsOption[] }> | null = null

/** What tells those behind us where the question has been. Mostly nowhere but here, which is encoded once. */
function hopOptions(instances: readonly string[], instanceId: string): readonly EdnsOption[] {
  if (instances.length > 0) return [encodePeerdnsOption({ instances: [...instances, instanceId] })]
  if (ownHop?.instanceId !== instanceId) {
    ownHop = { instanceId, options: [encodePeerdnsOption({ instances: [instanceId] })] }
  }
  return ownHop.options
}

async function oneOutcome(
  parts: Parts,
  query: Query,
  route: PeerRoute,
  question: TargetQuestion,
  deadlineMs: number
): Promise<Outcome> {
  const { clock, cache, instanceId } = parts
  const known = held(parts, query, route, question, false)
  if (known?.kind === 'fresh') {
    traceHeld(parts, query, route, known.answer)
    return outcomeOf(known.answer)
  }
  const stale = known?.answer ?? null
  const failure = rememberedFailure(parts, question, query)
  if (failure !== null) return { kind: 'unreachable', why: failure, isCached: true, stale }
  const budgetMs = deadlineMs - clock.nowMs()
  if (budgetMs <= 0) return { kind: 'unreachable', why: 'no time was left to ask', isCached: false, stale }
  const askedAtMs = clock.nowMs()
  const reply = await route.peer.ask(
    {
      name: question.name,
      type: question.type,
      zone: route.zone,
      soaMayBeAbove: route.soaMayBeAbove,
      dnssecOk: query.dnssecOk,
      checkingDisabled: query.checkingDisabled,
      options: hopOptions(query.peerdns?.instances ?? noInstances, instanceId)
    },
    budgetMs,
    route.isBackground
  )
  const nowMs = clock.nowMs()
  for (const attempt of reply.attempts) {
    query.trace?.add(nowMs, {
      step: route.kind === 'peer' ? 'peer' : 'forward',
      detail: `${route.target} over ${attempt.transport}: ${attempt.outcome}`,
      server: attempt.server,
      tookMs: attempt.tookMs
    })
  }
  if (reply.kind === 'failed') {
    // An overload is ours, not the target's: it is over as soon as others are done.
    if (reply.reason !== 'overload') rememberFailure(parts, question, query, reply.detail)
    return { kind: 'unreachable', why: reply.detail, isCached: false, stale }
  }
  const peerdns = findPeerdnsOption(reply.options)
  const isEmpty = peerdns?.state === 'empty'
  const sourceAgeMs = peerdns?.ageMs ?? 0
  const { server, tookMs } = reply
  const origin = { from: route.kind, target: route.target, server, tookMs, sourceAgeMs } as const
  const isToldStale = reply.options.some((option) => staleReasons.has(decodeEde(option)?.code ?? 0))
  if (isToldStale) {
    // It asks another one that is silent (a node's hub, a resolver): what is said of that one is no more than held.
    const told = answerOf(reply.sections, { origin, isEmpty, maxTtlSeconds: staleTtlSeconds })
    return { kind: 'unreachable', why: `${reply.server} answers with stale data`, isCached: false, stale: told }
  }
  const doubt = route.copies?.doubt(question.name, askedAtMs) ?? null
  const doubtCapSeconds = Math.min(
    doubt === null ? unlimitedTtlSeconds : doubtTtlSeconds,
    adaptiveCapSeconds(route, keyOf(question, query), question.name, reply.sections, nowMs)
  )
  const positiveCapSeconds = Math.min(route.caps.maxTtlSeconds, parts.cacheLimits.maxTtlSeconds, doubtCapSeconds)
  const negativeCapSeconds = Math.min(route.caps.maxNegativeTtlSeconds, doubtCapSeconds)
  const keep = {
    nowMs,
    targetId: route.target,
    server,
    isEmpty,
    sourceAgeMs,
    maxTtlSeconds: positiveCapSeconds,
    maxNegativeTtlSeconds: negativeCapSeconds
  }
  const kept = doubt === 'outdated' ? null : cache.put(keyOf(question, query), reply.sections, keep)
  const isNegative = reply.sections.answer.length === 0
  const maxTtlSeconds = isNegative ? negativeCapSeconds : positiveCapSeconds
  // A denial behind an alias: its SOA has another cap than the alias, and whoever asks first gets what others get.
  const isKeptDenial = kept !== null && kept.kind !== 'positive'
  return outcomeOf(answerOf(isKeptDenial ? kept.sections : reply.sections, { origin, isEmpty, maxTtlSeconds }))
}
