// In which order the servers of a peer are asked.
import { test } from 'tap'
import { ServerTable, type ServerHealth } from '../../src/peer/server-table.ts'
import { ManualClock } from '../support/manual-clock.ts'

const addresses = ['192.0.2.1', '192.0.2.2', '2001:db8::3'].map((host) => ({ host, port: 53 }))
const [one, two, three] = ['192.0.2.1:53', '192.0.2.2:53', '[2001:db8::3]:53']

function tableOf(families: (4 | 6)[] = [4, 6]) {
  const clock = new ManualClock()
  const table = new ServerTable(families, clock, () => 0.5)
  table.set(addresses)
  const health = new Map<string, ServerHealth>()
  const plan = () => table.plan((server) => health.get(server) ?? 'unknown').map(({ text }) => text)
  const fail = (text: string) => table.failed(table.get(text)!, 'timeout', clock.nowMs())
  const answer = (text: string, rttMs: number, times = 40) => {
    for (let time = 0; time < times; time++) table.answered(table.get(text)!, rttMs)
  }
  return { clock, table, health, plan, fail, answer }
}

test('ServerTable starts with the configured order, and leaves out other families and what is no address', async (t) => {
  t.same(tableOf().plan(), [one, two, three])
  t.same(tableOf([4]).plan(), [one, two])
  t.same(tableOf([6]).plan(), [three])
  const { table, plan } = tableOf()
  table.set([{ host: 'dns.example.org', port: 53 }, addresses[0]!, addresses[0]!, { host: 'fe80::1%eth0', port: 5353 }])
  t.same(plan(), [one, '[fe80::1%eth0]:5353'])
})

test('ServerTable orders by RTT, with a band against flapping', async (t) => {
  const rows: { name: string; rttsMs: [number, number]; want: string }[] = [
    { name: 'equal', rttsMs: [20, 20], want: one },
    { name: 'within 5 ms', rttsMs: [10, 5.1], want: one },
    { name: 'beyond 5 ms', rttsMs: [10, 4.9], want: two },
    { name: 'within 20 %', rttsMs: [100, 81], want: one },
    { name: 'beyond 20 %', rttsMs: [100, 79], want: two }
  ]
  for (const { name, rttsMs, want } of rows) {
    const { plan, answer } = tableOf()
    answer(one, rttsMs[0])
    answer(two, rttsMs[1])
    t.equal(plan()[0], want, name)
  }
  const { plan, answer } = tableOf()
  answer(one, 100)
  answer(two, 70)
  t.equal(plan()[0], two)
  answer(one, 65)
  t.equal(plan()[0], two, 'a little quicker is not enough to return')
  answer(two, 100, 1)
  t.equal(plan()[0], two, 'neither is one slow answer')
  t.equal(plan()[2], three, 'one without an RTT stays where it is')
})

test('ServerTable asks who failed later, and who is down last, but always all', async (t) => {
  const { clock, plan, fail, health, answer } = tableOf()
  fail(one)
  t.same(plan(), [two, three, one])
  clock.advance(999)
  t.same(plan(), [two, three, one], 'still resting')
  clock.advance(2)
  t.same(plan(), [one, two, three], 'one question tries it again')
  t.same(plan(), [two, three, one], 'and the next ones wait for the outcome')
  fail(one)
  clock.advance(1_999)
  t.equal(plan()[0], two, 'the second rest is twice as long')
  clock.advance(2)
  t.equal(plan()[0], one)
  answer(one, 5, 1)
  t.same(plan(), [one, two, three], 'an answer ends it')
  health.set(two, 'down')
  fail(one)
  t.same(plan(), [three, one, two], 'down is behind resting')
  health.set(one, 'down').set(three, 'down')
  t.same(plan(), [one, two, three], 'all down: all are asked')
})

test('ServerTable rests at most 10 s, and takes failures that began together for one', async (t) => {
  const { clock, table, plan, fail } = tableOf()
  const startedAtMs = clock.nowMs()
  clock.advance(400)
  for (let question = 0; question < 100; question++) table.failed(table.get(one)!, 'timeout', startedAtMs)
  t.equal(table.get(one)!.failures, 1)
  for (let round = 0; round < 10; round++) {
    clock.advance(60_000)
    fail(one)
  }
  clock.advance(9_990)
  t.equal(plan()[0], two)
  clock.advance(20)
  t.equal(plan()[0], one)
})

test('ServerTable.set keeps what is known of servers that stay', async (t) => {
  const { table, plan, answer } = tableOf()
  answer(three, 1)
  answer(one, 100)
  answer(two, 50)
  t.same(plan(), [three, two, one])
  table.set([{ host: '192.0.2.9', port: 53 }, addresses[0]!, addresses[2]!])
  t.same(plan(), [three, one, '192.0.2.9:53'])
  t.equal(table.get(one)?.rttMs, 100)
  t.equal(table.get(two), undefined)
})
