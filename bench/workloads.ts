/** What is asked: each workload is a list of questions, and what a right answer looks like. */
import { RCODE } from '../src/wire/iana.ts'
import type { Expectation } from './ask.ts'
import { clusterIpServices, headlessServices, hostNameOf, zone, type BenchQuestion } from './dataset.ts'

export type WorkloadId = 'cluster-a' | 'headless' | 'srv' | 'nxdomain' | 'peered'

export type Workload = Readonly<{
  id: WorkloadId
  title: string
  questions: readonly BenchQuestion[]
  expected: Expectation
}>

export const namesPerWorkload = 200
const headlessEndpoints = 3

/** Services of the asked cluster itself. */
export const ownServices = [
  ...clusterIpServices('bench', namesPerWorkload, 96),
  ...headlessServices('bench', namesPerWorkload, headlessEndpoints, 64)
]

/** Services of the other cluster, in namespaces of their own. */
export const peeredServices = clusterIpServices('peered', namesPerWorkload, 97)
export const freshServices = clusterIpServices('fresh', 500, 98)

export const peeredSuffixes = [`peered.svc.${zone}`, `fresh.svc.${zone}`]

const clusterIpHosts = ownServices.filter(({ clusterIp }) => clusterIp !== null).map(hostNameOf)
const headlessHosts = ownServices.filter(({ clusterIp }) => clusterIp === null).map(hostNameOf)
const addressOf = (name: string): BenchQuestion => ({ name, type: 'A' })

export const clusterWorkloads: readonly Workload[] = [
  {
    id: 'cluster-a',
    title: `Cluster zone: A of ${namesPerWorkload} Services`,
    questions: clusterIpHosts.map(addressOf),
    expected: { rcode: RCODE.NOERROR, answers: 1 }
  },
  {
    id: 'headless',
    title: `Cluster zone: A of ${namesPerWorkload} headless Services, ${headlessEndpoints} addresses each`,
    questions: headlessHosts.map(addressOf),
    expected: { rcode: RCODE.NOERROR, answers: headlessEndpoints }
  },
  {
    id: 'srv',
    title: `Cluster zone: SRV of ${namesPerWorkload} Services`,
    questions: clusterIpHosts.map((host) => ({ name: `_http._tcp.${host}`, type: 'SRV' })),
    expected: { rcode: RCODE.NOERROR, answers: 1 }
  },
  {
    id: 'nxdomain',
    title: `Cluster zone: NXDOMAIN for ${namesPerWorkload} names`,
    questions: clusterIpHosts.map((host) => addressOf(`no-${host}`)),
    expected: { rcode: RCODE.NXDOMAIN, answers: 0 }
  }
]

export const peeredWorkload: Workload = {
  id: 'peered',
  title: `Peered names from the cache: A of ${namesPerWorkload} Services of another cluster`,
  questions: peeredServices.map(hostNameOf).map(addressOf),
  expected: { rcode: RCODE.NOERROR, answers: 1 }
}

export const freshQuestions: readonly BenchQuestion[] = freshServices.map(hostNameOf).map(addressOf)
