/**
 * Datagrams in batches, where this machine can: recvmmsg and sendmmsg, by the optional package koffi.
 *
 * Whether it can is tried out at the start, on loopback sockets of its own: what came must be what was sent, from where
 * it was sent, on IPv4 and IPv6. Anything else, and datagrams are read one at a time.
 */
import type { Clock } from '../../base/clock.ts'
import { udpBatchDatagrams, udpSelfTestTimeoutMs } from '../../base/limits.ts'
import { listenError } from '../listen-address.ts'
import { dgramIo } from '../udp-listener.ts'
import type { UdpIo } from '../udp-io.ts'
import { BatchedListener, type BatchParts } from './batched-listener.ts'
import { BatchedSocket, socketName } from './batched-socket.ts'
import { ClientTexts } from './client-texts.ts'
import { Lingering } from './lingering.ts'
import { loadLibc, type Libc } from './libc.ts'
import { MessageBatch } from './message-batch.ts'

/** The way to read and send, and why it is not that of batches; null where it is. */
export type ChosenIo = Readonly<{
  udpIo: UdpIo
  whyNotBatched: string | null
  /** For who needs the C library too; null where datagrams are not read in batches. */
  libc: Libc | null
}>

/** Never rejects. */
export async function chooseUdpIo(clock: Clock, load: () => Promise<Libc> = loadLibc): Promise<ChosenIo> {
  try {
    const libc = await load()
    const batch = new MessageBatch(udpBatchDatagrams, libc.addressOf)
    const parts = { libc, batch, texts: new ClientTexts(), lingering: new Lingering(clock) }
    await testOn('127.0.0.1', parts, clock)
    await testOn('::1', parts, clock)
    return { udpIo: batchedIo(parts), whyNotBatched: null, libc }
  } catch (error) {
    const whyNotBatched = error instanceof Error ? error.message.split('\n')[0]! : String(error)
    return { udpIo: dgramIo, whyNotBatched, libc: null }
  }
}

function batchedIo(parts: BatchParts): UdpIo {
  return {
    name: 'mmsg',
    async bind(where, options, number = 0) {
      // A zone id (fe80::1%eth0) is left to those who know the names of interfaces.
      if (where.address.includes('%')) return dgramIo.bind(where, options)
      let socket: BatchedSocket
      try {
        const known = options.sockets?.udp(where, number) ?? null
        socket = new BatchedSocket(parts.libc, parts.batch, where, known, number > 0)
        // Only then: an address that another process has is an error, also where that one shares it.
        if (number === 0 && options.isShared) socket.share()
      } catch (error) {
        throw listenError(where, 'udp', error as NodeJS.ErrnoException)
      }
      try {
        return new BatchedListener(socket, parts, options)
      } catch (error) {
        socket.close()
        throw error
      }
    }
  }
}

/** Messages of the self-test: two of them, of different lengths. */
const probes = [Uint8Array.of(1, 2, 3), Uint8Array.of(4, 5, 6, 7, 8, 9, 10)]

/** @throws where anything is not as it should be. An address family that this machine does not have is no mistake. */
async function testOn(address: string, { libc, batch, texts }: BatchParts, clock: Clock): Promise<void> {
  const sockets: BatchedSocket[] = []
  try {
    const asking = openOrNull(libc, batch, address)
    if (asking === null) return
    sockets.push(asking)
    // The other one listens everywhere, so that our own address in control messages is tried too.
    const asked = new BatchedSocket(libc, batch, { address: address === '::1' ? '::' : '0.0.0.0', port: 0 })
    sockets.push(asked)
    const [from, to] = [asking.port, asked.port]

    batch.beginSend()
    const destination = { name: socketName(address, to), control: new Uint8Array(0) }
    for (const probe of probes) batch.addAnswer(destination, probe)
    expect(asking.send().end === probes.length, 'sendmmsg did not send')
    await untilReadable(libc, asked, clock)
    expect(asked.receive() === probes.length, 'recvmmsg did not receive')
    for (const [slot, probe] of probes.entries()) {
      expect(texts.of(batch, slot) === address && batch.port(slot) === from, 'recvmmsg gave another sender')
      expect(batch.querySize(slot) === probe.length, 'recvmmsg gave another size')
      expect(
        probe.every((octet, at) => batch.queries[slot]![at] === octet),
        'recvmmsg gave other octets'
      )
      batch.nextAnswer.set(probe.toReversed())
      batch.answer(slot, probe.length)
    }
    expect(asked.send().end === probes.length, 'sendmmsg did not answer')
    await untilReadable(libc, asking, clock)
    expect(asking.receive() === probes.length, 'the answers did not come')
    for (const [slot, probe] of probes.entries()) {
      expect(texts.of(batch, slot) === address && batch.port(slot) === to, 'an answer has another sender')
      expect(
        probe.toReversed().every((octet, at) => batch.queries[slot]![at] === octet),
        'an answer has other octets'
      )
    }
    expect(asking.receive() === 0, 'recvmmsg gave what was not sent')
    if (asking.allowWaiting()) expect(asking.receive(true) === 0, 'recvmmsg did not end its waiting')
  } finally {
    for (const socket of sockets) socket.close()
  }
}

function openOrNull(libc: Libc, batch: MessageBatch, address: string): BatchedSocket | null {
  try {
    return new BatchedSocket(libc, batch, { address, port: 0 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EAFNOSUPPORT' || code === 'EADDRNOTAVAIL') return null
    throw error
  }
}

async function untilReadable(libc: Libc, socket: BatchedSocket, clock: Clock): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const cancel = clock.after(udpSelfTestTimeoutMs, () => reject(new Error('a socket did not become readable')))
  // The callback of a poll runs no promises: see BatchedListener. What follows is left to the loop's next step.
  const poll = libc.poll(socket.fd, () => setImmediate(resolve))
  try {
    await promise
  } finally {
    cancel()
    poll.close()
  }
}

function expect(isSo: boolean, otherwise: string): void {
  if (!isSo) throw new Error(`the self-test failed: ${otherwise}`)
}
