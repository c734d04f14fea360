/**
 * One TCP connection to a server as a stream of messages both ways, for zone transfers: what the messages are, and when
 * they are due, others know. RFC 7766 §8.
 */
import { connect } from 'node:net'
import { WireError } from '../base/errors.ts'
import { parseHostPort } from '../base/host-port.ts'
import { transferSendBufferOctets } from '../base/transfer-limits.ts'
import { frameMessage, TcpFrameReader } from '../wire/tcp-frame.ts'
import { errorText } from './exchange.ts'

export type MessageStream = Readonly<{
  send(message: Uint8Array): void
  /** Ends it; nothing is told any more. */
  close(): void
}>

export type MessageStreamHandlers = Readonly<{
  onOpen(): void
  /** A whole message, valid during the call. */
  onMessage(octets: Uint8Array): void
  /** It ended, or never began; called once. */
  onEnd(why: string): void
}>

/** Begins to connect to a server (`host:port`, an IP address). */
export function openMessageStream(server: string, handlers: MessageStreamHandlers): MessageStream {
  const { host, port } = parseHostPort(server, 53)
  const socket = connect({ host, port, noDelay: true })
  const frames = new TcpFrameReader()
  let isOver = false
  let why = 'closed'
  const end = (reason: string): void => {
    if (isOver) return
    isOver = true
    socket.destroy()
    handlers.onEnd(reason)
  }
  socket.on('connect', () => {
    if (!isOver) handlers.onOpen()
  })
  socket.on('data', (chunk: Uint8Array) => {
    try {
      frames.push(chunk)
      for (let message = frames.next(); message !== null; message = frames.next()) {
        // A handler may have closed it.
        if (socket.destroyed) return
        handlers.onMessage(message)
      }
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      end(error.message)
    }
  })
  socket.on('error', (error) => (why = errorText(error)))
  socket.on('end', () => end(frames.isMidMessage ? 'cut in the middle of a message' : 'closed by the server'))
  socket.on('close', () => end(why))
  return {
    send(message) {
      if (isOver) return
      socket.write(frameMessage(message))
      if (socket.writableLength > transferSendBufferOctets) socket.destroy(new Error('the server does not read'))
    },
    close() {
      isOver = true
      socket.destroy()
    }
  }
}
