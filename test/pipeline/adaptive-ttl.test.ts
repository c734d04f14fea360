/** A peer that tells of no changes: the TTL of what was seen to change is low, for clients and here. */
import { test } from 'tap'
import { ask, clusterB, startInProcess, until } from '../support/in-process.ts'
import { StubPeer } from '../support/stub-peer.ts'

const web = 'web.backend.svc.cluster.local'
const api = 'api.backend.svc.cluster.local'
const a = (name: string, data: string, ttl: number) => ({ type: 'A' as const, name, data, ttl })

void test('names that were seen to change get lower TTLs, others keep theirs', async (t) => {
  const peer = new StubPeer({ zone: 'cluster.local', records: [a(web, '10.0.1.1', 1), a(api, '10.0.2.1', 300)] })
  await peer.start()
  t.teardown(async () => peer.stop())
  const b = await startInProcess(
    t,
    clusterB(`peers: {a: {servers: ["${peer.text}"]}}
policies: [{name: backend, dnsName: backend.svc.cluster.local, targets: [a]}]
forward: []
`)
  )
  t.equal((await ask(b, web)).ttl, 1)
  t.equal((await ask(b, api)).ttl, 300)
  peer.records = [a(web, '10.0.1.2', 300), a(api, '10.0.2.1', 300)]
  t.ok(await until(async () => (await ask(b, web)).text === '10.0.1.2'), 'after its TTL')
  t.ok((await ask(b, web)).ttl! <= 1, 'a change was seen, so the TTL is low')
  t.ok((await ask(b, api)).ttl! > 200, 'no change, no cap')
  const [{ adaptiveTtl }] = b.server.inspect.mirrors() as [ReturnType<typeof b.server.inspect.mirrors>[number]]
  t.match(adaptiveTtl, { names: 1, changes: 1 })
  t.ok(adaptiveTtl.capped >= 1)

  peer.records = [a(web, '10.0.1.3', 300), a(api, '10.0.2.1', 300)]
  t.ok(
    await until(async () => (await ask(b, web)).text === '10.0.1.3', 15_000),
    'asked for again long before the TTL ends'
  )
})
