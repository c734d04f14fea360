/** Asks a few questions over and over beside a fault, and keeps every answer that is not the one from before it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { LiveClient, type LiveReply, type Question } from './live-client.ts'
import type { LiveServer } from './live-server.ts'

const everyMs = 100

export class Steady {
  readonly #client: LiveClient
  readonly #questions: readonly Question[]
  readonly #deviations = new Map<string, number>()
  #asked = 0
  #isStopped = false
  #running: Promise<void> = Promise.resolve()

  private constructor(server: LiveServer, questions: readonly Question[]) {
    this.#client = new LiveClient(server.port)
    this.#questions = questions
  }

  /** What is answered now is what has to be answered until `stop`. */
  static async start(server: LiveServer, questions: readonly Question[]): Promise<Steady> {
    const steady = new Steady(server, questions)
    const wanted = await steady.#client.askAll(questions)
    steady.#running = steady.#run(wanted.map(textOf))
    return steady
  }

  /** How many answers there were, and those that differed, each with its number. */
  async stop(): Promise<{ asked: number; deviations: string[] }> {
    this.#isStopped = true
    await this.#running
    this.#client.close()
    return { asked: this.#asked, deviations: [...this.#deviations].map(([text, times]) => `${text}, ${times} times`) }
  }

  async #run(wanted: readonly string[]): Promise<void> {
    while (!this.#isStopped) {
      for (const [at, question] of this.#questions.entries()) {
        const text = await this.#client.ask(question).then(textOf, String)
        this.#asked++
        if (text === wanted[at]) continue
        const shown = `${question.name} ${question.type}: ${text} instead of ${wanted[at]}`
        this.#deviations.set(shown, (this.#deviations.get(shown) ?? 0) + 1)
      }
      await sleep(everyMs)
    }
  }
}

const textOf = ({ rcode, answer, ede }: LiveReply): string =>
  [rcode, ...answer, ...ede.map((code) => `EDE ${code}`)].join(' | ')
