/**
 * Connections that a peerdns holds open, and the zones that it wants to be told of by NOTIFY down them.
 *
 * Nothing is queued: who has not answered enough of the last ones gets no more until it does, and then one for all that
 * came meanwhile. Who does not answer or does not read is cut.
 */
import type { Cancel, Clock } from '../base/clock.ts'
import {
  notifyAnswerTimeoutMs,
  notifySubscriptions,
  notifySubscriptionsPerConnection,
  notifyUnanswered
} from '../base/transfer-limits.ts'
import { withId } from './notify-message.ts'
import type { TransferStats } from './transfer-stats.ts'

/** What is told down a connection. */
export interface PushStream {
  readonly isClosed: boolean
  push(message: Uint8Array): boolean
  onClose(callback: () => void): void
  destroy(): void
}

/** Stands for one connection; the same object with everything that comes on it. */
export type Connection = Readonly<{ address: string }>

type Subscription = { readonly topic: string; readonly of: Subscriber; unanswered: number; isBehind: boolean }

type Subscriber = {
  readonly connection: Connection
  readonly stream: PushStream
  readonly subscriptions: Map<string, Subscription>
  /** NOTIFY requests without a response by id, oldest first. */
  readonly unanswered: Map<number, Readonly<{ subscription: Subscription; sentAtMs: number }>>
  nextId: number
  cancelCheck: Cancel | null
}

const ids = 0x1_0000

export class Subscriptions {
  readonly #clock: Clock
  readonly #stats: TransferStats
  /** The NOTIFY of a zone (`topicOf`) as it is now, without id; null where there is no such zone any more. */
  readonly #message: (topic: string) => Uint8Array | null
  readonly #subscribers = new Map<Connection, Subscriber>()
  readonly #byTopic = new Map<string, Set<Subscription>>()
  #count = 0

  constructor(clock: Clock, stats: TransferStats, message: (topic: string) => Uint8Array | null) {
    this.#clock = clock
    this.#stats = stats
    this.#message = message
  }

  /** Zones that connections are told of, each connection counted by itself. */
  get count(): number {
    return this.#count
  }

  /** Whether any connection is told of this zone. */
  hasAny(topic: string): boolean {
    return this.#byTopic.has(topic)
  }

  has(connection: Connection, topic: string): boolean {
    return this.#subscribers.get(connection)?.subscriptions.has(topic) ?? false
  }

  /** Tells the connection of changes from now on; false where there are too many already. */
  add(connection: Connection, stream: PushStream, topic: string): boolean {
    if (stream.isClosed || this.has(connection, topic)) return !stream.isClosed
    const known = this.#subscribers.get(connection)
    const ofConnection = known?.subscriptions.size ?? 0
    if (this.#count >= notifySubscriptions || ofConnection >= notifySubscriptionsPerConnection) {
      this.#stats.subscriptionsRefusedTotal += 1
      return false
    }
    const subscriber = known ?? this.#begin(connection, stream)
    const subscription: Subscription = { topic, of: subscriber, unanswered: 0, isBehind: false }
    subscriber.subscriptions.set(topic, subscription)
    let all = this.#byTopic.get(topic)
    if (all === undefined) this.#byTopic.set(topic, (all = new Set()))
    all.add(subscription)
    this.#count += 1
    return true
  }

  /** A zone has another serial. */
  changed(topic: string): void {
    const all = this.#byTopic.get(topic)
    if (all === undefined) return
    const message = this.#message(topic)
    // Who is cut leaves the set meanwhile, which an iteration takes well.
    for (const subscription of all) {
      if (message === null) subscription.of.stream.destroy()
      else if (subscription.unanswered >= notifyUnanswered) subscription.isBehind = true
      else this.#push(subscription, message)
    }
  }

  /** Everything may be another history now. */
  changedAll(): void {
    for (const topic of this.#byTopic.keys()) this.changed(topic)
  }

  /** Cuts the connections of those who may not be told any more. */
  keepOnly(isPermitted: (connection: Connection) => boolean): void {
    for (const { connection, stream } of this.#subscribers.values()) if (!isPermitted(connection)) stream.destroy()
  }

  /** Takes the response to a NOTIFY; false where it is to none of ours. */
  answered(connection: Connection, id: number): boolean {
    const subscriber = this.#subscribers.get(connection)
    const entry = subscriber?.unanswered.get(id)
    if (subscriber === undefined || entry === undefined) return false
    subscriber.unanswered.delete(id)
    this.#stats.notifyAnsweredTotal += 1
    const { subscription } = entry
    subscription.unanswered -= 1
    if (subscription.isBehind) {
      const message = this.#message(subscription.topic)
      subscription.isBehind = false
      if (message !== null) this.#push(subscription, message)
    }
    return true
  }

  #begin(connection: Connection, stream: PushStream): Subscriber {
    const subscriber: Subscriber = {
      connection,
      stream,
      subscriptions: new Map(),
      unanswered: new Map(),
      nextId: 0,
      cancelCheck: null
    }
    this.#subscribers.set(connection, subscriber)
    stream.onClose(() => this.#end(subscriber))
    return subscriber
  }

  #end(subscriber: Subscriber): void {
    subscriber.cancelCheck?.()
    this.#subscribers.delete(subscriber.connection)
    this.#stats.notifyLostTotal += subscriber.unanswered.size
    for (const subscription of subscriber.subscriptions.values()) {
      const all = this.#byTopic.get(subscription.topic)!
      all.delete(subscription)
      if (all.size === 0) this.#byTopic.delete(subscription.topic)
      this.#count -= 1
    }
  }

  #push(subscription: Subscription, message: Uint8Array): void {
    const { of } = subscription
    do of.nextId = (of.nextId + 1) % ids
    while (of.unanswered.has(of.nextId))
    const id = of.nextId
    of.unanswered.set(id, { subscription, sentAtMs: this.#clock.nowMs() })
    subscription.unanswered += 1
    this.#stats.notifyPushedTotal += 1
    if (of.stream.push(withId(message, id))) this.#check(of)
  }

  /** Cuts a connection whose oldest NOTIFY waits for too long, and looks again when the next one would. */
  #check(subscriber: Subscriber): void {
    if (subscriber.cancelCheck !== null) return
    const [oldest] = subscriber.unanswered.values()
    if (oldest === undefined) return
    const leftMs = oldest.sentAtMs + notifyAnswerTimeoutMs - this.#clock.nowMs()
    if (leftMs <= 0) {
      subscriber.stream.destroy()
      return
    }
    subscriber.cancelCheck = this.#clock.after(leftMs, () => {
      subscriber.cancelCheck = null
      this.#check(subscriber)
    })
  }
}
