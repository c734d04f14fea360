/** What two processes say to each other when one takes over the other's sockets. */
import type { ListenAddress } from '../listen-address.ts'
import { socketKey } from './listening-sockets.ts'

/** Both sides ignore who speaks another one. */
export const protocol = 'peerdns-takeover-1'

export type TakeoverMessage =
  /** From who will take over, once it is able to serve. */
  | Readonly<{ kind: 'hello'; protocol: string }>
  /** From who serves from now on. */
  | Readonly<{ kind: 'take' }>
  /** From who served until now: the socket comes with it. */
  | Readonly<{ kind: 'socket'; key: string }>
  /** That were all. */
  | Readonly<{ kind: 'end' }>

export const messageToText = (message: TakeoverMessage): string => JSON.stringify(message)

/** Null for what is no such message. */
export function parseMessage(text: string): TakeoverMessage | null {
  try {
    const message = JSON.parse(text) as Partial<Record<string, unknown>> | null
    if (typeof message !== 'object' || message === null) return null
    const { kind } = message
    if (kind === 'take' || kind === 'end') return { kind }
    if (kind === 'hello' && message['protocol'] === protocol) return { kind, protocol }
    if (kind === 'socket' && typeof message['key'] === 'string') return { kind, key: message['key'] }
    return null
  } catch {
    return null
  }
}

/** Where a process that serves an address can be found: one name for each of its addresses. */
export const takeoverName = (where: ListenAddress): string => `peerdns takeover ${socketKey('udp', where)}`
