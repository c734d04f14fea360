/** Endpoints of other names that change all the while: pods get ready and unready at a steady rate. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { KubeApi } from '../../test/e2e/support/kube-api.ts'
import { busyName, namespace, podName, type ShopOptions } from './shop.ts'

export class Background {
  /** Changes that the API server took, and those that it did not. */
  changes = 0
  failures = 0
  readonly #api: KubeApi
  readonly #pods: readonly string[]
  readonly #unready = new Set<string>()
  readonly #end = new AbortController()
  readonly #ended: Promise<void>
  readonly #startedAtMs = performance.now()

  constructor(api: KubeApi, { busyServices, podsOfBusyService }: ShopOptions, perMinute: number) {
    this.#api = api
    this.#pods = Array.from({ length: busyServices * podsOfBusyService }, (_, number) =>
      podName(busyName(number % busyServices), Math.floor(number / busyServices))
    )
    this.#ended = perMinute === 0 || this.#pods.length === 0 ? Promise.resolve() : this.#run(60_000 / perMinute)
  }

  /** How many changes there were in a minute. */
  get perMinute(): number {
    return (this.changes / (performance.now() - this.#startedAtMs)) * 60_000
  }

  async stop(): Promise<void> {
    this.#end.abort()
    await this.#ended
  }

  async #run(everyMs: number): Promise<void> {
    const running = new Set<Promise<void>>()
    for (let number = 0; !this.#end.signal.aborted; number++) {
      await sleep(Math.max(0, this.#startedAtMs + number * everyMs - performance.now()))
      const change = this.#changeOne(this.#pods[number % this.#pods.length]!)
      running.add(change)
      void change.finally(() => running.delete(change))
    }
    await Promise.all(running)
  }

  async #changeOne(name: string): Promise<void> {
    const wasUnready = this.#unready.delete(name)
    if (!wasUnready) this.#unready.add(name)
    try {
      await this.#api.setPodReady({ namespace, name }, wasUnready)
      this.changes++
    } catch {
      this.failures++
    }
  }
}
