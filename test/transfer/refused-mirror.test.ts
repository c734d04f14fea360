/**
 * A peer that gives its zones no more: who looks at the log, the commands or the metrics sees it, and when it is over.
 */
import { pino } from 'pino'
import { test } from 'tap'
import { startAdmin } from '../../src/admin/http-server.ts'
import { command } from '../support/command.ts'
import { ask, clusterB, startInProcess, until } from '../support/in-process.ts'
import { loopClock } from '../support/loop-clock.ts'
import { namespace, service } from '../support/objects.ts'

const web = 'web.backend.svc.cluster.local'
const clusterA = (allow: string): string =>
  `cluster: {name: a, source: {manifests: ["{manifests}"]}}
transfer: {allow: [${allow}]}
forward: []
`

type Line = { level: number; msg: string; zone?: string; why?: string }

void test('refused, said once, shown everywhere, and back', async (t) => {
  const objects = [namespace('backend'), ...service('web.backend', '10.96.1.1')]
  const a = await startInProcess(t, clusterA('private'), { objects, watchConfig: true })
  const lines: Line[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line) as Line) })
  const b = await startInProcess(
    t,
    clusterB(`peers:
  a: {servers: ["127.0.0.1:${a.port}"], mirror: true, lease: 1s}
policies:
- {name: backend, dnsName: backend.svc.cluster.local, targets: [a]}
forward: []
`),
    { log }
  )
  const admin = await startAdmin({ observe: null, admin: { address: '127.0.0.1', port: 0 }, inspect: b.server.inspect, clock: loopClock, log }) // prettier-ignore
  t.teardown(() => admin.close())
  const url = `http://127.0.0.1:${admin.adminAddress!.port}`
  const env = { PEERDNS_ADMIN: url }
  const metrics = async (): Promise<string> => (await fetch(`${url}/metrics`)).text()
  const isLive = (): boolean => b.server.mirrors.status()[0]!.zones.some((zone) => zone.isLive)
  t.ok(await until(isLive), 'it has come')
  t.match(
    (await command('peers list', env)).out,
    /\nPEER +ZONE[^]*\na +backend\.svc\.cluster\.local\. +copy +\d+ .* following /
  )
  t.match((await command('status', env)).out, /\nmirrors +a backend\.svc\.cluster\.local\. following/)
  t.match(await metrics(), /^peerdns_mirror_refused\{peer="a",zone="backend.svc.cluster.local."\} 0$/m)

  const ours = /source: our copy of backend\.svc\.cluster\.local\. of peer:a \(127\.0\.0\.1:\d+\), age \S+/
  t.match((await command(`trace ${web}`, env)).out, ours)
  t.match((await command(`query ${web}`, env)).out, ours)

  a.writeConfig(clusterA(''))
  const warned = (): Line[] => lines.filter(({ level, msg }) => level === 40 && msg.includes('gives no'))
  t.ok(await until(() => warned().length > 0, 15_000), 'a warning')
  t.match(warned(), [{ zone: 'backend.svc.cluster.local.', why: /REFUSED/ }])
  t.match((await command('peers list', env)).out, /\na +backend\.svc\.cluster\.local\. .* refused .*REFUSED/)
  const peers = JSON.parse((await command('peers list -o json', env)).out) as { peers: { mirrors: object[] }[] }
  t.match(peers.peers[0]!.mirrors, [{ zone: 'backend.svc.cluster.local.', state: 'refused' }])
  t.match((await command('status', env)).out, /\nmirrors +a backend\.svc\.cluster\.local\. refused \(.*REFUSED/)
  t.match(await metrics(), /^peerdns_mirror_refused\{peer="a",zone="backend.svc.cluster.local."\} 1$/m)
  t.equal((await ask(b, web)).text, '10.96.1.1', 'asked for')

  a.writeConfig(clusterA('private'))
  const told = (): Line[] => lines.filter(({ level, msg }) => level === 30 && msg.includes('again'))
  t.ok(await until(() => told().length > 0, 25_000), 'and told when it is back')
  t.match(told(), [{ zone: 'backend.svc.cluster.local.' }])
  t.equal(warned().length, 1, 'it was said once')
  t.notOk(
    lines.some(({ why }) => why === ''),
    'no empty reasons'
  )
})
