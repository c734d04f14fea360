import { test } from 'tap'
import { udpBackloggedBufferOctets, udpBacklogMs, udpBacklogRestMs } from '../../src/base/socket-limits.ts'
import { Backlog } from '../../src/server/backlog.ts'
import { ManualClock } from '../support/manual-clock.ts'

const roomy = 4 * 1024 * 1024
const small = udpBackloggedBufferOctets

function backlogOf(roomyOctets = roomy) {
  const clock = new ManualClock()
  const asked: number[] = []
  const stats = { backlogsTotal: 0 }
  const set = (octets: number): void => void asked.push(octets)
  return { backlog: new Backlog({ roomyOctets, set, stats }, clock), clock, asked, stats }
}

test('Backlog: a burst that is emptied in time changes nothing', async (t) => {
  const { backlog, clock, asked, stats } = backlogOf()
  for (let burst = 0; burst < 5; burst++) {
    backlog.noteLeft()
    clock.advance(udpBacklogMs - 1)
    backlog.noteLeft()
    backlog.noteEmptied()
  }
  t.same(asked, [roomy])
  t.equal(stats.backlogsTotal, 0)
})

test('Backlog: a queue that is never emptied is made short, once', async (t) => {
  const { backlog, clock, asked, stats } = backlogOf()
  for (let turn = 0; turn < 2 * udpBacklogMs; turn++) {
    backlog.noteLeft()
    clock.advance(1)
  }
  t.same(asked, [roomy, small])
  t.equal(stats.backlogsTotal, 1)
})

test('Backlog: the buffer is roomy again some seconds after the last sign of overload', async (t) => {
  const { backlog, clock, asked, stats } = backlogOf()
  backlog.noteLeft()
  clock.advance(udpBacklogMs)
  backlog.noteLeft()
  t.same(asked, [roomy, small])
  clock.advance(udpBacklogRestMs - 1)
  backlog.noteEmptied()
  backlog.noteLeft()
  clock.advance(udpBacklogRestMs - 1)
  backlog.noteEmptied()
  t.same(asked, [roomy, small], 'it counts from the last turn that left something')
  clock.advance(1)
  backlog.noteEmptied()
  t.same(asked, [roomy, small, roomy])
  clock.advance(10 * udpBacklogRestMs)
  backlog.noteEmptied()
  t.same(asked, [roomy, small, roomy])
  backlog.noteLeft()
  clock.advance(udpBacklogMs)
  backlog.noteLeft()
  t.same(asked, [roomy, small, roomy, small], 'and the next overload makes it small again')
  t.equal(stats.backlogsTotal, 2)
})

test('Backlog: a buffer that is small anyway stays as it is', async (t) => {
  const { backlog, clock, asked } = backlogOf(small)
  for (let turn = 0; turn < 10; turn++) {
    backlog.noteLeft()
    clock.advance(udpBacklogMs)
  }
  t.same(asked, [small])
})
