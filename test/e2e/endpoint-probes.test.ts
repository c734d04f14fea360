/**
 * Two replicas on a real API server: one checks addresses for both, the other goes by what it finds, and takes its
 * place when it is killed. While the API server is away both keep what is known, and go on by themselves.
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

  await t.test(
    'the API server is away: results stay, both check by themselves, and one of them for both again after',
    async (t) => {
      const wrong: string[] = []
      let left: readonly string[] = addresses.filter((address) => address !== sick)
      const look = async (): Promise<void> => {
        for (const server of [holder, follower]) {
          const found = await given(server)
          const isRight = found.length >= left.length && left.every((address) => found.includes(address))
          if (!isRight || found.includes(sick!))
            wrong.push(`${server === holder ? 'holder' : 'follower'}: ${found.join()}`)
        }
      }
      const lookUntil = async (is: () => Promise<boolean>): Promise<boolean> =>
      settled(async () => look().then(is), (it) => it, { timeoutMs: slack * 40_000, everyMs: 200 }) // prettier-ignore
      await cluster.apiServer.kill()
      const killedMs = performance.now()
      t.ok(await lookUntil(async () => isRole(follower, 'alone')), 'the follower hears nobody, and looks itself')
      tell(
        `the follower checks by itself ${Math.round(performance.now() - killedMs)} ms after the API server was killed`
      )
      t.ok(await isRole(holder, 'holding'), 'the holder goes on')
      const second = addresses[1]!
      left = left.filter((address) => address !== second)
      stubs.get(second)!.close()
      const isOut = async () => (await Promise.all([holder, follower].map(given))).every((all) => !all.includes(second))
      t.ok(await lookUntil(isOut), 'what goes down meanwhile is found by both')
      await cluster.apiServer.start()
      const startedMs = performance.now()
      const roles = async () => Promise.all([holder, follower].map(async (one) => isRole(one, 'holding')))
      const isOneOfThem = async () => {
        const [first, second] = await roles()
        return first !== second && (await isRole(first === true ? follower : holder, 'following'))
      }
      t.ok(await lookUntil(isOneOfThem), 'one of them checks for both again')
      tell(
        `one replica checks for both ${Math.round(performance.now() - startedMs)} ms after the API server was ready again`
      )
      await look()
      t.same(wrong, [], 'nobody flipped')
      await startStub(second)
      for (const server of [holder, follower]) {
        const all = await settled(async () => given(server), (found) => found.includes(second), { timeoutMs: slack * 3 * endpointCheckEveryMs }) // prettier-ignore
        t.equal(all.length, addresses.length - 1, 'well again')
      }
    }
  )

  const [holds, follows] = (await isRole(holder, 'holding')) ? [holder, follower] : [follower, holder]

  await t.test('the holder is killed: the other one goes on where it was', async (t) => {
    await holds.part.kill('SIGKILL')
    await sleep(200)
    const before = checks
    const startedMs = performance.now()
    let wrong = 0
    const hasBegun = async () => {
      if ((await given(follows)).includes(sick!)) wrong++
      return checks > before
    }
    t.equal(await settled(hasBegun, (has) => has, { timeoutMs: slack * takeoverMs }), true) // prettier-ignore
    tell(`the other replica checks ${Math.round(performance.now() - startedMs)} ms after the first was killed`)
    t.equal(await settled(async () => isRole(follows, 'holding'), (is) => is), true) // prettier-ignore
    t.equal(wrong, 0, 'and what was down stays out meanwhile')
    await holds.part.start()
    t.equal(await settled(async () => isRole(holds, 'following'), (is) => is), true, 'the first one comes back, and follows') // prettier-ignore
    t.equal((await settled(async () => given(holds), (all) => !all.includes(sick!))).length, addresses.length - 1) // prettier-ignore
    await startStub(sick!)
    const all = await settled(async () => given(holds), (found) => found.includes(sick!), { timeoutMs: slack * 3 * endpointCheckEveryMs }) // prettier-ignore
    t.equal(all.length, addresses.length, 'well again')
  })
})
