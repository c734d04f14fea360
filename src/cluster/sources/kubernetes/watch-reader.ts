/** Reads one watch to its end: one JSON line for each change, or one frame of protobuf. */
import { apiObjectOctets } from '../../../base/limits.ts'
import { ApiError, errorOfStatus } from './api-error.ts'
import type { EventQueue } from './event-queue.ts'
import { metadataOf } from './held-objects.ts'
import type { HeldObjects } from './held-objects.ts'
import { LineSplitter } from './line-splitter.ts'
import { isProtobuf } from './protobuf/envelope.ts'
import type { MessageType } from './protobuf/message.ts'
import { WatchFrames, type WatchEvent } from './protobuf/watch-frames.ts'
import { compareResourceVersions } from './resource-version.ts'
import type { Turns } from './turns.ts'
import type { WatchPace } from './watch-pace.ts'

export type Watch = Readonly<{
  body: AsyncIterable<Buffer>
  contentType: string
  /** The objects in protobuf, if the API server may have answered so. */
  message: MessageType | null
  held: HeldObjects
  queue: EventQueue
  turns: Turns
  pace: WatchPace
  /** Ends early where the watch is no longer wanted. */
  sleep: (ms: number) => Promise<void>
  /** Where the watch began. */
  resourceVersion: string
  /** Up to here everything has been taken. */
  onResourceVersion: (resourceVersion: string) => void
  /** The API server says that it cannot go on from here. */
  onErrorEvent: (error: ApiError) => void
  onSignOfLife: () => void
}>

/**
 * Resolves when the API server has ended the watch.
 * @throws ApiError `format` for a line that is no event, `history` for one that goes back, `status` for an ERROR event,
 * and whatever the body throws.
 */
export async function readWatch(watch: Watch): Promise<void> {
  const { body, contentType, message, queue, turns, pace, sleep, onSignOfLife } = watch
  const splitter = message !== null && isProtobuf(contentType) ? new WatchFrames(message) : new JsonLines()
  const reader = new WatchReader(watch)
  try {
    for await (const chunk of body) {
      onSignOfLife()
      queue.arrived()
      let events = 0
      for (const event of splitter.push(chunk)) {
        reader.take(event)
        events++
        if (turns.hasRoom()) continue
        queue.flush()
        await turns.next()
      }
      queue.flush()
      const waitMs = pace.waitMs(events)
      if (waitMs > 0) await sleep(waitMs)
    }
  } finally {
    // What came before a broken line is whole.
    queue.flush()
  }
  if (splitter.pendingOctets > 0) throw new ApiError('network', 'a watch that breaks off inside an event')
}

class WatchReader {
  readonly #watch: Watch
  #resourceVersion: string

  constructor(watch: Watch) {
    this.#watch = watch
    this.#resourceVersion = watch.resourceVersion
  }

  take({ type, object }: WatchEvent): void {
    if (type === 'ERROR') {
      const error = errorOfStatus(object, 0)
      this.#watch.onErrorEvent(error)
      throw error
    }
    const { resourceVersion } = metadataOf(object)
    if (resourceVersion === '') throw new ApiError('format', `a watch event ${type} without resourceVersion`)
    if (compareResourceVersions(resourceVersion, this.#resourceVersion) < 0) {
      throw new ApiError('history', `a watch goes back from ${this.#resourceVersion} to ${resourceVersion}`)
    }
    const { held, queue } = this.#watch
    if (type === 'ADDED' || type === 'MODIFIED') queue.take(object, (events) => held.put(object, events))
    else if (type === 'DELETED') queue.take(null, (events) => held.remove(object, events))
    else if (type !== 'BOOKMARK') throw new ApiError('format', `a watch event of unknown type ${type.slice(0, 64)}`)
    this.#resourceVersion = resourceVersion
    this.#watch.onResourceVersion(resourceVersion)
  }
}

class JsonLines {
  readonly #lines = new LineSplitter(apiObjectOctets)

  get pendingOctets(): number {
    return this.#lines.pendingOctets
  }

  *push(chunk: Buffer): Generator<WatchEvent> {
    for (const line of this.#lines.push(chunk)) yield parsed(line)
  }
}

function parsed(line: string): WatchEvent {
  let event: unknown
  try {
    event = JSON.parse(line)
  } catch {
    throw new ApiError('format', 'a line of a watch that is not JSON')
  }
  const { type, object } = (event ?? {}) as { type?: unknown; object?: unknown }
  if (typeof type !== 'string' || typeof object !== 'object' || object === null) {
    throw new ApiError('format', 'a line of a watch that is no event')
  }
  return { type, object }
}
