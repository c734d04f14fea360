/**
 * The floor for a server on node:dgram: every datagram goes back with QR set, and nothing else is done.
 *
 *     node bench/rivals/dgram-echo.ts PORT
 */
import { createSocket } from 'node:dgram'

const socket = createSocket('udp4')
socket.on('message', (query, from) => {
  if (query.length < 12) return
  query[2]! |= 0x80
  socket.send(query, from.port, from.address)
})
socket.bind(Number(process.argv[2]), '127.0.0.1')
