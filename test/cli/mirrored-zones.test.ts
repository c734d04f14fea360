/** Zones of peers that are kept here are listed, named and looked into like our own. */
import { test } from 'tap'
import { startAdmin } from '../../src/admin/http-server.ts'
import { silentLog } from '../../src/base/log.ts'
import { command } from '../support/command.ts'
import { ask, clusterB, startInProcess, until } from '../support/in-process.ts'
import { loopClock } from '../support/loop-clock.ts'
import { namespace, service } from '../support/objects.ts'

const web = 'web.backend.svc.cluster.local'
const clusterA = `cluster: {name: a, source: {manifests: ["{manifests}"]}, ttl: 2s}
transfer: {allow: [private]}
forward: []
`
const objects = [namespace('backend'), ...service('web.backend', '10.96.1.1')]

test('records list, status and metrics name mirrored zones; stale answers begin behind the TTL', async (t) => {
  const a = await startInProcess(t, clusterA, { objects })
  const b = await startInProcess(
    t,
    clusterB(`peers:
  a: {servers: ["127.0.0.1:${a.port}"], mirror: true, lease: 1s}
policies:
- {name: backend, dnsName: backend.svc.cluster.local, targets: [a]}
- {name: all, dnsName: svc.cluster.local, targets: [local, a]}
cache: {serveStale: 1s}
forward: []
`)
  )
  const admin = await startAdmin({ observe: null, admin: { address: '127.0.0.1', port: 0 }, inspect: b.server.inspect, clock: loopClock, log: silentLog }) // prettier-ignore
  t.teardown(() => admin.close())
  const url = `http://127.0.0.1:${admin.adminAddress!.port}`
  const env = { PEERDNS_ADMIN: url }
  t.ok(await until(() => b.server.inspect.copies().length === 2), 'both have come')
  const listed = await command('records list --zone backend.svc.cluster.local', env)
  t.match(listed, { code: 0, out: /\nweb\.backend\.svc\.cluster\.local\. +A +2 +10\.96\.1\.1\n/ })
  t.match(await command('records list --zone svc.cluster.local --peer a', env), { code: 0, out: /10\.96\.1\.1/ })
  t.match(await command('records list --zone cluster.local --peer a', env), { code: 1, err: /no zone of a is called/ })
  t.match(await command('records list --zone nope.', env), { err: /backend\.svc\.cluster\.local\. \(of a\)/ })
  t.match((await command('status', env)).out, /\nbackend\.svc\.cluster\.local\. +a +\d+ /)
  const metrics = await (await fetch(`${url}/metrics`)).text()
  t.match(metrics, /^peerdns_zone_serial\{zone="backend.svc.cluster.local.",peer="a"\} \d+$/m)
  t.match(metrics, /^peerdns_zone_serial\{zone="cluster.local."\} \d+$/m)

  await a.stop()
  const isStale = async (): Promise<boolean> => (await ask(b, web)).ede.some(({ code }) => code === 3)
  t.ok(await until(isStale), 'serveStale is as long as the lease, and begins behind the TTL')
  t.ok(await until(async () => (await ask(b, web)).rcode === 'SERVFAIL'), 'and ends')
})
