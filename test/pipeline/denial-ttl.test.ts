/** A denial that rests on what several targets said holds no longer than the oldest of them. RFC 2308 §5. */
import { test } from 'tap'
import { ask, delay } from '../support/in-process.ts'
import { below, peer, policy, recordsOf, startB, stub } from './two-peers.ts'

test('what a peer denied seconds ago is not denied afresh with our own zone', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const b = await startB(t, peer('a', a), policy('p', 'backend.svc.cluster.local', '[local, a]'))
  const first = await ask(b, below('late'))
  t.equal(first.rcode, 'NXDOMAIN')
  await delay(2_100)
  const second = await ask(b, below('late'))
  t.equal(second.rcode, 'NXDOMAIN')
  t.ok(second.ttl! <= first.ttl! - 2, `${first.ttl} s, and 2 s later ${second.ttl} s`)
})
