/**
 * What runs in cluster A: headless Services whose endpoints die one by one, and others whose endpoints change all the
 * time.
 */
import type { Cluster } from '../../test/e2e/support/cluster.ts'
import { eventually } from '../../test/e2e/support/eventually.ts'
import type { KubeApi } from '../../test/e2e/support/kube-api.ts'
import type { KubeObject } from '../../test/e2e/support/kinds.ts'

export const namespace = 'backend'
export const suffix = `${namespace}.svc.cluster.local`
/** A node has room for 254 pods. */
export const podsOfNode = 200
const atOnce = 16

export const serviceName = (number: number): string => `service-${number}`
export const questionName = (number: number): string => `${serviceName(number)}.${suffix}`
export const podName = (service: string, at: number): string => `${service}-${at}`

export type ShopOptions = Readonly<{
  /** Services whose endpoints die. */
  services: number
  podsOfService: number
  /** Services that change in the background. */
  busyServices: number
  podsOfBusyService: number
}>

export const nodesFor = ({ services, podsOfService, busyServices, podsOfBusyService }: ShopOptions): number =>
  Math.ceil((services * podsOfService + busyServices * podsOfBusyService) / podsOfNode)

export const busyName = (number: number): string => `busy-${number}`

const serviceObject = (name: string): KubeObject & { spec: object } => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace },
  spec: {
    clusterIP: 'None',
    selector: { app: name },
    ports: [{ name: 'http', port: 8080, protocol: 'TCP', targetPort: 8080 }]
  }
})

const podObject = (service: string, at: number, nodeName: string): KubeObject & { spec: object } => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: podName(service, at), namespace, labels: { app: service } },
  spec: { nodeName, containers: [{ name: 'http', image: 'example.org/http' }] }
})

/** Makes them all, and gives the pods' addresses by name once every pod is ready and in its slice. */
export async function openShop(cluster: Cluster, options: ShopOptions): Promise<ReadonlyMap<string, string>> {
  const { api } = cluster
  await api.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
  const names = [
    ...Array.from({ length: options.services }, (_, number) => [serviceName(number), options.podsOfService] as const),
    ...Array.from(
      { length: options.busyServices },
      (_, number) => [busyName(number), options.podsOfBusyService] as const
    )
  ]
  await createAll(
    api,
    names.map(([name]) => serviceObject(name))
  )
  const pods = names.flatMap(([name, count]) => Array.from({ length: count }, (_, at) => [name, at] as const))
  await createAll(
    api,
    pods.map(([name, at], number) => podObject(name, at, `${cluster.name}-node-${1 + Math.floor(number / podsOfNode)}`))
  )
  const wait = { timeoutMs: 120_000, everyMs: 1_000 }
  await eventually(async () => {
    const slices = await api.list('EndpointSlice', { namespace })
    const ready = slices.flatMap(({ endpoints }) => endpoints).filter((one) => one?.conditions?.ready === true)
    if (ready.length < pods.length) throw new Error(`${ready.length} of ${pods.length} endpoints are ready`)
  }, wait)
  const made = await api.list('Pod', { namespace })
  return new Map(made.map(({ metadata, status }) => [metadata!.name!, status!.podIP!]))
}

async function createAll(api: KubeApi, objects: readonly KubeObject[]): Promise<void> {
  const rest = objects.values()
  const createRest = async (): Promise<void> => {
    for (const object of rest) await api.create(object)
  }
  await Promise.all(Array.from({ length: atOnce }, createRest))
}
