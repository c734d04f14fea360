/**
 * One question over UDP: a socket of its own (so a fresh random source port), a fresh random id, and a strict look at
 * whatever comes back. RFC 5452.
 */
import { createSocket } from 'node:dgram'
import { errorText, failedExchange, type Exchange, type ExchangeEnd } from './exchange.ts'
import { isResponseTo } from './peer-query.ts'
import type { PeerQuery } from './peer-query.ts'
import type { PeerStats } from './peer-types.ts'
import { randomId } from './random-id.ts'
import type { Server } from './server-table.ts'

/**
 * Sends the question; ends with the first response that is to it. Others are counted and waiting goes on.
 *
 * The socket is connected, so the kernel drops what comes from elsewhere and tells us of a closed port (ICMP).
 */
export function udpExchange(server: Server, query: PeerQuery, withEdns: boolean, stats: PeerStats): Exchange {
  const { promise: done, resolve } = Promise.withResolvers<ExchangeEnd>()
  const id = randomId()
  const socket = createSocket({
    type: server.family === 4 ? 'udp4' : 'udp6',
    // Addresses only come here: nothing is looked up, and the socket is bound at once.
    lookup: (address, _options, callback) => callback(null, address, server.family)
  })
  let isConnected = false
  let isOver = false
  const close = (): void => {
    isOver = true
    socket.close()
  }
  const end = (result: ExchangeEnd): void => {
    if (isOver) return
    close()
    resolve(result)
  }
  socket.on('error', (error) => end(failedExchange('network', errorText(error))))
  socket.on('connect', () => {
    isConnected = true
    if (!isOver) socket.send(query.octets(id, withEdns))
  })
  socket.on('message', (octets, sender) => {
    if (isOver) return
    // Between bind and connect the port was open to everybody.
    const isFromServer = isConnected && isSameEnd(socket.remoteAddress(), sender)
    if (isFromServer && isResponseTo(octets, id, query.question)) end({ kind: 'response', octets })
    else stats.strays++
  })
  stats.udpExchanges++
  try {
    socket.connect(server.port, server.address)
  } catch (error) {
    end(failedExchange('network', errorText(error as Error)))
  }
  return {
    done,
    resend() {
      if (isOver || !isConnected) return false
      stats.udpResent++
      socket.send(query.octets(id, withEdns))
      return true
    },
    markSlow() {},
    cancel() {
      if (!isOver) close()
    }
  }
}

type End = Readonly<{ address: string; port: number }>

const isSameEnd = (one: End, other: End): boolean =>
  one.port === other.port && withoutZone(one.address) === withoutZone(other.address)

const withoutZone = (address: string): string => {
  const at = address.indexOf('%')
  return at < 0 ? address : address.slice(0, at)
}
