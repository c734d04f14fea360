import { test } from 'tap'
import { hedgeBurst, hedgeShare } from '../../src/base/limits.ts'
import { HedgeBudget, UsualTime } from '../../src/peer/latency.ts'
import { replyToText, southAnswers, southPeer, southQuestion, southStub } from '../support/south-peer.ts'

test('UsualTime is the 95th percentile of the latest measurements', async (t) => {
  const usual = new UsualTime()
  for (let at = 0; at < 19; at++) usual.add(10)
  t.equal(usual.percentileMs, null, 'too few of them')
  usual.add(500)
  t.equal(usual.percentileMs, 10, 'one in twenty is no habit')
  for (let at = 0; at < 8; at++) usual.add(500)
  t.equal(usual.percentileMs, 500)
  for (let at = 0; at < 200; at++) usual.add(20)
  t.equal(usual.percentileMs, 20, 'old ones are forgotten')
})

test('HedgeBudget gives a few in a row, and then its share', async (t) => {
  const budget = new HedgeBudget()
  let spent = 0
  const questions = 10_000
  for (let at = 0; at < questions; at++) {
    budget.earn()
    if (budget.trySpend()) spent++
  }
  t.ok(spent <= questions * hedgeShare + hedgeBurst, `${spent} of ${questions}`)
  t.ok(spent >= questions * hedgeShare - 1)
})

test('Peer.ask: a server that takes longer than usual has another one asked, for a few questions only', async (t) => {
  const [one, two] = [await southStub(t), await southStub(t)]
  const peer = southPeer(t, [one, two])
  for (let at = 0; at < 40; at++) await peer.ask(southQuestion(`n${at}`), 1_000)
  const [first, second] = one.queries.length >= two.queries.length ? [one, two] : [two, one]
  const before = first.queries.length + second.queries.length
  // Slower than usual, but not so slow that it has failed.
  first.fault = 'slow'
  first.delayMs = 60
  const questions = 40
  for (let at = 0; at < questions; at++) {
    const reply = await peer.ask(southQuestion(`n${40 + at}`), 1_000)
    t.equal(replyToText(reply), southAnswers.n)
  }
  const extra = first.queries.length + second.queries.length - before - questions
  t.ok(peer.stats.hedged > 0 && peer.stats.hedged <= questions * hedgeShare + hedgeBurst, `${peer.stats.hedged} times`)
  t.ok(extra <= questions * hedgeShare + hedgeBurst, `${extra} more than questions`)
  t.equal(peer.status().servers.find(({ server }) => server === first.text)?.failures, 0, 'nobody has failed')
})
