/** One connection to a primary and the requests on it, without sockets. */
import { test } from 'tap'
import { transferRequestsInFlight } from '../../src/base/transfer-limits.ts'
import { Link, type ChannelHandlers } from '../../src/transfer/link.ts'
import { messageId } from '../../src/wire/header.ts'
import { RCODE } from '../../src/wire/iana.ts'
import { decodeMessage, encodeMessage } from '../../src/wire/message.ts'
import { soaQuery } from '../../src/transfer/transfer-query.ts'
import { parseName } from '../../src/wire/name.ts'
import { ManualClock } from '../support/manual-clock.ts'

const surplus = 300

function connected() {
  const clock = new ManualClock()
  const sent: Uint8Array[] = []
  const opened: ChannelHandlers[] = []
  const link = new Link({
    servers: () => ['192.0.2.1:53'],
    open: (_server, given) => {
      opened.push(given)
      return { send: (octets) => void sent.push(octets), close: () => {} }
    },
    clock,
    random: () => 0,
    signer: null,
    onUp: () => {},
    onDown: () => {},
    onNotify: () => null
  })
  link.start()
  const server = opened[0]!
  server.onOpen()
  const answer = (query: Uint8Array): void => {
    server.onMessage(encodeMessage({ ...decodeMessage(query), qr: true, rcode: RCODE.REFUSED }))
  }
  /** What became of each request, in the order in which it did. */
  const ends: string[] = []
  const ask = (number: number) =>
    link.request({
      octets: soaQuery(parseName(`zone${number}.example`), {
        instanceId: 'abc',
        epoch: null,
        isPlain: true,
        copyOf: null
      }),
      idleTimeoutMs: 1_500,
      onMessage: () => {
        ends.push(`answered ${number}`)
        return true
      },
      onFail: ({ message }) => void ends.push(`failed ${number}: ${message}`)
    })
  return { clock, link, sent, server, answer, ends, ask }
}

test('Link: what is more than may be in flight waits for its turn, and none of it fails', (t) => {
  const { link, sent, answer, ends, ask } = connected()
  const total = transferRequestsInFlight + surplus
  for (let number = 0; number < total; number++) ask(number)
  t.equal(sent.length, transferRequestsInFlight, 'not more at once')
  t.equal(new Set(sent.map(messageId)).size, transferRequestsInFlight)
  for (let at = 0; at < total; at++) {
    answer(sent[at]!)
    t.equal(sent.length, Math.min(total, transferRequestsInFlight + at + 1), 'the next one')
  }
  t.same(
    ends,
    Array.from({ length: total }, (_, number) => `answered ${number}`)
  )
  link.stop()
  t.end()
})

test('Link: who waits may be given up, and ends with the connection', (t) => {
  const { clock, link, sent, server, answer, ends, ask } = connected()
  const cancels = Array.from({ length: transferRequestsInFlight + 3 }, (_, number) => ask(number))
  cancels.at(-3)!()
  answer(sent[0]!)
  t.equal(sent.length, transferRequestsInFlight + 1)
  cancels.at(-2)!()
  cancels[1]!()
  t.equal(sent.length, transferRequestsInFlight + 2, 'what is given up makes room, too')
  const waiting = transferRequestsInFlight + 10
  ask(waiting - 1)
  ask(waiting)
  server.onEnd('gone')
  t.equal(ends.length, 1 + transferRequestsInFlight + 1)
  t.equal(ends.at(-1), `failed ${waiting}: gone`)
  ask(waiting + 1)
  clock.advance(1)
  t.equal(ends.at(-1), `failed ${waiting + 1}: no connection`)
  link.stop()
  t.end()
})
