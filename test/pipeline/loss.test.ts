// Lost datagrams and slow peers: neither may hand a client over to another cluster.
import { test } from 'tap'
import { ask } from '../support/in-process.ts'
import { below, peer, policy, recordsOf, startB, stub } from './two-peers.ts'

const suffix = 'backend.svc.cluster.local'

test('a lost datagram is sent again before the next target is asked', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a, local]'))
  t.equal((await ask(b, below('api'))).text, '172.30.1.1')
  // Every second datagram is lost from now on.
  a.fault = 'lossy'
  for (let round = 1; round <= 6; round++) {
    b.server.cache.flush()
    t.equal((await ask(b, below('api'))).text, '172.30.1.1', `round ${round}`)
    const port = await ask(b, `_grpc._tcp.${below('api')}`, { type: 'SRV' })
    t.match(port.text, /9090/, `round ${round}: the SRV is of the same cluster`)
  }
})

test('a slow peer is answered for, where the next target only denies', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  a.fault = 'slow'
  a.delayMs = 1_000
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a, local]'))
  const reply = await ask(b, below('a-only'))
  t.equal(reply.text, '172.30.1.4', 'local denies it at once, and the peer has it')
  t.ok(reply.tookMs > 900 && reply.tookMs < 2_500, `after ${reply.tookMs.toFixed(0)} ms`)
  const own = await ask(b, below('api'))
  t.equal(own.text, '10.1.1.20', 'a target that has the name is not kept waiting for')
  t.ok(own.tookMs < 900, `after ${own.tookMs.toFixed(0)} ms`)
})

test('among peers the first that has the name answers, however late', async (t) => {
  const [a, c] = [await stub(t, recordsOf('172.30.1')), await stub(t, [])]
  a.fault = 'slow'
  a.delayMs = 1_000
  c.fault = 'silent'
  const b = await startB(t, peer('a', a) + peer('c', c), policy('p', suffix, '[a, c]'))
  const reply = await ask(b, below('a-only'))
  t.equal(reply.text, '172.30.1.4')
  t.ok(reply.tookMs < 1_700, `after ${reply.tookMs.toFixed(0)} ms`)
})
