/**
 * A peer that was away, and comes back with another history: what has changed meanwhile is known of, as far as it can
 * be.
 */
import { test } from 'tap'
import { startAdmin } from '../../src/admin/http-server.ts'
import { silentLog } from '../../src/base/log.ts'
import { command } from '../support/command.ts'
import { ask, clusterB, startInProcess, until } from '../support/in-process.ts'
import { loopClock } from '../support/loop-clock.ts'
import { namespace, service } from '../support/objects.ts'

const clusterA = `cluster: {name: a, source: {manifests: ["{manifests}"]}}
transfer: {allow: [private]}
forward: []
`
const web = 'web.backend.svc.cluster.local'
const objects = (address: string, ...more: object[]): object[] => [
  namespace('backend'),
  ...service('api.backend', '10.96.1.1'),
  ...service('web.backend', address),
  ...more
]

void test('changes that come with a whole zone are changes', async (t) => {
  const a = await startInProcess(t, clusterA, { objects: objects('10.96.1.2', ...service('old.backend', '10.96.1.4')) })
  const b = await startInProcess(
    t,
    clusterB(`peers:
  a: {servers: ["127.0.0.1:${a.port}"], mirror: true}
policies:
- {name: backend, dnsName: backend.svc.cluster.local, targets: [a]}
forward: []
`)
  )
  const admin = await startAdmin({ observe: null, admin: { address: '127.0.0.1', port: 0 }, inspect: b.server.inspect, clock: loopClock, log: silentLog }) // prettier-ignore
  t.teardown(() => admin.close())
  const env = { PEERDNS_ADMIN: `http://127.0.0.1:${admin.adminAddress!.port}` }
  t.ok(await until(() => b.server.inspect.copies().length === 1), 'it has come')
  t.match(await command(`propagation ${web}`, env), { code: 1 }, 'what was there has not changed')
  await a.stop()
  const fresh = objects('10.96.1.3', ...service('new.backend', '10.96.1.5'))
  await startInProcess(t, clusterA, { objects: fresh, port: a.port })
  t.ok(await until(async () => (await ask(b, web)).text === '10.96.1.3', 20_000), 'the new zone has come')
  for (const name of [web, `new.backend.svc.cluster.local`, 'old.backend.svc.cluster.local']) {
    const { code, out } = await command(`propagation ${name}`, env)
    t.equal(code, 0, name)
    t.match(out, /\n<= 20\S+Z +a +(A|all)\b[^]*\n<= came with the whole zone/)
  }
  t.match(await command('propagation api.backend.svc.cluster.local', env), { code: 1 }, 'what is as it was')
  const { changes } = JSON.parse((await command(`propagation ${web} -o json`, env)).out) as { changes: object[] }
  t.match(changes, [{ cameWhole: true, peer: 'a' }])
})
