/** Checks of addresses: spread, bounded, and what makes one down and up again. */
import { createServer } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { test, type Test } from 'tap'
import { parseEndpointCheck } from '../../src/base/endpoint-check.ts'
import { endpointCheckEveryMs, endpointCheckGapMinMs, endpointChecksInFlight } from '../../src/base/endpoint-limits.ts'
import { EndpointSchedule, type CheckedEndpoint } from '../../src/health/endpoint-schedule.ts'
import { checkEndpoint } from '../../src/peer/endpoint-connect.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { loopClock } from '../support/loop-clock.ts'

const endpoint = (address: string): CheckedEndpoint => ({ key: `tcp:80 ${address}`, address, check: 'tcp:80' })
const turn = (): Promise<void> => new Promise((done) => void setImmediate(done)) // lets answers arrive

/** Moves time in steps, so that answers arrive in between. */
async function pass(clock: ManualClock, ms: number, stepMs = 10): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
    clock.advance(stepMs)
    await turn()
  }
}

function start(t: Test, addresses: string[]) {
  const clock = new ManualClock()
  const sick = new Set<string>()
  const asked: { address: string; atMs: number }[] = []
  const transitions: string[] = []
  const schedule = new EndpointSchedule({
    clock,
    random: () => 0.5,
    endpoints: () => addresses.map(endpoint),
    ask: async ({ address }) => {
      asked.push({ address, atMs: clock.nowMs() })
      return sick.has(address) ? { isSuccess: false, reason: 'ECONNREFUSED' } : { isSuccess: true, reason: 'connected' }
    },
    onTransition: ({ endpoint: { address }, isDown, reason }) =>
      transitions.push(`${address} ${isDown ? 'down' : 'up'}: ${reason}`)
  })
  t.teardown(() => schedule.stop())
  schedule.start()
  return { clock, sick, asked, transitions, schedule }
}

test('EndpointSchedule: each is checked once in its time, evenly spread', async (t) => {
  const addresses = Array.from({ length: 10 }, (_, at) => `10.0.0.${at}`)
  const { clock, asked } = start(t, addresses)
  await pass(clock, 3 * endpointCheckEveryMs)
  for (const address of addresses) {
    const count = asked.filter((it) => it.address === address).length
    t.ok(count >= 2 && count <= 4, `${address}: ${count} in three rounds`)
  }
  const gaps = asked.slice(1).map(({ atMs }, at) => atMs - asked[at]!.atMs)
  t.ok(
    gaps.every((gap) => gap >= endpointCheckEveryMs / 20),
    'never two at once'
  )
})

test('EndpointSchedule: however many, no more than the gap allows', async (t) => {
  const addresses = Array.from({ length: 1_000 }, (_, at) => `10.0.${at >> 8}.${at & 0xff}`)
  const { clock, asked } = start(t, addresses)
  await pass(clock, 10_000)
  t.ok(asked.length <= 10_000 / endpointCheckGapMinMs + 1, `${asked.length} in ten seconds`)
  t.ok(asked.length >= 400)
})

test('EndpointSchedule: two failures in a row are down, two successes up again; what is gone is forgotten', async (t) => {
  const addresses = ['10.0.0.1', '10.0.0.2']
  const { clock, sick, transitions, schedule } = start(t, addresses)
  await pass(clock, endpointCheckEveryMs)
  sick.add('10.0.0.1')
  await pass(clock, 3 * endpointCheckEveryMs)
  t.same(transitions, ['10.0.0.1 down: ECONNREFUSED'])
  t.same([...schedule.down], ['tcp:80 10.0.0.1'])
  sick.clear()
  await pass(clock, 3 * endpointCheckEveryMs)
  t.same(transitions.slice(1), ['10.0.0.1 up: connected'])
  sick.add('10.0.0.2')
  await pass(clock, 3 * endpointCheckEveryMs)
  t.same([...schedule.down], ['tcp:80 10.0.0.2'])
  addresses.pop()
  await pass(clock, 3 * endpointCheckEveryMs)
  t.same([...schedule.down], [])
  schedule.stop()
  t.equal(clock.pendingTimers, 0)
})

test('EndpointSchedule: answers that do not come do not pile up', async (t) => {
  const clock = new ManualClock()
  let open = 0
  const schedule = new EndpointSchedule({
    clock,
    random: () => 0.5,
    endpoints: () => Array.from({ length: 500 }, (_, at) => endpoint(`10.0.0.${at}`)),
    ask: async () => {
      open++
      return new Promise(() => {})
    },
    onTransition: () => {}
  })
  schedule.start()
  await pass(clock, 10_000, 20)
  t.equal(open, endpointChecksInFlight)
  schedule.stop()
})

test('parseEndpointCheck', async (t) => {
  t.same(parseEndpointCheck('tcp:8080'), { kind: 'tcp', port: 8080, path: '' })
  t.same(parseEndpointCheck('http:80'), { kind: 'http', port: 80, path: '/' })
  t.same(parseEndpointCheck('https:8443/ready?x=1'), { kind: 'https', port: 8443, path: '/ready?x=1' })
  for (const text of ['', 'tcp', 'tcp:', 'tcp:0', 'tcp:65536', 'tcp:80/x', 'udp:53', 'http:80/a b', 'http:80/a\r\nX: y', 'http://10.0.0.1/', '8080']) {
    t.throws(() => parseEndpointCheck(text), { name: 'TextError' }, text)
  } // prettier-ignore
})

test('checkEndpoint: a connection, a status, and all that is none', async (t) => {
  const listen = async (server: { listen: (port: number, host: string, done: () => void) => unknown; address: () => unknown; close: () => void }) => {
    await new Promise<void>((done) => void server.listen(0, '127.0.0.1', done))
    t.teardown(() => server.close())
    return (server.address() as AddressInfo).port
  } // prettier-ignore
  const web = await listen(createServer((request, response) => {
    response.statusCode = Number(request.url!.slice(1))
    response.end('x'.repeat(100_000))
  })) // prettier-ignore
  const open = new Set<Socket>()
  const hold = (answer: string) => createTcpServer((socket) => {
    open.add(socket.on('error', () => {}))
    if (answer !== '') socket.write(answer)
  }) // prettier-ignore
  t.teardown(() => {
    for (const socket of open) socket.destroy()
  })
  const silent = await listen(hold(''))
  const nonsense = await listen(hold('SSH-2.0-x\n'.repeat(1_000)))
  const gone = await listen(createTcpServer())
  const closing = await listen(createTcpServer((socket) => void socket.destroy()))
  const rows: [check: string, isSuccess: boolean, reason: RegExp][] = [
    [`tcp:${web}`, true, /^connected$/],
    [`tcp:${silent}`, true, /^connected$/],
    [`http:${web}/200`, true, /^status 200$/],
    [`http:${web}/302`, true, /^status 302$/],
    [`http:${web}/503`, false, /^status 503$/],
    [`http:${silent}/`, false, /^timeout$/],
    [`http:${nonsense}/`, false, /^no HTTP$/],
    [`http:${closing}/`, false, /^(closed without an answer|ECONNRESET)$/],
    [`https:${web}/200`, false, /./]
  ]
  for (const [check, isSuccess, reason] of rows) {
    const outcome = await checkEndpoint('127.0.0.1', parseEndpointCheck(check), 1_000, loopClock)
    t.equal(outcome.isSuccess, isSuccess, check)
    t.match(outcome.reason, reason, check)
  }
  t.match(await checkEndpoint('127.0.0.2', parseEndpointCheck(`tcp:${gone}`), 1_000, loopClock), { isSuccess: false, reason: 'ECONNREFUSED' }) // prettier-ignore
})
