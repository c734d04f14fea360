/** What is asked: each workload is a list of questions, how they are sent, and what a right answer looks like. */
import { RCODE } from '../src/wire/iana.ts'
import { nameToText } from '../src/wire/name.ts'
import type { Expectation } from './ask.ts'
import { clusterIpServices, headlessServices, hostNameOf, zone, type BenchQuestion } from './dataset.ts'
import type { Transport } from './dnsperf.ts'
import { ownerOf } from './scale/objects.ts'

export type WorkloadId =
  | 'cluster-a'
  | 'cluster-a-10k'
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
  | 'names-200'
  | 'names-100k'
  | 'names-100k-zipf'
  | 'no-changes'
  | 'changes'
  | 'threads-0'
  | 'threads-1'
  | 'threads-2'
  | 'batching-auto'
  | 'batching-off'

export type Workload = Readonly<{
  id: WorkloadId
  title: string
  /** As a row of a table that has all of them. */
  shortTitle: string
  questions: readonly BenchQuestion[]
  expected: Expectation
  /** Queries offered each second. */
  rate: number
  /** Whether the most that is answered is measured too. */
  hasMaximum: boolean
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
const connectionsPerSecond = 2_000
const usualRate = 30_000
const lowRate = 10_000

/** Services of the asked cluster itself. */
export const ownServices = [
  ...clusterIpServices('bench', namesPerWorkload, 96),
  ...headlessServices('bench', namesPerWorkload, headlessEndpoints, 64),
  ...headlessServices('bench', manyEndpointServices, manyEndpoints, 65)
]

/** Services of the other cluster, in namespaces of their own. No cache keeps those of the last one. */
export const peeredServices = clusterIpServices('peered', namesPerWorkload, 97)
export const freshServices = clusterIpServices('fresh', 300, 98)
export const unkeptServices = clusterIpServices('unkept', namesPerWorkload, 99).map((service) => ({
  ...service,
  ttlSeconds: 0
}))

/** All that the other cluster has. */
export const servicesOfPeer = [...peeredServices, ...freshServices, ...unkeptServices]

export const peeredSuffixes = ['peered', 'fresh', 'unkept'].map((namespace) => `${namespace}.svc.${zone}`)

/** What the API server holds that changes: half of the Services are headless, and their endpoints change. */
export const changingServices = 1_000
export const changingEndpoints = 10
export const changesPerSecond = 500
// The first half has addresses that never change, the other one changes.
const changingHosts = Array.from({ length: namesPerWorkload }, (_, at) =>
  nameToText(ownerOf(at * (changingServices / namesPerWorkload) + (at % 2)))
)

/** As many names as a large cluster has. */
export const manyServices = (count: number): ReturnType<typeof clusterIpServices> =>
  clusterIpServices('many', count, 100)

const hostsOf = (endpoints: number): string[] =>
  ownServices.filter((service) => service.endpoints.length === endpoints).map(hostNameOf)
const clusterIpHosts = hostsOf(0)
const addressOf = (name: string): BenchQuestion => ({ name, type: 'A' })

const oneAddress = { rcode: RCODE.NOERROR, answers: 1 }
const plain = { rate: usualRate, hasMaximum: true, transport: 'udp', hasEdns: false } as const

const clusterA: Workload = {
  ...plain,
  id: 'cluster-a',
  title: `Cluster zone: A of ${namesPerWorkload} Services`,
  shortTitle: 'ClusterIP A',
  questions: clusterIpHosts.map(addressOf),
  expected: oneAddress
}

export const clusterWorkloads: readonly Workload[] = [
  clusterA,
  {
    ...clusterA,
    id: 'cluster-a-10k',
    title: `Cluster zone at 10,000 queries a second: A of ${namesPerWorkload} Services`,
    shortTitle: 'ClusterIP A at 10,000 q/s',
    rate: lowRate,
    hasMaximum: false
  },
  {
    ...plain,
    id: 'headless',
    title: `Cluster zone: A of ${namesPerWorkload} headless Services, ${headlessEndpoints} addresses each`,
    shortTitle: `headless A, ${headlessEndpoints} addresses`,
    questions: hostsOf(headlessEndpoints).map(addressOf),
    expected: { rcode: RCODE.NOERROR, answers: headlessEndpoints }
  },
  {
    ...plain,
    id: 'headless-100',
    title: `Cluster zone: A of ${manyEndpointServices} headless Services, ${manyEndpoints} addresses each, which fit no datagram`,
    shortTitle: `headless A, ${manyEndpoints} addresses`,
    questions: hostsOf(manyEndpoints).map(addressOf),
    expected: { rcode: RCODE.NOERROR, answers: null },
    hasEdns: true
  },
  {
    ...plain,
    id: 'srv',
    title: `Cluster zone: SRV of ${namesPerWorkload} Services`,
    shortTitle: 'SRV',
    questions: clusterIpHosts.map((host) => ({ name: `_http._tcp.${host}`, type: 'SRV' })),
    expected: oneAddress
  },
  {
    ...plain,
    id: 'nxdomain',
    title: `Cluster zone: NXDOMAIN for ${namesPerWorkload} names`,
    shortTitle: 'NXDOMAIN',
    questions: clusterIpHosts.map((host) => addressOf(`no-${host}`)),
    expected: { rcode: RCODE.NXDOMAIN, answers: 0 }
  },
  {
    ...clusterA,
    id: 'tcp',
    title: 'Cluster zone over TCP: 20 connections that stay open',
    shortTitle: 'TCP, connections stay open',
    transport: 'tcp'
  },
  {
    ...clusterA,
    id: 'tcp-once',
    title: 'Cluster zone over TCP: a connection for each query',
    shortTitle: 'TCP, a connection for each, 2,000 q/s',
    transport: 'tcp-once',
    rate: connectionsPerSecond
  }
]

const peered: Workload = {
  ...plain,
  id: 'peered',
  title: `Peered names from the cache: A of ${namesPerWorkload} Services of another cluster`,
  shortTitle: 'peered A, cached',
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
    shortTitle: 'peered A, 80 % cached',
    questions: peered.questions.flatMap((question, at) =>
      at % 4 === 3 ? [question, addressOf(hostNameOf(unkeptServices[at]!))] : [question]
    )
  }
]

export const mirroredWorkload: Workload = {
  ...peered,
  id: 'mirrored',
  title: `Peered names from a copy of the zone: A of ${namesPerWorkload} Services of another cluster`,
  shortTitle: 'peered A, mirrored'
}

/** What `names-100k` is measured against: a zone of these names alone, in the same rounds. */
export const fewNamesWorkload = {
  ...plain,
  id: 'names-200',
  title: `${namesPerWorkload} names, each as often, in turns with 100k`,
  shortTitle: `${namesPerWorkload} names, in turns with 100k`,
  questions: manyServices(namesPerWorkload).map(hostNameOf).map(addressOf),
  expected: oneAddress
} as const satisfies Workload

/** By size of the zone. */
export const manyNamesWorkloads: Readonly<Record<number, readonly Workload[]>> = Object.fromEntries(
  ([10_000, 100_000] as const).map((count) => {
    const names = manyServices(count).map(hostNameOf)
    const size = count === 10_000 ? '10k' : '100k'
    const common = { ...plain, expected: oneAddress }
    return [
      count,
      [
        ...(count === 100_000 ? [fewNamesWorkload] : []),
        {
          ...common,
          id: `names-${size}`,
          title: `${size} names, each as often`,
          shortTitle: `${size} names, each as often`,
          questions: shuffled(names).map(addressOf)
        },
        {
          ...common,
          id: `names-${size}-zipf`,
          title: `${size} names, by Zipf's law`,
          shortTitle: `${size} names, Zipf`,
          questions: zipf(names).map(addressOf)
        }
      ]
    ]
  })
)

/** peerdns' `threads`: 0 (one thread for everything), 1 and 2 that answer; and Unbound with 1 and 2; all on both cores. */
export const threadsWorkloads = [
  {
    ...clusterA,
    id: 'threads-0',
    title: 'ClusterIP A, `threads: 0`, two cores',
    shortTitle: '`threads: 0`, two cores'
  },
  {
    ...clusterA,
    id: 'threads-1',
    title: 'ClusterIP A, `threads: 1`, two cores',
    shortTitle: '`threads: 1`, two cores'
  },
  { ...clusterA, id: 'threads-2', title: 'ClusterIP A, `threads: 2`, two cores', shortTitle: '`threads: 2`, two cores' }
] as const satisfies readonly Workload[]

/** peerdns on `recvmmsg` and `sendmmsg`, and on plain node:dgram. */
export const batchingWorkloads = [
  {
    ...clusterA,
    id: 'batching-auto',
    title: 'ClusterIP A, datagrams in batches (`batching: auto`)',
    shortTitle: '`batching: auto`'
  },
  {
    ...clusterA,
    id: 'batching-off',
    title: 'ClusterIP A, datagrams one by one (`batching: off`)',
    shortTitle: '`batching: off`'
  }
] as const satisfies readonly Workload[]

const changing = {
  ...plain,
  questions: changingHosts.map(addressOf),
  expected: { rcode: RCODE.NOERROR, answers: null },
  hasMaximum: false
} as const
const ofChanging = `${namesPerWorkload} of ${changingServices} Services with ${changingServices * changingEndpoints} endpoints`

/** The same names on an API server that is quiet, and on one that tells changes of endpoints all the time. */
export const changesWorkloads = [
  {
    ...changing,
    id: 'no-changes',
    title: `On an API server without changes: A of ${ofChanging}`,
    shortTitle: 'live API server, no changes'
  },
  {
    ...changing,
    id: 'changes',
    title: `While ${changesPerSecond} endpoints change a second: A of ${ofChanging}`,
    shortTitle: `${changesPerSecond} endpoint changes/s`
  }
] as const satisfies readonly Workload[]

/** In the order in which reports show them. */
export const allWorkloads: readonly Workload[] = [
  ...clusterWorkloads,
  ...peeredWorkloads,
  mirroredWorkload,
  ...Object.values(manyNamesWorkloads).flat(),
  ...changesWorkloads,
  ...threadsWorkloads,
  ...batchingWorkloads
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
