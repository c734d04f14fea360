/** Watches the EndpointSlices of a namespace, to know when the controller had written what became of a pod. */
import { fork, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import type { Cluster } from '../../test/e2e/support/cluster.ts'

export type ToWatcher =
  | Readonly<{ kind: 'watch'; url: string; caFile: string; certFile: string; keyFile: string }>
  | Readonly<{ kind: 'expect'; service: string; address: string }>

/** `gone`: by `monotonicMs`. */
export type FromWatcher =
  Readonly<{ kind: 'ready' }> | Readonly<{ kind: 'gone'; service: string; address: string; atMs: number }>

/**
 * The watch runs in a process of its own, which does nothing else: the benchmark's is busy with changes and would look
 * late, by as much as peerdns may differ by.
 */
export class SliceWatch {
  readonly #child: ChildProcess
  /** By Service and address. */
  readonly #expected = new Map<string, (atMs: number) => void>()
  readonly #ready = Promise.withResolvers<void>()

  private constructor() {
    this.#child = fork(join(import.meta.dirname, 'slice-watcher.ts'), { serialization: 'advanced' })
    this.#child.on('message', (message: FromWatcher) => this.#take(message))
    this.#child.once('exit', (code) => this.#ready.reject(new Error(`the watcher of slices ended (${code})`)))
    this.#ready.promise.catch(() => {})
  }

  static async start({ baseUrl, ca, adminCertificate }: Cluster, namespace: string): Promise<SliceWatch> {
    const watch = new SliceWatch()
    const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?watch=true&timeoutSeconds=3600`
    const { certFile, keyFile } = adminCertificate
    watch.#send({ kind: 'watch', url: baseUrl + path, caFile: ca.caFile, certFile, keyFile })
    await watch.#ready.promise
    return watch
  }

  /** When the Service's slice no longer held the address as ready, by `monotonicMs`. */
  async goneFrom(service: string, address: string): Promise<number> {
    this.#send({ kind: 'expect', service, address })
    return new Promise((resolve) => this.#expected.set(`${service} ${address}`, resolve))
  }

  stop(): void {
    this.#child.kill('SIGKILL')
  }

  #send(message: ToWatcher): void {
    this.#child.send(message)
  }

  #take(message: FromWatcher): void {
    if (message.kind === 'ready') {
      this.#ready.resolve()
      return
    }
    const key = `${message.service} ${message.address}`
    this.#expected.get(key)?.(message.atMs)
    this.#expected.delete(key)
  }
}
