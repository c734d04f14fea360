/** Addresses that are checked: an unhealthy one is not given, and what happens where none is healthy. */
import { createServer, type Server } from 'node:net'
import { test, type Test } from 'tap'
import { freePort } from '../support/free-port.ts'
import { ask, clusterB, startInProcess, until } from '../support/in-process.ts'
import { quickClock } from '../support/loop-clock.ts'
import { service } from '../support/objects.ts'

/** Something that listens on one port of several addresses of the loopback network. */
async function listenOn(t: Test, addresses: readonly string[], port: number): Promise<Map<string, Server>> {
  const servers = new Map<string, Server>()
  for (const address of addresses) {
    const server = createServer((socket) => void socket.destroy())
    await new Promise<void>((done) => void server.listen(port, address, done))
    servers.set(address, server)
    t.teardown(() => void server.close())
  }
  return servers
}

const slow = 110_000
/** Checks come every five seconds, and what they ask is here. */
const clock = quickClock(5)

test('static addresses: the unhealthy one is left out, and comes back', { timeout: slow }, async (t) => {
  const port = await freePort()
  const servers = await listenOn(t, ['127.0.0.11', '127.0.0.12'], port)
  const fixed = `{addresses: [127.0.0.11, 127.0.0.12], probe: "tcp:${port}"}`
  const b = await startInProcess(
    t,
    clusterB(
      `forward: []
policies:
  - {name: next, dnsName: next.example, targets: [${fixed}, {addresses: [127.0.0.99]}]}
  - {name: alone, dnsName: alone.example, targets: [${fixed}]}
  - {name: open, dnsName: open.example, allDown: open, targets: [${fixed}, {addresses: [127.0.0.99]}]}
  - {name: closed, dnsName: closed.example, allDown: closed, targets: [${fixed}, {addresses: [127.0.0.99]}]}`,
      ', probes: on'
    ),
    { clock }
  )
  const answers = async (): Promise<string> =>
    (await Promise.all(['next', 'alone', 'open', 'closed'].map(async (name) => (await ask(b, `${name}.example`)).text))).join(' | ') // prettier-ignore
  const both = '127.0.0.11 127.0.0.12'
  t.equal(await answers(), [both, both, both, both].join(' | '))
  servers.get('127.0.0.11')!.close()
  const one = '127.0.0.12'
  t.ok(await until(async () => (await answers()) === [one, one, one, one].join(' | '), 25_000), await answers())
  servers.get('127.0.0.12')!.close()
  const none = ['127.0.0.99', both, both, 'NODATA'].join(' | ')
  t.ok(await until(async () => (await answers()) === none, 25_000), await answers())
  t.match((await ask(b, 'closed.example')).ede, [{ text: /^closed: no endpoint is healthy, and `allDown` is closed$/ }])
  const down = b.server.operator.events.since(0).find(({ text }) => text.startsWith('127.0.0.11 (tcp:'))
  t.same(down?.endpoint, { address: '127.0.0.11', check: `tcp:${port}`, of: 'next,alone,open,+1' })
  t.ok((await ask(b, 'alone.example')).ttl! <= 5, 'no longer than cluster data')
  await listenOn(t, ['127.0.0.11'], port)
  const back = ['127.0.0.11', '127.0.0.11', '127.0.0.11', '127.0.0.11'].join(' | ')
  t.ok(await until(async () => (await answers()) === back, 25_000), await answers())
})

test(
  'peerdns.io/probe: a Service whose address is down counts as empty; no probes by default',
  { timeout: slow },
  async (t) => {
    const port = await freePort()
    const servers = await listenOn(t, ['127.0.0.21'], port)
    const objects = service('api.backend', '127.0.0.21').map((object) => {
      const { kind, metadata } = object as { kind: string; metadata: object }
      return kind === 'Service' ? { ...object, metadata: { ...metadata, annotations: { 'peerdns.io/probe': `tcp:${port}` } } } : object // prettier-ignore
    })
    const config = (probes: string): string =>
      clusterB(
        `forward: []
policies:
  - {name: next, dnsName: backend.svc.cluster.local, targets: [local, {addresses: [127.0.0.99]}]}`,
        `, probes: ${probes}`
      )
    const b = await startInProcess(t, config('on'), { objects, watchConfig: true, clock })
    const answer = async (): Promise<string> => (await ask(b, 'api.backend.svc.cluster.local')).text
    t.equal(await answer(), '127.0.0.21')
    servers.get('127.0.0.21')!.close()
    t.ok(await until(async () => (await answer()) === '127.0.0.99', 25_000), 'the next target')
    b.writeConfig(config('off'))
    t.ok(await until(async () => (await answer()) === '127.0.0.21'), 'without probes nothing is known')
  }
)
