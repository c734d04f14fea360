/** What is asked: each workload is a list of questions, how they are sent, and what a right answer looks like. */
import { RCODE } from '../src/wire/iana.ts'
import type { Expectation } from './ask.ts'
import { clusterIpServices, headlessServices, hostNameOf, zone, type BenchQuestion } from './dataset.ts'
import type { Transport } from './dnsperf.ts'

export type WorkloadId =
  | 'cluster-a'
  | 'headless'
  | 'headless-100'
  | 'srv'
  | 'nxdomain'
  | 'tcp'
  | 'tcp-once'
  | 'peered'
  | 'hits-80'
  | 'mirrored'
  | 'names-10k'
  | 'names-10k-zipf'
  | 'names-100k'
  | 'names-100k-zipf'

/** Queries offered each second. */
export type Rates = readonly [low: number, high: number]

export type Workload = Readonly<{
  id: WorkloadId
  title: string
  questions: readonly BenchQuestion[]
  expected: Expectation
  rates: Rates
  transport: Transport
  hasEdns: boolean
}>

export const namesPerWorkload = 200
const headlessEndpoints = 3
const manyEndpoints = 100
const manyEndpointServices = 20
/** Questions that are drawn by Zipf's law, whose first name is asked most. */
const zipfDraws = 200_000
/** A connection for each query: more a second and the client runs out of ports. */
const connectionRates: Rates = [1_000, 2_000]

/** Services of the asked cluster itself. */
export const ownServices = [
  ...clusterIpServices('bench', namesPerWorkload, 96),
  ...headlessServices('bench', namesPerWorkload, headlessEndpoints, 64),
  ...headlessServices('bench', manyEndpointServices, manyEndpoints, 65)
]

/** Services of the other cluster, in namespaces of their own. No cache keeps those of the last one. */
export const peeredServices = clusterIpServices('peered', namesPerWorkload, 97)
export const freshServices = clusterIpServices('fresh', 500, 98)
export const unkeptServices = clusterIpServices('unkept', namesPerWorkload, 99).map((service) => ({
  ...service,
  ttlSeconds: 0
}))

/** All that the other cluster has. */
export const servicesOfPeer = [...peeredServices, ...freshServices, ...unkeptServices]

export const peeredSuffixes = ['peered', 'fresh', 'unkept'].map((namespace) => `${namespace}.svc.${zone}`)

/** As many names as a large cluster has. */
export const manyServices = (count: number): ReturnType<typeof clusterIpServices> =>
  clusterIpServices('many', count, 100)

const hostsOf = (endpoints: number): string[] =>
  ownServices.filter((service) => service.endpoints.length === endpoints).map(hostNameOf)
const clusterIpHosts = hostsOf(0)
const addressOf = (name: string): BenchQuestion => ({ name, type: 'A' })

const oneAddress = { rcode: RCODE.NOERROR, answers: 1 }
const plain = { rates: [10_000, 30_000], transport: 'udp', hasEdns: false } as const

const clusterA: Workload = {
  ...plain,
  id: 'cluster-a',
  title: `Cluster zone: A of ${namesPerWorkload} Services`,
  questions: clusterIpHosts.map(addressOf),
  expected: oneAddress
}

export const clusterWorkloads: readonly Workload[] = [
  clusterA,
  {
    ...plain,
    id: 'headless',
    title: `Cluster zone: A of ${namesPerWorkload} headless Services, ${headlessEndpoints} addresses each`,
    questions: hostsOf(headlessEndpoints).map(addressOf),
    expected: { rcode: RCODE.NOERROR, answers: headlessEndpoints }
  },
  {
    ...plain,
    id: 'headless-100',
    title: `Cluster zone: A of ${manyEndpointServices} headless Services, ${manyEndpoints} addresses each, which fit no datagram`,
    questions: hostsOf(manyEndpoints).map(addressOf),
    expected: { rcode: RCODE.NOERROR, answers: null },
    hasEdns: true
  },
  {
    ...plain,
    id: 'srv',
    title: `Cluster zone: SRV of ${namesPerWorkload} Services`,
    questions: clusterIpHosts.map((host) => ({ name: `_http._tcp.${host}`, type: 'SRV' })),
    expected: oneAddress
  },
  {
    ...plain,
    id: 'nxdomain',
    title: `Cluster zone: NXDOMAIN for ${namesPerWorkload} names`,
    questions: clusterIpHosts.map((host) => addressOf(`no-${host}`)),
    expected: { rcode: RCODE.NXDOMAIN, answers: 0 }
  },
  { ...clusterA, id: 'tcp', title: 'Cluster zone over TCP: 20 connections that stay open', transport: 'tcp' },
  {
    ...clusterA,
    id: 'tcp-once',
    title: 'Cluster zone over TCP: a connection for each query',
    transport: 'tcp-once',
    rates: connectionRates
  }
]

const peered: Workload = {
  ...plain,
  id: 'peered',
  title: `Peered names from the cache: A of ${namesPerWorkload} Services of another cluster`,
  questions: peeredServices.map(hostNameOf).map(addressOf),
  expected: oneAddress
}
export const peeredWorkload = peered

export const peeredWorkloads: readonly Workload[] = [
  peered,
  {
    ...peered,
    id: 'hits-80',
    title: 'Peered names, 80 % from the cache: every fifth question has TTL 0 and is asked of the other cluster',
    questions: peered.questions.flatMap((question, at) =>
      at % 4 === 3 ? [question, addressOf(hostNameOf(unkeptServices[at]!))] : [question]
    )
  }
]

export const mirroredWorkload: Workload = {
  ...peered,
  id: 'mirrored',
  title: `Peered names from a copy of the zone: A of ${namesPerWorkload} Services of another cluster`
}

/** By size of the zone. */
export const manyNamesWorkloads: Readonly<Record<number, readonly Workload[]>> = Object.fromEntries(
  ([10_000, 100_000] as const).map((count) => {
    const names = manyServices(count).map(hostNameOf)
    const size = count === 10_000 ? '10k' : '100k'
    const common = { ...plain, expected: oneAddress }
    return [
      count,
      [
        {
          ...common,
          id: `names-${size}`,
          title: `${size} names, each as often`,
          questions: shuffled(names).map(addressOf)
        },
        {
          ...common,
          id: `names-${size}-zipf`,
          title: `${size} names, by Zipf's law`,
          questions: zipf(names).map(addressOf)
        }
      ]
    ]
  })
)

export const allWorkloads: readonly Workload[] = [
  ...clusterWorkloads,
  ...peeredWorkloads,
  mirroredWorkload,
  ...Object.values(manyNamesWorkloads).flat()
]

export const freshQuestions: readonly BenchQuestion[] = freshServices.map(hostNameOf).map(addressOf)

/** The same numbers in every run: a linear congruential generator (Numerical Recipes). */
function drawing(): () => number {
  let state = 1
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32
}

function shuffled(names: readonly string[]): string[] {
  const random = drawing()
  const mixed = [...names]
  for (let at = mixed.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1))
    ;[mixed[at], mixed[other]] = [mixed[other]!, mixed[at]!]
  }
  return mixed
}

/** The name at rank r with a share of 1/r: exponent 1, as DNS traffic mostly has. */
function zipf(names: readonly string[]): string[] {
  const random = drawing()
  let sum = 0
  const upTo = Float64Array.from(names, (_, at) => (sum += 1 / (at + 1)))
  return Array.from({ length: zipfDraws }, () => {
    const drawn = random() * sum
    let [low, high] = [0, upTo.length - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (upTo[middle]! < drawn) low = middle + 1
      else high = middle
    }
    return names[low]!
  })
}
