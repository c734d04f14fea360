/**
 * Kubernetes objects as short literals, zones built from them, and answers as lines of text.
 */
import { readFileSync } from 'node:fs'
import { parseAllDocuments } from 'yaml'
import { parseNetwork } from '../../src/base/network.ts'
import type { ClusterOptions } from '../../src/cluster/cluster-zones.ts'
import { ClusterZones } from '../../src/cluster/cluster-zones.ts'
import { eventForReduced } from '../../src/cluster/object-event.ts'
import type { ObjectEvent } from '../../src/cluster/object-event.ts'
import { reduceObject } from '../../src/cluster/objects.ts'
import { ipv4ToText, ipv6ToText } from '../../src/wire/address.ts'
import { parseType, RRTYPE, typeToText } from '../../src/wire/iana.ts'
import { nameToText, parseName } from '../../src/wire/name.ts'
import { readNameRdata, readSrv } from '../../src/wire/rdata.ts'
import type { Rdata, RRset } from '../../src/wire/rr.ts'
import type { ZoneStore } from '../../src/zone/zone-store.ts'
import { ManualClock } from '../support/manual-clock.ts'

export type Raw = Record<string, unknown>

export const ttlSeconds = 5

/** All documents of some YAML text, with the items of Lists in the place of the List. */
export function readYaml(text: string): Raw[] {
  const documents = parseAllDocuments(text).map((document) => document.toJS() as Raw | null)
  return documents.flatMap((document) => {
    if (document === null) return []
    return document['kind'] === 'List' ? (document['items'] as Raw[]) : [document]
  })
}

export const readYamlFile = (path: string): Raw[] => readYaml(readFileSync(path, 'utf8'))

/** The event that a source makes of an object, or none. */
export const eventsFor = (objects: readonly Raw[]): ObjectEvent[] =>
  objects.map((object) => eventForReduced(reduceObject(object))).filter((event) => event !== null)

export const defaultOptions: ClusterOptions = {
  clusterName: 'north',
  zone: parseName('cluster.local'),
  clustersetZone: parseName('clusterset.local'),
  ttlSeconds,
  pods: 'insecure',
  reverse: ['10.0.0.0/8', '172.16.0.0/12', 'fd00::/8', '2001:db8::/32'].map(parseNetwork),
  importsInZone: false,
  records: [],
  nsAddresses: ['192.0.2.53'],
  epoch: 'test'
}

export function zonesFor(objects: readonly Raw[], options: Partial<ClusterOptions> = {}): ClusterZones {
  const zones = new ClusterZones({ ...defaultOptions, ...options }, new ManualClock())
  zones.apply(eventsFor(objects), 0)
  return zones
}

export const zonesForYaml = (text: string, options: Partial<ClusterOptions> = {}): ClusterZones =>
  zonesFor(readYaml(text), options)

/** RDATA as text, for the types that the cluster's zones have. */
export function rdataText(type: number, rdata: Rdata): string {
  switch (type) {
    case RRTYPE.A:
      return ipv4ToText(rdata)
    case RRTYPE.AAAA:
      return ipv6ToText(rdata)
    case RRTYPE.SRV: {
      const { priority, weight, port, target } = readSrv(rdata)
      return `${priority} ${weight} ${port} ${nameToText(target)}`
    }
    case RRTYPE.TXT:
      return JSON.stringify(Buffer.from(rdata.subarray(1)).toString('latin1'))
    case RRTYPE.CNAME:
    case RRTYPE.NS:
    case RRTYPE.PTR:
      return nameToText(readNameRdata(rdata))
    default:
      return Buffer.from(rdata).toString('hex')
  }
}

/**
 * The answer to a question as sorted text: RDATA of each record, or `NODATA`, `NXDOMAIN`, `NOTZONE`. An alias is
 * `CNAME target`.
 */
export function ask(zones: ClusterZones, name: string, type: string): string[] {
  const qname = parseName(name)
  const found = zones.zones.find(qname)?.lookup(qname, parseType(type)!)
  if (found === undefined) return ['NOTZONE']
  if (found.kind === 'nodata' || found.kind === 'nxdomain') return [found.kind.toUpperCase()]
  const { rrset } = found
  const prefix = found.kind === 'alias' ? 'CNAME ' : ''
  return rrset.rdata.map((rdata) => prefix + rdataText(rrset.type, rdata)).sort()
}

/** The TTL of an answer; -1 where there is none. */
export function ttlOf(zones: ClusterZones, name: string, type: string): number {
  const qname = parseName(name)
  const found = zones.zones.find(qname)?.lookup(qname, parseType(type)!)
  return found?.kind === 'answer' ? found.rrset.ttlSeconds : -1
}

export const stateOf = (zones: ClusterZones, name: string): string | null =>
  zones.zone.serviceState(parseName(name)) ?? zones.clustersetZone.serviceState(parseName(name))

/** The name of an address's PTR record, by independent code. */
export function reverseNameOf(address: string): string {
  if (!address.includes(':')) return address.split('.').reverse().join('.') + '.in-addr.arpa.'
  const [head = '', tail] = address.split('::')
  const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'))
  const [left, right] = [groupsOf(head), groupsOf(tail ?? '')]
  const zeros = Array.from({ length: tail === undefined ? 0 : 8 - left.length - right.length }, () => '0')
  const nibbles = [...left, ...zeros, ...right].map((group) => group.padStart(4, '0')).join('')
  return Array.from(nibbles).reverse().join('.') + '.ip6.arpa.'
}

/** One line for each record of a zone, in order, without the SOA, whose serial follows from the history. */
export function recordLines(store: ZoneStore): string[] {
  const lineOf = (set: RRset, rdata: Rdata): string =>
    `${nameToText(set.owner)} ${set.ttlSeconds} ${typeToText(set.type)} ${rdataText(set.type, rdata)}`
  return [...store.records()]
    .filter((set) => set.type !== RRTYPE.SOA)
    .flatMap((set) => set.rdata.map((rdata) => lineOf(set, rdata)))
    .sort()
}
