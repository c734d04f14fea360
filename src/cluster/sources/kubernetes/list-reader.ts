/** Reads one resource whole, page by page, item by item, giving way to everybody else between items. */
import type { Clock } from '../../../base/clock.ts'
import { apiListIdleMs, apiListPageObjects } from '../../../base/limits.ts'
import { ApiError } from './api-error.ts'
import type { ApiConnection, Query } from './api-requests.ts'
import { ListScanner } from './list-scanner.ts'
import { isProtobuf, protobufType } from './protobuf/envelope.ts'
import type { MessageType } from './protobuf/message.ts'
import { ProtobufListScanner } from './protobuf/protobuf-list-scanner.ts'
import type { Turns } from './turns.ts'

/** Times that a list begins anew because its pages expired; then it is asked for in one piece, which cannot expire. */
const pagedAttempts = 2

export type ListRequest = Readonly<{
  connection: ApiConnection
  clock: Clock
  turns: Turns
  path: string
  query: Query
  /** The items in protobuf, if the API server shall be asked for that; null: JSON. */
  message: MessageType | null
  /** What else is asked for, behind the media type: `;as=...`. */
  parameters?: string
  /** The list begins, or begins anew: what came before does not count. */
  onBegin: () => void
  onItem: (raw: unknown) => void
  /** A good moment to hand on what has gathered. */
  onSlice: () => void
  onSignOfLife: () => void
}>

/**
 * Resolves to the list's resourceVersion once all items have been told.
 * @throws ApiError
 */
export async function readList(request: ListRequest): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    request.onBegin()
    const limit: Query = attempt > pagedAttempts ? {} : { limit: String(apiListPageObjects) }
    let page = await readPage(request, { ...request.query, ...limit })
    try {
      while (page.continueToken !== '') {
        page = await readPage(request, { ...request.query, ...limit, continue: page.continueToken })
      }
      return page.resourceVersion
    } catch (error) {
      if (!(error instanceof ApiError && error.isExpired) || attempt > pagedAttempts) throw error
    }
  }
}

/** The resourceVersion that the API server is at now, without the items. */
export async function readListVersion(request: ListRequest): Promise<string> {
  const silent = { ...request, onItem: () => {}, onSlice: () => {} }
  return (await readPage(silent, { ...request.query, limit: '1' })).resourceVersion
}

/** The media types to ask for: protobuf where it can be read, and always JSON, which every API server has. */
export function accepted(message: MessageType | null, parameters = ''): string {
  const types = message === null ? ['application/json'] : [protobufType, 'application/json']
  return [...types.map((type) => type + parameters), ...(parameters === '' ? [] : ['application/json'])].join(',')
}

async function readPage(request: ListRequest, query: Query): ReturnType<typeof readBody> {
  const { connection, clock, path, message, parameters, onSignOfLife } = request
  const response = await connection.open(path, query, accepted(message, parameters))
  const scanner =
    message !== null && isProtobuf(response.contentType) ? new ProtobufListScanner(message) : new ListScanner()
  const fail = () => response.cut(new ApiError('timeout', `a list that sends nothing for ${apiListIdleMs} ms`))
  let stopWaiting = clock.after(apiListIdleMs, fail)
  try {
    return await readBody(request, response.body, scanner, () => {
      stopWaiting()
      onSignOfLife()
      stopWaiting = clock.after(apiListIdleMs, fail)
    })
  } finally {
    stopWaiting()
  }
}

async function readBody(
  { turns, onItem, onSlice }: ListRequest,
  body: AsyncIterable<Buffer>,
  scanner: ListScanner | ProtobufListScanner,
  onChunk: () => void
): Promise<{ resourceVersion: string; continueToken: string }> {
  const take = async (items: Iterable<unknown>): Promise<void> => {
    for (const item of items) {
      onItem(item)
      if (turns.hasRoom()) continue
      onSlice()
      await turns.next()
    }
  }
  try {
    for await (const chunk of body) {
      onChunk()
      await take(scanner.push(chunk))
    }
    await take(scanner.rest())
  } finally {
    onSlice()
  }
  return scanner.end()
}
