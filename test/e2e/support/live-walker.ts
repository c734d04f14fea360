/** Asks a server for every name that there is or ever was, until all answers are what API servers hold, or too late. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  askedTypes,
  difference,
  ExpectedZone,
  readWorld,
  serviceOf,
  type Expected,
  type World,
  type ZoneRules
} from './expected.ts'
import type { KubeApi } from './kube-api.ts'
import type { Question, Transport } from './live-client.ts'
import type { LiveServer } from './live-server.ts'

/** A change of the own cluster is in every answer after a second; three, so that it holds on a busy machine. */
export const ownDeadlineMs = 3000
/** And one of a peer's cluster after its TTL of 5 s, and those. */
export const peerDeadlineMs = 5000 + ownDeadlineMs

/** A suffix that is peered, and in which order the two clusters are asked for it. */
export type Peering = Readonly<{ dnsName: string; order: readonly ('own' | 'peer')[] }>

export type WalkerOptions = Readonly<{
  server: LiveServer
  own: KubeApi
  ownRules: ZoneRules
  peer?: KubeApi
  peerRules?: ZoneRules
  peerings?: readonly Peering[]
  /** Names that are not asked. */
  isLeftOut?: (name: string) => boolean
}>

export type WalkOptions = Readonly<{
  transport?: Transport
  /** Instead of `ownDeadlineMs`; what is peered gets five seconds more. */
  deadlineMs?: number
  /** How long the clusters may take to get where the test wants them; 90 s unless told. */
  reachMs?: number
}>

export type Walked = Readonly<{
  /** Differences that stood after their deadline; empty where all was right in time. */
  problems: readonly string[]
  questions: number
  /** From when the API server was first seen to hold what it holds until all answers had been found right. */
  tookMs: number
}>

/** What is held at one moment, in the own cluster and the peer's. */
type Moment = Readonly<{ own: ExpectedZone; peer: ExpectedZone | null; fingerprint: string; worlds: readonly World[] }>

export class Walker {
  readonly #options: WalkerOptions
  /** All names of all moments. */
  readonly #names = new Set<string>()

  constructor(options: WalkerOptions) {
    this.#options = options
  }

  /**
   * @param isReached whether the clusters have got where the test wanted them; before that nothing is over.
   */
  async untilEqual(
    isReached: (own: World, peer: World | undefined) => boolean = () => true,
    options: WalkOptions = {}
  ): Promise<Walked> {
    const { transport = 'udp', deadlineMs = ownDeadlineMs, reachMs = 90_000 } = options
    const startedMs = performance.now()
    let fingerprint = ''
    let heldSinceMs = startedMs
    for (;;) {
      const readAtMs = performance.now()
      const moment = await this.#moment()
      if (moment.fingerprint !== fingerprint) heldSinceMs = readAtMs
      fingerprint = moment.fingerprint
      const [own, peer] = moment.worlds as [World, World | undefined]
      if (!isReached(own, peer)) {
        if (performance.now() - startedMs > reachMs) {
          return { problems: ['the cluster did not get where the test wants it'], questions: 0, tookMs: Infinity }
        }
        await sleep(20)
        continue
      }
      const walked = await this.#walk(moment, heldSinceMs, transport, deadlineMs)
      if (walked !== null) return walked
    }
  }

  /**
   * One moment's questions until all are answered right or one is too late; null where the clusters changed meanwhile.
   */
  async #walk(moment: Moment, heldSinceMs: number, transport: Transport, deadlineMs: number): Promise<Walked | null> {
    const all = this.#questions(moment)
    let open = all
    for (;;) {
      const askedAtMs = performance.now()
      const wrong = await this.#wrongOf(open, moment, transport)
      const tookMs = performance.now() - heldSinceMs
      if (wrong.size === 0) return { problems: [], questions: all.length, tookMs }
      if ((await this.#moment()).fingerprint !== moment.fingerprint) return null
      const late = [...wrong].filter(([{ name }]) => {
        const limitMs = this.#peeringOf(name) === null ? deadlineMs : peerDeadlineMs - ownDeadlineMs + deadlineMs
        return askedAtMs - heldSinceMs > limitMs
      })
      if (late.length > 0) return { problems: late.map(([, text]) => text), questions: all.length, tookMs }
      open = [...wrong.keys()]
      await sleep(10)
    }
  }

  async #wrongOf(questions: readonly Question[], moment: Moment, transport: Transport): Promise<Map<Question, string>> {
    const replies = await this.#options.server.client.askAll(questions, transport)
    const wrong = new Map<Question, string>()
    for (const [at, question] of questions.entries()) {
      const text = difference(question, this.#expected(moment, question), replies[at]!)
      if (text !== null) wrong.set(question, text)
    }
    return wrong
  }

  #questions({ own, peer }: Moment): Question[] {
    for (const name of own.owners) this.#names.add(name)
    for (const name of peer?.owners ?? []) if (this.#peeringOf(name) !== null) this.#names.add(name)
    const { isLeftOut = () => false } = this.#options
    return [...this.#names]
      .filter((name) => !isLeftOut(name))
      .flatMap((name) => (name.endsWith('.arpa') ? ['PTR', 'A'] : askedTypes).map((type) => ({ name, type })))
  }

  #peeringOf(name: string): Peering | null {
    const { peerings = [] } = this.#options
    return peerings.find(({ dnsName }) => name === dnsName || name.endsWith(`.${dnsName}`)) ?? null
  }

  /**
   * All names of a Service come from the first that has it with somebody behind it; else from one that has it empty.
   */
  #expected({ own, peer }: Moment, question: Question): Expected {
    const { name } = question
    const peering = this.#peeringOf(name)
    if (peering === null || peer === null) return own.lookup(question)
    const zones = peering.order.map((which) => (which === 'own' ? own : peer))
    const isEmpty = (zone: ExpectedZone) => zone.isEmptyService(name)
    const best = zones.find((zone) => zone.has(serviceOf(name)) && !isEmpty(zone)) ?? zones.find(isEmpty)
    return (best ?? zones[0]!).lookup(question)
  }

  async #moment(): Promise<Moment> {
    const { own, ownRules, peer, peerRules } = this.#options
    const worlds = await Promise.all([own, ...(peer === undefined ? [] : [peer])].map(readWorld))
    const rules = [ownRules, peerRules ?? ownRules]
    const zones = worlds.map((world, at) => new ExpectedZone(world, rules[at]!))
    return { own: zones[0]!, peer: zones[1] ?? null, fingerprint: worlds.map(fingerprintOf).join(), worlds }
  }
}

const fingerprintOf = ({ namespaces, services, slices, imports, pods }: World): string =>
  [namespaces, services, slices, imports, pods]
    .flat()
    .map(({ metadata }) => `${metadata?.uid} ${metadata?.resourceVersion}`)
    .join()
