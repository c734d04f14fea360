/**
 * Where peerdns and CoreDNS 1.15 differ on purpose, each as a condition on a question and its two answers: the rows of
 * the table in `test/cases/README.md`, and then what the specifications say where CoreDNS does not follow them. A
 * difference that none of them explains is a bug.
 */
import { serviceOf, type ExpectedZone } from './expected.ts'
import type { LiveReply, Question } from './live-client.ts'

export type Difference = Readonly<{
  question: Question
  ours: LiveReply
  theirs: LiveReply
  /** What the API server holds. */
  zone: ExpectedZone
}>

export type Row = Readonly<{ row: string; explains: (difference: Difference) => boolean }>

const isNodata = ({ rcode, answer, soa }: LiveReply): boolean =>
  rcode === 'NOERROR' && answer.length === 0 && soa.length === 1
const isDenial = ({ rcode, answer }: LiveReply): boolean => rcode === 'NXDOMAIN' && answer.length === 0
const nameOf = ({ question }: Difference): string => question.name.toLowerCase()
const typesOf = ({ answer }: LiveReply): string[] => answer.map((line) => line.split(' ')[1]!)
const dataOf = ({ answer }: LiveReply): string[] => answer.map((line) => line.split(' ').slice(2).join(' '))
/** Without the weights, which are shares of the records that there are. */
const unweighted = ({ answer }: LiveReply): string[] =>
  answer.map((line) => line.replace(/ SRV 0 \d+ /, ' SRV ')).sort()
const holdsAll = (more: LiveReply, fewer: LiveReply): boolean => {
  const lines = new Set(unweighted(more))
  return unweighted(fewer).every((line) => lines.has(line))
}

const isInZones = (name: string): boolean =>
  /(^|\.)(cluster\.local|clusterset\.local|10\.in-addr\.arpa|30\.172\.in-addr\.arpa|0\.0\.d\.f\.ip6\.arpa)$/.test(name)
const isNamespace = (name: string): boolean => /^[^.]+\.(svc\.cluster|pod\.cluster|svc\.clusterset)\.local$/.test(name)
const isPod = (name: string): boolean => /^[^.]+\.[^.]+\.pod\.cluster\.local$/.test(name)
const isPort = (name: string): boolean => /^_[^.]+\._(tcp|udp|sctp)\./.test(name)
/** Names that are there whatever the objects. */
const isFixed = (name: string): boolean => /^((ns\.)?dns|dns-version|svc|pod)\.(cluster|clusterset)\.local$/.test(name)
const isApex = (name: string): boolean => /^(cluster|clusterset)\.local$/.test(name)

/** Why a Service of the name, or of a name that the answer points to, gives out endpoints that are not ready. */
const reasonsOf = (difference: Difference): (string | null)[] =>
  [nameOf(difference), ...dataOf(difference.ours).map((data) => data.split(' ').at(-1)!)].map((name) =>
    difference.zone.unreadyReasonOf(name)
  )
const hasMore = ({ ours, theirs }: Difference): boolean =>
  ours.answer.length > theirs.answer.length && holdsAll(ours, theirs)

/** Rows of the table, by their words. The first that explains a difference is counted. */
export const tableRows: readonly Row[] = [
  {
    row: 'ANY: RFC 8482',
    explains: ({ question, ours }) => question.type === 'ANY' && new Set(typesOf(ours)).size <= 1
  },
  {
    row: 'not our zone, no rule, no forward: REFUSED',
    explains: (it) => !isInZones(nameOf(it)) && it.ours.rcode === 'REFUSED' && it.theirs.rcode === 'SERVFAIL'
  },
  {
    row: 'a namespace without anything in it: NODATA',
    explains: (it) => isNamespace(nameOf(it)) && it.zone.has(nameOf(it)) && isNodata(it.ours) && isDenial(it.theirs)
  },
  {
    row: 'names between others: NODATA with SOA',
    explains: (it) => {
      const name = nameOf(it)
      const isBetween = name.endsWith('.arpa') || isFixed(name) || it.zone.has(name)
      return isBetween && it.zone.typesAt(name).length === 0 && isNodata(it.ours) && isDenial(it.theirs)
    }
  },
  {
    row: 'other types where something exists at the name: NODATA with SOA',
    explains: (it) => {
      const name = nameOf(it)
      const types = it.zone.typesAt(name)
      const isThere = types.length > 0 || isFixed(name) || isApex(name) || isPod(name)
      if (!isThere || types.includes(it.question.type) || !isNodata(it.ours)) return false
      // It gives the port itself at an endpoint's name, and the Service's addresses at a port's.
      const isHost = it.question.type === 'SRV' && typesOf(it.theirs).every((type) => type === 'SRV')
      const isOfPort = isPort(name) && typesOf(it.theirs).every((type) => type === it.question.type)
      return isDenial(it.theirs) || isHost || isOfPort
    }
  },
  {
    row: 'publishNotReadyAddresses, also over `ready: false`; the old tolerate-unready annotation: answered',
    explains: (it) => hasMore(it) && reasonsOf(it).includes('published')
  },
  {
    row: 'no ready endpoint, but some `serving` ones: the serving ones',
    explains: (it) => hasMore(it) && reasonsOf(it).includes('serving')
  },
  {
    row: 'ExternalName to a missing name: CNAME and NXDOMAIN with SOA',
    explains: (it) =>
      it.zone.typesAt(nameOf(it)).includes('CNAME') && it.ours.rcode === 'NXDOMAIN' && it.ours.soa.length === 1
  },
  {
    row: 'ExternalName and any type but CNAME: CNAME first, then what the target has',
    explains: (it) => it.zone.typesAt(nameOf(it)).includes('CNAME') && typesOf(it.ours).includes('CNAME')
  },
  {
    row: '`dns-version.clusterset.local`, `dns-version.cluster.local`',
    explains: (it) => nameOf(it).startsWith('dns-version.') && typesOf(it.ours).join() === 'TXT'
  }
]

/** What the table does not name. Each says which specification is followed. */
export const specificationRows: readonly Row[] = [
  {
    row: 'SOA of a missing name: NXDOMAIN (RFC 2308 §2.1), there NODATA',
    explains: (it) => it.question.type === 'SOA' && isDenial(it.ours) && isNodata(it.theirs)
  },
  {
    row: 'SRV weight: by the records of the RRset (dns-schema), there also by those of the other family',
    explains: ({ ours, theirs }) => {
      const weight = Math.max(1, Math.floor(100 / ours.answer.length))
      const isRight = ours.answer.every((line) => line.includes(` SRV 0 ${weight} `))
      return ours.answer.length > 0 && isRight && unweighted(ours).join() === unweighted(theirs).join()
    }
  },
  {
    row: 'labels in front of a pod or of a reverse name: NXDOMAIN, there passed over',
    explains: (it) =>
      /\.(pod\.cluster\.local|arpa)$/.test(nameOf(it)) && isDenial(it.ours) && it.theirs.rcode === 'NOERROR'
  },
  {
    row: 'names without the underscores of `_port._protocol`: NXDOMAIN, there answered',
    explains: (it) => {
      const [port = '', protocol = ''] = nameOf(it).split('.')
      const isPlain = !/^_./.test(port) || !/^_(tcp|udp|sctp)$/.test(protocol)
      return isPlain && isDenial(it.ours) && !isDenial(it.theirs) && it.zone.has(serviceOf(nameOf(it)))
    }
  },
  {
    row: 'PTR of a ClusterSetIP and of imported endpoints (KEP-1645), there none, or no reply at all',
    explains: (it) =>
      dataOf(it.ours).some((data) => data.endsWith('.clusterset.local')) &&
      typesOf(it.ours).every((type) => type === 'PTR') &&
      (isDenial(it.theirs) || it.theirs.rcode === 'SILENCE')
  },
  {
    row: 'NS of the apex and its address (RFC 1034 §4.2.1), there none outside of a cluster',
    explains: (it) =>
      it.theirs.answer.length === 0 &&
      ((isApex(nameOf(it)) && typesOf(it.ours).join() === 'NS') ||
        (nameOf(it).startsWith('ns.dns.') && typesOf(it.ours).join() === it.question.type))
  },
  {
    row: '`pod` below the clusterset zone: NXDOMAIN, since KEP-1645 knows no pods; there NODATA or answered',
    explains: (it) =>
      /(^|\.)pod\.clusterset\.local$/.test(nameOf(it)) && isDenial(it.ours) && it.theirs.rcode === 'NOERROR'
  },
  {
    row: '`pods verified`: a pod has the names of all its `podIPs`; there only of the first',
    explains: (it) =>
      isPod(nameOf(it)) &&
      it.zone.typesAt(nameOf(it)).includes('AAAA') &&
      typesOf(it.ours).join() === 'AAAA' &&
      isDenial(it.theirs)
  }
]

/** What of two answers differs; null where nothing does. */
export function differenceOf(ours: LiveReply, theirs: LiveReply): string | null {
  const shown = ({ rcode, answer, soa, isAuthoritative, ttlSeconds }: LiveReply): string =>
    [rcode, isAuthoritative ? 'AA' : '-', `${soa.length} SOA`, `TTL ${ttlSeconds}`, ...answer].join(' | ')
  const [one, other] = [shown(ours), shown(theirs)]
  return one === other ? null : `ours ${one}; theirs ${other}`
}
