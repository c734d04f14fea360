// When a server that passes its probes is doubted, and when it is trusted again; on a clock moved by hand.
import { test, type Test } from 'tap'
import { doubt as limits } from '../../src/base/limits.ts'
import type { ProbeReply } from '../../src/health/probe.ts'
import { TrafficDoubt, type DoubtChange } from '../../src/health/traffic-doubt.ts'
import { RRTYPE } from '../../src/wire/iana.ts'
import { nameToText, parseName } from '../../src/wire/name.ts'
import { ManualClock } from '../support/manual-clock.ts'

const good: ProbeReply = { kind: 'answer', sections: { rcode: 0, answer: [null] }, hasSoa: false }
const half: ProbeReply = { kind: 'answer', sections: { rcode: 0, answer: [] }, hasSoa: false }
const timeout: ProbeReply = { kind: 'failed', reason: 'timeout', rcode: null }
const of = (text: string) => ({ name: parseName(`${text}.svc.cluster.local`), type: RRTYPE.A })

/** Lets promises that are ready go on. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
}

function doubtOf(t: Test, answers: (label: string) => ProbeReply = () => timeout, isDown = () => false) {
  const clock = new ManualClock()
  const changes: DoubtChange[] = []
  const asked: string[] = []
  const doubt = new TrafficDoubt({
    clock,
    probeName: of('probe').name,
    servers: () => ['a', 'b'],
    isDown,
    ask: async (_server, { name }, timeoutMs) => {
      const label = nameToText(name).split('.')[0]!
      asked.push(label)
      const reply = answers(label)
      if (reply !== timeout) return reply
      return new Promise((resolve) => clock.after(timeoutMs, () => resolve(reply)))
    },
    onChange: (change) => changes.push(change)
  })
  t.teardown(() => doubt.stop())
  const pass = async (ms: number): Promise<void> => {
    for (let step = 0; step < ms / 10; step++) {
      clock.advance(10)
      await settle()
    }
  }
  const fail = (count: number, outcome = 'timeout'): void => {
    for (let at = 0; at < count; at++) doubt.observe('a', outcome, of(`silent-${at}`))
  }
  return { doubt, changes, asked, pass, fail }
}

test('a server that fails so many names in a row is doubted, and trusted at the first answer to a trial', async (t) => {
  let reply: ProbeReply = timeout
  const { doubt, changes, asked, pass, fail } = doubtOf(t, () => reply)
  fail(limits.names - 1)
  await settle()
  t.notOk(doubt.isDoubtful('a'), 'not yet')
  fail(limits.names, 'nonsense')
  await settle()
  t.ok(doubt.isDoubtful('a'))
  t.ok(doubt.isAny)
  t.notOk(doubt.isDoubtful('b'), 'the other one')
  await pass(5 * (limits.trialMs + limits.timeoutMs))
  t.ok(asked.length >= 4, 'it is tried all the time')
  t.equal(changes.length, 1, 'told once')
  reply = half
  await pass(2 * (limits.trialMs + limits.timeoutMs))
  t.ok(doubt.isDoubtful('a'), 'half an answer is none')
  reply = good
  await pass(2 * (limits.trialMs + limits.timeoutMs))
  t.notOk(doubt.isDoubtful('a'))
  t.notOk(doubt.isAny)
  t.match(changes, [
    { server: 'a', isDoubtful: true },
    { server: 'a', isDoubtful: false }
  ])
})

test('a few silent names do not make a server doubtful that answers what it answered before', async (t) => {
  const { doubt, changes, asked, pass, fail } = doubtOf(t, (label) => (label === 'good' ? good : timeout))
  doubt.observe('a', 'answer', of('good'))
  for (let round = 0; round < 3; round++) {
    fail(20)
    await pass(2 * limits.timeoutMs)
  }
  t.same(changes, [])
  t.ok(asked.length >= 3 && asked.every((label) => label === 'good'), 'it was asked for what it knows')
})

test('what it answered before decides: all of it silent, it is doubted', async (t) => {
  const { doubt, pass, fail } = doubtOf(t)
  doubt.observe('a', 'answer', of('good'))
  fail(limits.names)
  await settle()
  t.notOk(doubt.isDoubtful('a'), 'not before the check is over')
  await pass(limits.timeoutMs + 20)
  t.ok(doubt.isDoubtful('a'))
  doubt.observe('a', 'answer', of('good'))
  t.notOk(doubt.isDoubtful('a'), 'an answer to a client ends it too')
})

test('error codes for one name after the other count as silence does', async (t) => {
  const refused: ProbeReply = { kind: 'failed', reason: 'rcode', rcode: 5 }
  const { doubt, changes, asked, pass, fail } = doubtOf(t, () => refused)
  doubt.observe('a', 'answer', of('good'))
  fail(limits.names, 'rcode')
  await settle()
  t.ok(doubt.isDoubtful('a'))
  t.same(asked, ['good'], 'what it answered before was asked once more')
  await pass(10 * limits.trialMs)
  t.equal(changes.length, 1)
})

test('a broken zone costs the others a moment, once: what clients ask meanwhile is tried, and remembered', async (t) => {
  const refused: ProbeReply = { kind: 'failed', reason: 'rcode', rcode: 5 }
  const { doubt, changes, asked, pass, fail } = doubtOf(t, (label) => (label === 'other' ? good : refused))
  fail(limits.names, 'rcode')
  await settle()
  t.ok(doubt.isDoubtful('a'), 'nothing else was ever asked')
  await pass(3 * limits.trialMs)
  t.ok(doubt.isDoubtful('a'))
  doubt.passedOver(of('probe'))
  await pass(3 * limits.trialMs)
  t.ok(doubt.isDoubtful('a'), 'the name that probes ask for proves nothing')
  doubt.passedOver(of('other'))
  await pass(2 * limits.trialMs + 50)
  t.notOk(doubt.isDoubtful('a'))
  const { length } = asked
  for (let round = 0; round < 20; round++) {
    fail(20, 'rcode')
    await pass(100)
  }
  t.notOk(doubt.isDoubtful('a'))
  t.equal(changes.length, 2, 'doubted once, trusted once')
  t.ok(asked.length - length <= 1 + 2_000 / limits.trialMs, `${asked.length - length} checks in 2 s`)
  t.ok(asked.slice(length).every((label) => label === 'other'))
})

test('what fails at a server that is down says nothing more of it', async (t) => {
  let isDown = false
  const { doubt, changes, asked, pass, fail } = doubtOf(
    t,
    () => timeout,
    () => isDown
  )
  fail(limits.names - 1)
  isDown = true
  fail(limits.names)
  isDown = false
  fail(limits.names - 1)
  await settle()
  t.same(changes, [], 'failures before it was down are those of its end, and not counted on either')
  doubt.observe('a', 'answer', of('good'))
  fail(limits.names)
  isDown = true
  await pass(limits.timeoutMs + 20)
  t.same(asked, ['good'])
  t.same(changes, [], 'it went down while it was asked again')
})

test('a server in doubt that goes down is tried on with what failed before', async (t) => {
  let isDown = false
  const { doubt, asked, pass, fail } = doubtOf(
    t,
    () => timeout,
    () => isDown
  )
  fail(limits.names)
  await settle()
  t.ok(doubt.isDoubtful('a'))
  isDown = true
  fail(limits.names)
  await pass(3 * (limits.trialMs + limits.timeoutMs))
  t.ok(asked.length >= 2, 'tried')
  t.ok(asked.every((label) => label.startsWith('silent-')))
  t.ok(doubt.isDoubtful('a'))
})

test('one name alone, answers in between, old failures, what is abandoned and the name of the probe', async (t) => {
  const { doubt, changes, pass, fail } = doubtOf(t, (label) => (label === 'good' ? good : timeout))
  for (let at = 0; at < 100; at++) doubt.observe('a', 'timeout', of('one'))
  fail(limits.names, 'abandoned')
  fail(limits.names, 'truncated')
  doubt.observe('a', 'answer', of('good'))
  fail(limits.names - 1)
  doubt.observe('a', 'answer', of('good'))
  fail(limits.names - 1)
  await pass(limits.windowMs + 10)
  fail(limits.names - 1)
  await pass(1_000)
  t.same(changes, [])
  const other = doubtOf(t)
  other.fail(limits.names - 1)
  other.doubt.observe('a', 'answer', of('probe'))
  other.doubt.observe('a', 'timeout', of('last'))
  await settle()
  t.ok(other.doubt.isDoubtful('a'), 'the name that probes ask for proves nothing')
})
