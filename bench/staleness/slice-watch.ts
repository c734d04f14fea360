/** Watches the EndpointSlices of a namespace, to know when the controller had written what became of a pod. */
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import type { IncomingMessage } from 'node:http'
import type { V1EndpointSlice } from '@kubernetes/client-node'
import type { Cluster } from '../../test/e2e/support/cluster.ts'
import { monotonicMs } from './monotonic.ts'

type SliceEvent = Readonly<{ type: string; object: V1EndpointSlice }>

export class SliceWatch {
  readonly #response: IncomingMessage
  /** By Service and address. */
  readonly #expected = new Map<string, Map<string, (atMs: number) => void>>()
  #rest = ''

  private constructor(response: IncomingMessage) {
    this.#response = response
    response.setEncoding('utf8')
    response.on('data', (text: string) => this.#take(text))
    // A stream that breaks tells of nothing more: those trials have no such figure.
    response.on('error', () => {})
  }

  static async start(cluster: Cluster, namespace: string): Promise<SliceWatch> {
    const { certFile, keyFile } = cluster.adminCertificate
    const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?watch=true&timeoutSeconds=3600`
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const options = { ca: readFileSync(cluster.ca.caFile), cert: readFileSync(certFile), key: readFileSync(keyFile) }
      request(cluster.baseUrl + path, { ...options, agent: false }, resolve)
        .once('error', reject)
        .end()
    })
    return new SliceWatch(response)
  }

  /** When the Service's slice no longer held the address as ready, by `monotonicMs`. */
  async goneFrom(service: string, address: string): Promise<number> {
    return new Promise((resolve) => {
      let expected = this.#expected.get(service)
      if (expected === undefined) this.#expected.set(service, (expected = new Map()))
      expected.set(address, resolve)
    })
  }

  stop(): void {
    this.#response.destroy()
  }

  #take(text: string): void {
    const nowMs = monotonicMs()
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop()!
    for (const line of lines) this.#takeEvent(JSON.parse(line) as SliceEvent, nowMs)
  }

  #takeEvent({ type, object }: SliceEvent, nowMs: number): void {
    if (type !== 'MODIFIED') return
    const expected = this.#expected.get(object.metadata?.labels?.['kubernetes.io/service-name'] ?? '')
    for (const [address, resolve] of expected ?? []) {
      const isThere = object.endpoints?.some(
        ({ addresses, conditions }) => addresses.includes(address) && conditions?.ready === true
      )
      if (isThere === true) continue
      expected!.delete(address)
      resolve(nowMs)
    }
  }
}
