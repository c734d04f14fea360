/** Service and ServiceImport, reduced to what DNS needs. */
import { parseEndpointCheck } from '../base/endpoint-check.ts'
import { TextError } from '../base/errors.ts'
import { maxObjectTtlSeconds, sharedPortLists } from '../base/limits.ts'
import { parseDurationMs } from '../base/quantity.ts'
import { maxNameOctets, parseName } from '../wire/name.ts'
import type { DomainName } from '../wire/name.ts'
import { canonicalAddress } from './address.ts'
import {
  asFields,
  asLabel,
  asText,
  field,
  fieldsAt,
  flagAt,
  listAt,
  numberAt,
  ObjectError,
  textAt
} from './object-fields.ts'
import type { Fields } from './object-fields.ts'

export type Protocol = 'tcp' | 'udp' | 'sctp'

/** `name` is '' for an unnamed port; `port` is 0 where none is given. Names and protocols are in lower case. */
export type Port = Readonly<{ name: string; protocol: Protocol; port: number }>

export type Service = Readonly<{
  kind: 'Service'
  namespace: string
  name: string
  serviceType: 'clusterIP' | 'headless' | 'externalName'
  /** In canonical spelling; none for a headless Service, or where none was allocated. */
  clusterIPs: readonly string[]
  /** Where a load balancer in front of it listens; none where there is none. In canonical spelling. */
  loadBalancerIPs: readonly string[]
  /** The name of that load balancer where it has no address. */
  loadBalancerName: DomainName | null
  /** Where the CNAME points; null unless the type is externalName. */
  externalName: DomainName | null
  ports: readonly Port[]
  /** publishNotReadyAddresses, or its old annotation: every endpoint counts as ready. */
  publishesNotReady: boolean
  /** Whether the Service says by its label that it is the cluster's DNS. */
  isClusterDns: boolean
  /** From the annotation `peerdns.io/ttl`; null: the zone's own TTL. */
  ttlSeconds: number | null
  /** How its virtual addresses are checked, from the annotation `peerdns.io/probe`; null: they are not. */
  check: string | null
}>

export type ServiceImport = Readonly<{
  kind: 'ServiceImport'
  namespace: string
  name: string
  importType: 'clusterSetIP' | 'headless'
  /** In canonical spelling. */
  ips: readonly string[]
  ports: readonly Port[]
  ttlSeconds: number | null
  check: string | null
}>

export const ttlAnnotation = 'peerdns.io/ttl'
export const probeAnnotation = 'peerdns.io/probe'
export const tolerateUnreadyAnnotation = 'service.alpha.kubernetes.io/tolerate-unready-endpoints'
/** Its value `kube-dns` marks the cluster's DNS. */
export const clusterDnsLabel = 'k8s-app'

/** An address in canonical spelling. @throws ObjectError */
export function asAddress(value: unknown, path: string): string {
  const text = asText(value, path)
  const address = canonicalAddress(text)
  if (address === null) throw new ObjectError(path, `not an IP address: ${text.slice(0, 64)}`)
  return address
}

function asProtocol(text: string, path: string): Protocol {
  switch (text.toLowerCase()) {
    case '':
    case 'tcp':
      return 'tcp'
    case 'udp':
      return 'udp'
    case 'sctp':
      return 'sctp'
    default:
      throw new ObjectError(path, `expected TCP, UDP or SCTP, found ${text.slice(0, 64)}`)
  }
}

/** The ports of a Service, a ServiceImport, an EndpointSlice or a subset of Endpoints: all have the same fields. */
/** Lists of ports that were seen, by what they say: most objects of a cluster have one of a few. */
const knownPorts = new Map<string, readonly Port[]>()

/** A list that says the same and is held already, if there is one. */
function sharedPorts(ports: readonly Port[]): readonly Port[] {
  const key = ports.map(({ name, protocol, port }) => `${name} ${protocol} ${port}`).join()
  const known = knownPorts.get(key)
  if (known !== undefined) return known
  if (knownPorts.size >= sharedPortLists) knownPorts.clear()
  knownPorts.set(key, ports)
  return ports
}

export function portsAt(fields: Fields, path: string): readonly Port[] {
  const ports = listAt(fields, 'ports', path).map((entry, index): Port => {
    const at = `${path}ports[${index}]`
    const port = asFields(entry, at)
    const name = textAt(port, 'name', at + '.')
    return {
      name: name === '' ? '' : asLabel(name, at + '.name'),
      protocol: asProtocol(textAt(port, 'protocol', at + '.'), at + '.protocol'),
      port: numberAt(port, 'port', 65_535, at + '.') ?? 0
    }
  })
  return sharedPorts(ports)
}

type Annotated = Readonly<{ ttlSeconds: number | null; check: string | null; warning: string | null }>

/** What annotations ask for, or why one is passed over: a wrong one is no reason to drop a Service. */
function readAnnotations(annotations: Fields): Annotated {
  const ttl = annotatedTtl(field(annotations, ttlAnnotation))
  const probe = annotatedCheck(field(annotations, probeAnnotation))
  const warnings = [ttl.warning, probe.warning].filter((warning) => warning !== null)
  return { ttlSeconds: ttl.ttlSeconds, check: probe.check, warning: warnings.join('; ') || null }
}

function annotatedTtl(value: unknown): { ttlSeconds: number | null; warning: string | null } {
  if (value === undefined) return { ttlSeconds: null, warning: null }
  const seconds = typeof value === 'string' ? secondsOf(value) : null
  if (seconds !== null && seconds <= maxObjectTtlSeconds) return { ttlSeconds: seconds, warning: null }
  const wanted = `whole seconds such as 10s, at most ${maxObjectTtlSeconds}s`
  return { ttlSeconds: null, warning: `annotation ${ttlAnnotation} is passed over: expected ${wanted}` }
}

function annotatedCheck(value: unknown): { check: string | null; warning: string | null } {
  if (value === undefined) return { check: null, warning: null }
  try {
    if (typeof value === 'string' && parseEndpointCheck(value).port > 0) return { check: value, warning: null }
  } catch (error) {
    if (!(error instanceof TextError)) throw error
  }
  const wanted = 'tcp:8080, http:8080/healthz or the like'
  return { check: null, warning: `annotation ${probeAnnotation} is passed over: expected ${wanted}` }
}

function secondsOf(text: string): number | null {
  try {
    const seconds = parseDurationMs(text) / 1000
    return Number.isInteger(seconds) ? seconds : null
  } catch (error) {
    if (error instanceof TextError) return null
    throw error
  }
}

/**
 * The name that an ExternalName Service points to. An address in the text is a name of digits, as the API has it.
 * @throws ObjectError
 */
function asExternalName(text: string): DomainName {
  const path = 'spec.externalName'
  if (text === '') throw new ObjectError(path, 'missing')
  const isHostname = /^([a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?\.?$/i.test(text)
  // The text of a name has one octet less than its wire form, the last dot included.
  if (!isHostname || text.length > maxNameOctets - (text.endsWith('.') ? 1 : 2)) {
    throw new ObjectError(path, `expected a host name, found ${text.slice(0, 64)}`)
  }
  return parseName(text)
}

/** The addresses of `clusterIPs`, or of `clusterIP` alone as old objects have it; 'None' anywhere means headless. */
function clusterAddresses(spec: Fields): { isHeadless: boolean; clusterIPs: readonly string[] } {
  const texts: { text: string; path: string }[] = []
  for (const [index, value] of listAt(spec, 'clusterIPs', 'spec.').entries()) {
    const path = `spec.clusterIPs[${index}]`
    texts.push({ text: asText(value, path), path })
  }
  texts.push({ text: textAt(spec, 'clusterIP', 'spec.'), path: 'spec.clusterIP' })
  const isHeadless = texts.some(({ text }) => text === 'None')
  const clusterIPs = new Set<string>()
  for (const { text, path } of texts) {
    if (text !== '' && text !== 'None') clusterIPs.add(asAddress(text, path))
  }
  return { isHeadless, clusterIPs: isHeadless ? [] : [...clusterIPs] }
}

const noLoadBalancer = { loadBalancerIPs: [] as readonly string[], loadBalancerName: null }

/** What `status.loadBalancer` says. A value that is none is no reason to drop the Service. */
function loadBalancerOf(object: Fields): Pick<Service, 'loadBalancerIPs' | 'loadBalancerName'> {
  const status = field(object, 'status')
  if (status === undefined) return noLoadBalancer
  try {
    const ingress = listAt(
      fieldsAt(asFields(status, 'status'), 'loadBalancer', 'status.'),
      'ingress',
      'status.loadBalancer.'
    )
    if (ingress.length === 0) return noLoadBalancer
    const entries = ingress.map((entry) => asFields(entry, 'status.loadBalancer.ingress'))
    const ips = entries.map((entry) => canonicalAddress(textAt(entry, 'ip', ''))).filter((ip) => ip !== null)
    const name = entries.map((entry) => textAt(entry, 'hostname', '')).find((hostname) => hostname !== '')
    return { loadBalancerIPs: [...new Set(ips)], loadBalancerName: name === undefined ? null : asExternalName(name) }
  } catch (error) {
    if (error instanceof ObjectError) return noLoadBalancer
    throw error
  }
}

export function reduceService(
  object: Fields,
  namespace: string,
  name: string
): { ok: Service; warning: string | null } {
  const metadata = fieldsAt(object, 'metadata', '')
  const annotations = fieldsAt(metadata, 'annotations', 'metadata.')
  const labels = fieldsAt(metadata, 'labels', 'metadata.')
  const spec = fieldsAt(object, 'spec', '')
  const type = textAt(spec, 'type', 'spec.')
  if (!['', 'ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'].includes(type)) {
    throw new ObjectError('spec.type', `unknown: ${type.slice(0, 64)}`)
  }
  const isExternal = type === 'ExternalName'
  const { isHeadless, clusterIPs } = isExternal ? { isHeadless: false, clusterIPs: [] } : clusterAddresses(spec)
  const { ttlSeconds, check, warning } = readAnnotations(annotations)
  const service: Service = {
    kind: 'Service',
    namespace,
    name,
    serviceType: isExternal ? 'externalName' : isHeadless ? 'headless' : 'clusterIP',
    clusterIPs,
    ...loadBalancerOf(object),
    externalName: isExternal ? asExternalName(textAt(spec, 'externalName', 'spec.')) : null,
    ports: portsAt(spec, 'spec.'),
    publishesNotReady:
      flagAt(spec, 'publishNotReadyAddresses', 'spec.') === true ||
      field(annotations, tolerateUnreadyAnnotation) === 'true',
    isClusterDns: field(labels, clusterDnsLabel) === 'kube-dns',
    ttlSeconds,
    check
  }
  return { ok: service, warning }
}

export function reduceServiceImport(
  object: Fields,
  namespace: string,
  name: string
): { ok: ServiceImport; warning: string | null } {
  const metadata = fieldsAt(object, 'metadata', '')
  const { ttlSeconds, check, warning } = readAnnotations(fieldsAt(metadata, 'annotations', 'metadata.'))
  // Versions differ in whether these fields stand below spec or beside it.
  const spec = fieldsAt(object, 'spec', '')
  const holder = (key: string): [Fields, string] => (field(spec, key) === undefined ? [object, ''] : [spec, 'spec.'])
  const [ipsHolder, ipsPath] = holder('ips')
  const ips = listAt(ipsHolder, 'ips', ipsPath).map((value, index) => asAddress(value, `${ipsPath}ips[${index}]`))
  const [typeHolder, typePath] = holder('type')
  const type = textAt(typeHolder, 'type', typePath)
  if (!['', 'ClusterSetIP', 'Headless'].includes(type)) {
    throw new ObjectError(typePath + 'type', `expected ClusterSetIP or Headless, found ${type.slice(0, 64)}`)
  }
  const isHeadless = type === 'Headless'
  const serviceImport: ServiceImport = {
    kind: 'ServiceImport',
    namespace,
    name,
    importType: isHeadless ? 'headless' : 'clusterSetIP',
    ips: isHeadless ? [] : [...new Set(ips)],
    ports: portsAt(...holder('ports')),
    ttlSeconds,
    check
  }
  return { ok: serviceImport, warning }
}
