/** Policies with `enforce: false`: everything is answered as before, and what would change is counted and shown. */
import { test } from 'tap'
import { unenforcedExamples, unenforcedInFlight } from '../../src/base/limits.ts'
import { ask, clusterB, startInProcess, until } from '../support/in-process.ts'
import { service } from '../support/objects.ts'
import { stub } from './two-peers.ts'

const api = 'api.backend.svc.cluster.local'

test('enforce: false answers as before, and tells what it would have changed', async (t) => {
  const peer = await stub(t, [
    { type: 'A', name: api, ttl: 7, data: '172.30.1.0' },
    { type: 'A', name: 'web.backend.svc.cluster.local', ttl: 7, data: '10.1.2.20' }
  ])
  const config = (enforce: boolean): string =>
    clusterB(`forward: []
allow: [127.0.0.1]
peers: {a: {servers: ["${peer.text}"]}}
policies:
  - {name: backend, dnsName: backend.svc.cluster.local, targets: [a, local], enforce: ${enforce}}
  - {name: other, dnsName: fixed.example, targets: [{addresses: [10.9.0.7]}]}`)
  const objects = [...service('api.backend', '10.1.1.20'), ...service('web.backend', '10.1.2.20')]
  const b = await startInProcess(t, config(false), { objects, watchConfig: true })
  const stats = () => b.server.dataPlane.unenforced.stats.get('backend')
  t.equal((await ask(b, api)).text, '10.1.1.20')
  t.ok(await until(() => stats()?.changed === 1))
  t.match([...stats()!.examples.values()], [{ name: `${api}.`, type: 'A', given: 'A 10.1.1.20', instead: 'A 172.30.1.0' }]) // prettier-ignore
  t.equal((await ask(b, 'web.backend.svc.cluster.local')).text, '10.1.2.20')
  t.ok(await until(() => stats()?.same === 1), 'the same address, with another TTL')
  t.equal((await ask(b, 'fixed.example')).text, '10.9.0.7', 'others are in force')
  await ask(b, api, { recursionDesired: false })
  await ask(b, api, { from: '127.0.0.2' })
  t.equal((await ask(b, 'nope.backend.svc.cluster.local')).rcode, 'NXDOMAIN')
  t.ok(await until(() => stats()?.same === 2))
  t.equal(stats()?.changed, 1, 'neither without RD, which no policy is for, nor for a client that is refused')
  b.writeConfig(config(true))
  t.ok(await until(async () => (await ask(b, api)).text === '172.30.1.0'), 'in force')
})

test('enforce: false is bounded, and a silent peer keeps nobody waiting', async (t) => {
  const peer = await stub(t, [])
  peer.fault = 'silent'
  const names = Array.from({ length: 4 * unenforcedInFlight }, (_, at) => `s${at}.backend.svc.cluster.local`)
  const b = await startInProcess(
    t,
    clusterB(`forward: []
peers: {a: {servers: ["${peer.text}"], probe: {every: 1h}}}
policies: [{name: backend, dnsName: backend.svc.cluster.local, targets: [a], enforce: false}]`)
  )
  const replies = await Promise.all(names.map(async (name) => ask(b, name)))
  t.same(new Set(replies.map(({ rcode }) => rcode)), new Set(['NXDOMAIN']))
  const stats = () => b.server.dataPlane.unenforced.stats.get('backend')!
  t.ok(stats().skipped >= names.length - 2 * unenforcedInFlight, `${stats().skipped} skipped`)
  t.ok(await until(() => stats().same + stats().changed + stats().skipped === names.length, 15_000))
  t.ok(stats().examples.size <= unenforcedExamples)
})
