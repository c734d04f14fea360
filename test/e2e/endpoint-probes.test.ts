/**
 * Two replicas on a real API server: one checks addresses for both, the other goes by what it finds, and takes its place
 * when it is killed.
 */
import { createServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { endpointCheckEveryMs } from '../../src/base/endpoint-limits.ts'
import { startCluster } from './support/cluster.ts'
import { settled } from './support/eventually.ts'
import { tell } from './support/live-figures.ts'
import { LiveServer } from './support/live-server.ts'
import { freePort } from '../support/free-port.ts'
import { clusterSuite } from './support/suite.ts'

const addresses = Array.from({ length: 20 }, (_, at) => `127.0.9.${at + 1}`)
const [sick] = addresses
const takeoverMs = 10_000
/** What a busy machine may take. */
const slack = 3

clusterSuite('checks of addresses by one of two replicas', async (t) => {
  const cluster = await startCluster({ name: 'probes', isBare: true })
  t.teardown(async () => cluster.stop())
  const port = await freePort()
  let checks = 0
  const stubs = new Map<string, Server>()
  t.teardown(() => stubs.forEach((stub) => void stub.close()))
  const startStub = async (address: string): Promise<void> => {
    const stub = createServer((socket) => {
      checks++
      socket.on('error', () => {}).destroy()
    })
    stubs.set(address, stub)
    await new Promise<void>((done) => void stub.listen(port, address, done))
  }
  await Promise.all(addresses.map(startStub))
  const policy = `policies:\n- {name: partner, dnsName: partner.example, targets: [{addresses: [${addresses.join()}], probe: "tcp:${port}"}]}\n`
  const start = async (name: string) => LiveServer.start(cluster, { name, clusterKeys: 'probes: on', more: policy })
  const [one, other] = await Promise.all([start('one'), start('other')])
  t.teardown(async () => Promise.all([one.stop(), other.stop()]))
  const isRole = async (server: LiveServer, role: string) =>
    (await server.metric('peerdns_endpoint_checks_role', `role="${role}"`)) === 1
  const given = async (server: LiveServer): Promise<string[]> =>
    (await server.client.ask({ name: 'partner.example', type: 'A' })).answer.map((line) => line.split(' ').at(-1)!)
  const checksOver = async (ms: number): Promise<number> => {
    const before = checks
    await sleep(ms)
    return checks - before
  }

  const isSettled = async () => (await isRole(one, 'holding')) !== (await isRole(other, 'holding'))
  t.equal(await settled(isSettled, (is) => is), true, 'one of them holds the place') // prettier-ignore
  const [holder, follower] = (await isRole(one, 'holding')) ? [one, other] : [other, one]
  t.equal(await settled(async () => isRole(follower, 'following'), (is) => is), true) // prettier-ignore

  await t.test("an endpoint is checked as often as by one replica's work", async (t) => {
    const windowMs = 3 * endpointCheckEveryMs
    const count = await checksOver(windowMs)
    const ofOne = (windowMs / endpointCheckEveryMs) * addresses.length
    tell(`${addresses.length} addresses got ${count} checks in ${windowMs / 1000} s; one replica makes ${ofOne}`)
    t.ok(count > 0 && count < ofOne * 1.4, `${count} of ${ofOne}`)
    t.equal((await given(follower)).length, addresses.length)
  })

  await t.test('what one finds holds for the other', async (t) => {
    stubs.get(sick!)!.close()
    for (const server of [holder, follower]) {
      const left = await settled(async () => given(server), (all) => !all.includes(sick!), { timeoutMs: slack * 3 * endpointCheckEveryMs }) // prettier-ignore
      t.equal(left.length, addresses.length - 1)
    }
    t.ok((await follower.metric('peerdns_endpoint_checks_total', 'failed')) === 0, 'and it did not look itself')
  })

  await t.test('the holder is killed: the other one goes on where it was', async (t) => {
    await holder.part.kill('SIGKILL')
    await sleep(200)
    const before = checks
    const startedMs = performance.now()
    let wrong = 0
    const hasBegun = async () => {
      if ((await given(follower)).includes(sick!)) wrong++
      return checks > before
    }
    t.equal(await settled(hasBegun, (has) => has, { timeoutMs: slack * takeoverMs }), true) // prettier-ignore
    tell(`the other replica checks ${Math.round(performance.now() - startedMs)} ms after the first was killed`)
    t.equal(await settled(async () => isRole(follower, 'holding'), (is) => is), true) // prettier-ignore
    t.equal(wrong, 0, 'and what was down stays out meanwhile')
    await holder.part.start()
    t.equal(await settled(async () => isRole(holder, 'following'), (is) => is), true, 'the first one comes back, and follows') // prettier-ignore
    t.equal((await settled(async () => given(holder), (all) => !all.includes(sick!))).length, addresses.length - 1) // prettier-ignore
    await startStub(sick!)
    const all = await settled(async () => given(holder), (found) => found.includes(sick!), { timeoutMs: slack * 3 * endpointCheckEveryMs }) // prettier-ignore
    t.equal(all.length, addresses.length, 'well again')
  })
})
