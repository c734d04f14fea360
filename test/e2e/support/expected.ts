/**
 * What a DNS server has to answer by what an API server holds: the Kubernetes DNS specification 1.1.0 and KEP-1645,
 * said once more in the plainest way, for tests only. Nothing of it is shared with src.
 */
import type { V1EndpointSlice, V1Namespace, V1Pod, V1Service } from '@kubernetes/client-node'
import type { KubeApi } from './kube-api.ts'
import { KubeApiError } from './kube-api.ts'
import type { KubeObject, ServiceImport } from './kinds.ts'
import type { LiveReply, Question } from './live-client.ts'

/** What an API server holds at a moment. */
export type World = Readonly<{
  namespaces: readonly V1Namespace[]
  services: readonly V1Service[]
  slices: readonly V1EndpointSlice[]
  imports: readonly ServiceImport[]
  pods: readonly V1Pod[]
}>

export async function readWorld(api: KubeApi): Promise<World> {
  // The versions show the same objects; a cluster may serve either, or none.
  const importsOrNone = async (...versions: readonly string[]): Promise<ServiceImport[]> => {
    for (const version of versions) {
      try {
        return await api.list('ServiceImport', { apiVersion: `multicluster.x-k8s.io/${version}` })
      } catch (error) {
        if (!(error instanceof KubeApiError && error.status === 404)) throw error
      }
    }
    return []
  }
  const [namespaces, services, slices, imports, pods] = await Promise.all([
    api.list('Namespace'),
    api.list('Service'),
    api.list('EndpointSlice'),
    importsOrNone('v1beta1', 'v1alpha1'),
    api.list('Pod')
  ])
  return { namespaces, services, slices, imports, pods }
}

export type ZoneRules = Readonly<{
  /** Fills in the cluster of imported slices that do not say theirs. */
  clusterName: string
  importsInZone: boolean
  pods: 'insecure' | 'verified'
}>

export type Expected = Readonly<{
  /** `absent` is NXDOMAIN; without data it is NODATA. */
  isAbsent: boolean
  /** `owner TYPE data`, sorted. */
  answer: readonly string[]
}>

const zone = 'cluster.local'
const clustersetZone = 'clusterset.local'
const serviceLabel = 'kubernetes.io/service-name'
const importLabel = 'multicluster.kubernetes.io/service-name'
const clusterLabel = 'multicluster.kubernetes.io/source-cluster'

/** Questions that every name is asked. */
export const askedTypes = ['A', 'AAAA', 'SRV', 'TXT']

export type EndpointNow = Readonly<{
  address: string
  host: string
  ports: readonly Readonly<{ name: string; protocol: string; port: number }>[]
  cluster: string
  isReady: boolean
}>

/** All names and records that a world means, as one table. */
export class ExpectedZone {
  /** Records by owner, then type. */
  readonly #records = new Map<string, Map<string, Set<string>>>()
  readonly #names = new Set<string>()
  /** Names of Services whose slices hold nobody who is ready or serves. */
  readonly #emptyServices = new Set<string>()
  readonly #unready = new Map<string, 'published' | 'serving'>()
  readonly #world: World
  readonly #rules: ZoneRules

  constructor(world: World, rules: ZoneRules) {
    this.#world = world
    this.#rules = rules
    for (const apex of ['svc', 'pod']) this.#addName(`${apex}.${zone}`)
    this.#addName(`svc.${clustersetZone}`)
    for (const { metadata } of world.namespaces) this.#addNamespace(metadata?.name ?? '')
    for (const service of world.services) this.#addService(service)
    for (const serviceImport of world.imports) this.#addImport(serviceImport)
    if (rules.pods === 'verified') for (const pod of world.pods) this.#addPod(pod)
  }

  /** Every name below the zones, those between others too; in reverse zones only whole addresses. */
  get owners(): string[] {
    return [...this.#names].filter(
      (name) =>
        name.endsWith(`.svc.${zone}`) ||
        name.endsWith(`.pod.${zone}`) ||
        name.endsWith(`.svc.${clustersetZone}`) ||
        this.#records.has(name)
    )
  }

  has(name: string): boolean {
    return this.#names.has(name)
  }

  /** Whether all endpoints of the Service that the name belongs to are gone, though it has slices. */
  isEmptyService(name: string): boolean {
    return this.#emptyServices.has(serviceOf(name))
  }

  /** Types that the name has records of; none for a name between others. */
  typesAt(name: string): string[] {
    return [...(this.#records.get(name)?.keys() ?? [])]
  }

  /** Why a Service gives out endpoints that are not ready; null where it gives out none. */
  unreadyReasonOf(name: string): 'published' | 'serving' | null {
    return this.#unready.get(serviceOf(name)) ?? null
  }

  /** @param before aliases on the way here: each is given once, and a loop ends there. */
  lookup({ name, type }: Question, before: readonly string[] = []): Expected {
    if (!this.has(name)) return { isAbsent: true, answer: [] }
    const sets = this.#records.get(name)
    const recordsOf = (shown: string) => [...(sets?.get(shown) ?? [])].map((text) => `${name} ${shown} ${text}`)
    const [target] = sets?.get('CNAME') ?? []
    if (target === undefined) return { isAbsent: false, answer: recordsOf(type).sort() }
    // What lies outside of the zones is for others to find.
    const isFollowed = type !== 'CNAME' && inZones(target) && target !== name && !before.includes(target)
    const end = isFollowed ? this.lookup({ name: target, type }, [...before, name]) : { isAbsent: false, answer: [] }
    return { isAbsent: end.isAbsent, answer: [...recordsOf('CNAME'), ...end.answer].sort() }
  }

  #add(owner: string, type: string, data: string): void {
    const sets = this.#records.get(owner) ?? new Map<string, Set<string>>()
    this.#records.set(owner, sets)
    sets.set(type, (sets.get(type) ?? new Set()).add(data))
    this.#addName(owner)
  }

  /** A name exists, and so does everything above it. RFC 8020. */
  #addName(name: string): void {
    for (let rest = name; rest !== ''; rest = rest.includes('.') ? rest.slice(rest.indexOf('.') + 1) : '') {
      this.#names.add(rest)
    }
  }

  #addNamespace(namespace: string): void {
    for (const parent of [`svc.${zone}`, `pod.${zone}`, `svc.${clustersetZone}`]) {
      this.#addName(`${namespace}.${parent}`)
    }
  }

  #addAddress(owner: string, address: string): void {
    this.#add(owner, address.includes(':') ? 'AAAA' : 'A', address)
  }

  /** SRV at the port's name and at the plain one; weights are shared out at the end of the set. */
  #addPorts(
    owner: string,
    ports: readonly Readonly<{ name?: string; protocol?: string; port: number }>[],
    target: string
  ): void {
    for (const { name = '', protocol = 'TCP', port } of ports) {
      this.#add(owner, 'SRV', `${port} ${target}`)
      if (name !== '') this.#add(`_${name}._${protocol.toLowerCase()}.${owner}`, 'SRV', `${port} ${target}`)
    }
  }

  #addService({ metadata, spec }: V1Service): void {
    const [name, namespace] = [metadata?.name ?? '', metadata?.namespace ?? '']
    const owner = `${name}.${namespace}.svc.${zone}`
    if (spec?.type === 'ExternalName') {
      this.#add(owner, 'CNAME', (spec.externalName ?? '').toLowerCase().replace(/\.$/, ''))
      return
    }
    const slices = this.#world.slices.filter(
      (slice) => slice.metadata?.namespace === namespace && slice.metadata.labels?.[serviceLabel] === name
    )
    const publishesAll =
      spec?.publishNotReadyAddresses === true ||
      metadata?.annotations?.['service.alpha.kubernetes.io/tolerate-unready-endpoints'] === 'true'
    const endpoints = publishedEndpoints(slices, publishesAll)
    if (endpoints.some(({ isReady }) => !isReady)) this.#unready.set(owner, publishesAll ? 'published' : 'serving')
    if (slices.length > 0 && endpoints.length === 0) this.#emptyServices.add(owner)
    const isHeadless = spec?.clusterIP === 'None'
    // A headless Service without endpoints is NXDOMAIN.
    if (!isHeadless) this.#addName(owner)
    const addresses = isHeadless ? [] : (spec?.clusterIPs ?? []).map(canonical)
    for (const address of addresses) {
      this.#addAddress(owner, address)
      this.#add(reverseNameOf(address), 'PTR', owner)
    }
    if (!isHeadless) this.#addPorts(owner, spec?.ports ?? [], owner)
    for (const { address, host, ports } of endpoints) {
      const hostName = `${host}.${owner}`
      this.#addAddress(hostName, address)
      this.#add(reverseNameOf(address), 'PTR', hostName)
      if (!isHeadless) continue
      this.#addAddress(owner, address)
      this.#addPorts(owner, ports, hostName)
    }
  }

  #addImport({ metadata, spec }: ServiceImport): void {
    const [name, namespace] = [metadata?.name ?? '', metadata?.namespace ?? '']
    const { ports } = spec
    const ips = (spec.ips ?? []).map(canonical)
    const owners = [`${name}.${namespace}.svc.${clustersetZone}`]
    const isService = this.#world.services.some(
      (it) => it.metadata?.name === name && it.metadata.namespace === namespace
    )
    if (this.#rules.importsInZone && !isService && ips.length > 0) owners.push(`${name}.${namespace}.svc.${zone}`)
    for (const owner of owners) {
      if (spec.type !== 'Headless') this.#addName(owner)
      for (const address of spec.type === 'Headless' ? [] : ips) this.#addAddress(owner, address)
      // Without an address there is nothing to connect to.
      if (spec.type !== 'Headless' && ips.length > 0) this.#addPorts(owner, ports, owner)
    }
    // The nearer name speaks for the address.
    for (const address of spec.type === 'Headless' ? [] : ips) this.#addPointer(address, owners.at(-1)!)
    if (spec.type !== 'Headless') return
    const [owner] = owners as [string]
    const slices = this.#world.slices.filter(
      (slice) => slice.metadata?.namespace === namespace && slice.metadata.labels?.[importLabel] === name
    )
    for (const { address, host, ports, cluster } of publishedEndpoints(slices, false)) {
      const hostName = `${host}.${cluster === '' ? this.#rules.clusterName : cluster}.${owner}`
      this.#addAddress(owner, address)
      this.#addAddress(hostName, address)
      this.#addPorts(owner, ports, hostName)
      this.#addPointer(address, hostName)
    }
  }

  /** Only where no Service has the address: of imports and Services the latter speak. */
  #addPointer(address: string, target: string): void {
    const owner = reverseNameOf(address)
    const others = [...(this.#records.get(owner)?.get('PTR') ?? [])]
    if (others.every((other) => other.endsWith(clustersetZone))) this.#add(owner, 'PTR', target)
  }

  #addPod({ metadata, status }: V1Pod): void {
    if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return
    const addresses = new Set([status?.podIP, ...(status?.podIPs ?? []).map(({ ip }) => ip)])
    for (const text of addresses) {
      if (text === undefined || text === '') continue
      const address = canonical(text)
      this.#addAddress(`${dashed(address)}.${metadata?.namespace}.pod.${zone}`, address)
    }
  }
}

/** The Service that a name of it belongs to; for other names themselves. */
export const serviceOf = (name: string): string => name.split('.').slice(-5).join('.')

const inZones = (name: string): boolean => [zone, clustersetZone].some((apex) => name.endsWith(`.${apex}`))

/**
 * Who is given out: the ready, or all of them where the Service says so; where nobody is ready, those that still serve.
 */
export function publishedEndpoints(slices: readonly V1EndpointSlice[], publishesAll: boolean): EndpointNow[] {
  const all = slices.flatMap(({ endpoints, ports, addressType, metadata }) =>
    // The API server says null for none.
    ((endpoints as typeof endpoints | null) ?? []).flatMap(({ addresses, hostname, conditions }) =>
      addressType === 'FQDN'
        ? []
        : addresses.map(canonical).map((address) => ({
            address,
            host: hostname ?? dashed(address),
            ports: (ports ?? []).map(({ name = '', protocol = 'TCP', port = 0 }) => ({ name, protocol, port })),
            cluster: metadata?.labels?.[clusterLabel] ?? '',
            isReady: conditions?.ready ?? true,
            isServing: conditions?.serving ?? conditions?.ready ?? true
          }))
    )
  )
  const ready = all.filter(({ isReady }) => isReady || publishesAll)
  return ready.length > 0 ? ready : all.filter(({ isServing }) => isServing)
}

/** An address as RFC 5952 writes it: kwok's IPv6 addresses end in an IPv4 one. */
const canonical = (address: string): string =>
  address.includes(':') ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address

/** `10-0-0-7`, `fd00--a`; a label may not end in a dash, so a zero stands there. */
export function dashed(address: string): string {
  return address.replace(/[.:]/g, '-').replace(/-$/, '-0')
}

/** Whether these workloads have all their pods, and those have their addresses. */
export function podsAreUp({ pods }: World, workloads: readonly KubeObject[]): boolean {
  const wanted = workloads.reduce((sum, { spec }) => sum + (spec as { replicas: number }).replicas, 0)
  return pods.length === wanted && pods.every(({ status }) => status?.podIP !== undefined)
}

/** The owner of an address's PTR record. */
export function reverseNameOf(address: string): string {
  if (!address.includes(':')) return `${address.split('.').reverse().join('.')}.in-addr.arpa`
  const [head = '', tail] = address.split('::')
  const groupsOf = (text: string | undefined) => (text === undefined || text === '' ? [] : text.split(':'))
  const [first, last] = [groupsOf(head), groupsOf(tail)]
  const groups = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => '0'), ...last]
  const digits = groups.map((group) => group.padStart(4, '0')).join('')
  return `${digits.split('').reverse().join('.')}.ip6.arpa`
}

/** The answer as `Expected` has it: SRV without priority and weight, whose sum is checked by `weightProblem`. */
export function shownAnswer({ answer }: LiveReply): string[] {
  return answer.map((line) => line.replace(/ SRV \d+ \d+ /i, ' SRV ')).sort()
}

/** What is wrong with an answer; null for nothing. */
export function difference(question: Question, expected: Expected, reply: LiveReply): string | null {
  const rcode = expected.isAbsent ? 'NXDOMAIN' : 'NOERROR'
  const found = shownAnswer(reply)
  const shown = (code: string, lines: readonly string[]) => [code, ...lines].join(' | ')
  if (reply.rcode !== rcode || found.join() !== expected.answer.join()) {
    return `${question.name} ${question.type}: expected ${shown(rcode, expected.answer)}, found ${shown(reply.rcode, found)}`
  }
  if (found.length === 0 && reply.soa.length !== 1) return `${question.name} ${question.type}: ${rcode} without its SOA`
  return weightProblem(reply)
}

/** SRV weights are floor(100 / records), at least 1, at priority 0. */
function weightProblem({ answer }: LiveReply): string | null {
  const records = answer.filter((line) => line.split(' ')[1] === 'SRV')
  const weight = Math.max(1, Math.floor(100 / records.length))
  const wrong = records.find((line) => !line.includes(` SRV 0 ${weight} `))
  return wrong === undefined ? null : `${wrong}: expected weight ${weight}`
}
