/** The observer from outside: starts it, and waits for what it tells. */
import { fork, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import type { FromObserver, Observation, ObservedServer, SetUpId, ToObserver } from './observations.ts'

export type TrialObservations = Readonly<Record<SetUpId, Observation>>
export type ObserverReport = Omit<Extract<FromObserver, { kind: 'stopped' }>, 'kind'>
export type JavaObservation = Readonly<{ trial: number; setUp: SetUpId; blackHoleMs: number }>

export class ObserverProcess {
  readonly java: JavaObservation[] = []
  readonly #child: ChildProcess
  readonly #observed = new Map<number, (observations: TrialObservations) => void>()
  readonly #ready = Promise.withResolvers<void>()
  readonly #stopped = Promise.withResolvers<ObserverReport>()

  private constructor() {
    this.#child = fork(join(import.meta.dirname, 'observer.ts'), { serialization: 'advanced' })
    this.#child.on('message', (message: FromObserver) => this.#take(message))
    this.#child.once('exit', (code) => {
      const error = new Error(`the observer ended (${code})`)
      this.#ready.reject(error)
      this.#stopped.reject(error)
    })
    this.#stopped.promise.catch(() => {})
  }

  static async start(servers: readonly ObservedServer[], names: readonly string[]): Promise<ObserverProcess> {
    const observer = new ObserverProcess()
    observer.#send({ kind: 'observe', servers, names })
    await observer.#ready.promise
    return observer
  }

  /** Resolves when all servers have given up the endpoint. */
  async watch(trial: number, name: string, address: string): Promise<TrialObservations> {
    this.#send({ kind: 'watch', trial, name, address })
    return new Promise((resolve) => this.#observed.set(trial, resolve))
  }

  killed(trial: number, atMs: number): void {
    this.#send({ kind: 'killed', trial, atMs })
  }

  async stop(): Promise<ObserverReport> {
    this.#send({ kind: 'stop' })
    const report = await this.#stopped.promise
    this.#child.disconnect()
    return report
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  #send(message: ToObserver): void {
    this.#child.send(message)
  }

  #take(message: FromObserver): void {
    switch (message.kind) {
      case 'ready':
        this.#ready.resolve()
        break
      case 'observed':
        this.#observed.get(message.trial)?.(message.bySetUp)
        this.#observed.delete(message.trial)
        break
      case 'java':
        this.java.push({ trial: message.trial, setUp: message.setUp, blackHoleMs: message.blackHoleMs })
        break
      case 'stopped':
        this.#stopped.resolve({ lag: message.lag, latency: message.latency })
        break
    }
  }
}
