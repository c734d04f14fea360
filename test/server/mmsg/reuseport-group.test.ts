/** The kernel gives each datagram to one of the sockets that it is told, by number, and to no other. */
import { test } from 'tap'
import { BatchedSocket, socketName } from '../../../src/server/mmsg/batched-socket.ts'
import { loadLibc } from '../../../src/server/mmsg/libc.ts'
import { MessageBatch } from '../../../src/server/mmsg/message-batch.ts'
import { steer } from '../../../src/server/mmsg/reuseport-group.ts'

const libc = await loadLibc().catch(() => null)

void test(
  'steer: datagrams go to the sockets it names',
  { skip: libc === null && 'no koffi, or no Linux' },
  async (t) => {
    const batch = new MessageBatch(64, libc!.addressOf)
    const address = '127.0.0.1'
    const first = new BatchedSocket(libc!, batch, { address, port: 0 })
    t.throws(() => new BatchedSocket(libc!, batch, { address, port: first.port }, null, true), { code: 'EADDRINUSE' })
    first.share()
    t.throws(() => new BatchedSocket(libc!, batch, { address, port: first.port }), { code: 'EADDRINUSE' })
    const others = [1, 2].map(() => new BatchedSocket(libc!, batch, { address, port: first.port }, null, true))
    const sockets = [first, ...others]
    const client = new BatchedSocket(libc!, batch, { address, port: 0 })
    t.teardown(() => [...sockets, client].forEach((socket) => socket.close()))
    const destination = { name: socketName(address, first.port), control: new Uint8Array(0) }
    /** How many of so many datagrams each socket gets. Over loopback they are there when they are sent. */
    const sharesOf = (datagrams: number): number[] => {
      const shares = sockets.map(() => 0)
      for (let sent = 0; sent < datagrams; sent += 32) {
        batch.beginSend()
        for (let at = 0; at < 32; at++) batch.addAnswer(destination, Uint8Array.of(at))
        t.equal(client.send().end, 32)
        for (const [at, socket] of sockets.entries()) shares[at]! += socket.receive()
      }
      return shares
    }
    for (const only of [0, 1, 2]) {
      t.ok(steer(libc!, first.fd, [only]))
      t.same(sharesOf(64), [0, 1, 2].map((at) => (at === only ? 64 : 0))) // prettier-ignore
    }
    for (const among of [[0, 1, 2], [0, 2], [1, 2]]) {
    t.ok(steer(libc!, first.fd, among))
    const shares = sharesOf(1_920)
    const each = 1_920 / among.length
    for (const at of [0, 1, 2]) {
      const share = shares[at]!
      // Eight standard deviations.
      if (among.includes(at)) t.ok(Math.abs(share - each) < 8 * Math.sqrt(each), `${share} of ${among.join()} for ${at}`)
      else t.equal(share, 0)
    }
  } // prettier-ignore
    t.throws(() => steer(libc!, first.fd, []), RangeError)
  }
)
