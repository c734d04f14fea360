/** Datagrams to and from one address, from a port of their own: for requests that their sender repeats by itself. */
import { createSocket } from 'node:dgram'
import { isIP } from 'node:net'

export type Datagrams = Readonly<{ send(octets: Uint8Array): void; close(): void }>

/**
 * Begins to listen for what the address sends back. Nothing is thrown and nothing reported: who gets no answer sends
 * again, or gives up.
 * @param to an IP address and a port.
 */
export function openDatagrams(
  to: Readonly<{ address: string; port: number }>,
  onMessage: (octets: Uint8Array) => void
): Datagrams {
  const socket = createSocket({
    type: isIP(to.address) === 6 ? 'udp6' : 'udp4',
    // Addresses only come here, so nothing is looked up and the socket is bound at once.
    lookup: (address, _options, callback) => callback(null, address, isIP(address) === 6 ? 6 : 4)
  })
  let isConnected = false
  let isClosed = false
  let waiting: Uint8Array | null = null
  const close = (): void => {
    if (isClosed) return
    isClosed = true
    socket.close()
  }
  // A closed port is told by ICMP; the server may be back for the next one.
  socket.on('error', () => {
    if (!isConnected) close()
  })
  socket.on('message', (octets) => {
    // The socket is connected, so the kernel lets through what that address sends, and nothing else.
    if (isConnected && !isClosed) onMessage(octets)
  })
  socket.on('connect', () => {
    isConnected = true
    if (waiting !== null && !isClosed) socket.send(waiting)
    waiting = null
  })
  try {
    socket.connect(to.port, to.address)
  } catch {
    close()
  }
  return {
    send(octets) {
      if (isClosed) return
      if (isConnected) socket.send(octets)
      else waiting = octets
    },
    close
  }
}
