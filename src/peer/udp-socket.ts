/** A UDP socket that is connected to one server, and the usual way to open one: node:dgram. */
import { createSocket, type RemoteInfo } from 'node:dgram'

export type ServerAddress = Readonly<{ address: string; port: number; family: 4 | 6 }>

export type UdpSocketEvents = Readonly<{
  /** Questions can be sent from now on. */
  connected(): void
  /**
   * A datagram has come. The octets are the hearer's. @param isFromServer else it came before the socket was connected
   */
  message(octets: Uint8Array, isFromServer: boolean): void
  /** Nothing can be sent any more, or a datagram sent before found nobody (ICMP). Never within `send`. */
  failed(error: Error): void
}>

export type UdpSocket = Readonly<{
  /** Only once it is connected. */
  send(octets: Uint8Array): void
  close(onClosed: () => void): void
}>

/** Opens a socket on a fresh random port of ours. Nothing is called within, and nothing thrown. */
export type OpenUdpSocket = (server: ServerAddress, events: UdpSocketEvents) => UdpSocket

export const openDgramSocket: OpenUdpSocket = ({ address, port, family }, events) => {
  const socket = createSocket({
    type: family === 4 ? 'udp4' : 'udp6',
    // Addresses only come here, ours to bind to and the server's: nothing is looked up, and the socket is bound at once.
    lookup: (asked, _options, callback) => callback(null, asked, family)
  })
  let remote: End | null = null
  let isClosed = false
  let hasFailed = false
  const sent = (error: Error | null): void => {
    if (error !== null) failed(error)
  }
  // It may come within `connect`, before the caller has the socket.
  const failed = (error: Error): void => {
    hasFailed = true
    queueMicrotask(() => events.failed(error))
  }
  socket.on('error', failed)
  socket.on('connect', () => {
    // A connect that was under way ends behind a close too.
    if (isClosed) return
    remote = socket.remoteAddress()
    events.connected()
  })
  socket.on('message', (octets: Uint8Array, sender: RemoteInfo) => {
    // Between bind and connect the port was open to everybody.
    events.message(octets, remote !== null && isSameEnd(remote, sender))
  })
  try {
    socket.connect(port, address)
  } catch (error) {
    failed(error as Error)
  }
  return {
    send: (octets) => socket.send(octets, sent),
    close: (onClosed) => {
      isClosed = true
      // What could not be bound would wait to be for ever before it is closed.
      if (hasFailed && remote === null) {
        socket.close()
        queueMicrotask(onClosed)
      } else socket.close(onClosed)
    }
  }
}

type End = Readonly<{ address: string; port: number }>

const isSameEnd = (one: End, other: End): boolean =>
  one.port === other.port && (one.address === other.address || withoutZone(one.address) === withoutZone(other.address))

const withoutZone = (address: string): string => {
  const at = address.indexOf('%')
  return at < 0 ? address : address.slice(0, at)
}
