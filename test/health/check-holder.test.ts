/**
 * Which replica checks addresses for all: one at a time, taken over after silence, and everybody for itself at the end.
 */
import { test, type Test } from 'tap'
import {
  checkAloneAfterMs,
  checkHolderRenewEveryMs,
  checkHolderSilenceMs,
  checkHolderTurnMs,
  sharedDownOctets
} from '../../src/base/endpoint-limits.ts'
import { CheckHolder, type SharedText } from '../../src/health/check-holder.ts'
import { ManualClock } from '../support/manual-clock.ts'

type Listener = Parameters<SharedText['start']>[0]
const turn = (): Promise<void> => new Promise((done) => void setImmediate(done)) // lets answers arrive

/** The API server: conditional writes one after the other, and everybody who reaches it hears of each. */
class Store {
  text: string | null = null
  writes = 0
  readonly away = new Set<string>()
  readonly refused = new Set<string>()
  readonly #listeners = new Map<string, Listener>()

  textOf(name: string): SharedText {
    return {
      start: async (listener) => {
        await turn()
        this.#listeners.set(name, listener)
        if (!this.away.has(name)) listener.onText(this.text)
      },
      change: async (edit) => {
        await turn()
        if (this.away.has(name)) throw new Error('away')
        const text = edit(this.text)
        if (text === null) return
        if (this.refused.has(name)) throw new Error('403 forbidden')
        this.writes++
        this.put(text)
      },
      close: async () => void this.#listeners.delete(name)
    }
  }

  put(text: string | null): void {
    this.text = text
    for (const [name, listener] of this.#listeners) if (!this.away.has(name)) listener.onText(text)
  }

  /** Somebody who comes back lists what is there. */
  back(name: string): void {
    this.away.delete(name)
    this.#listeners.get(name)?.onText(this.text)
  }

  get shared(): { holder: string; renewal: number; down: string[] } {
    return JSON.parse(this.text ?? 'null') as { holder: string; renewal: number; down: string[] }
  }
}

function ground(t: Test) {
  const clock = new ManualClock()
  const store = new Store()
  const replicas = new Map<string, CheckHolder>()
  const add = (name: string, down = new Set<string>()) => {
    const problems: (string | null)[] = []
    const own = new Set<string>()
    const holder = new CheckHolder({
      clock,
      text: store.textOf(name),
      identity: name,
      down,
      ownDown: () => own,
      onChange: () => {},
      onProblem: (problem) => problems.push(problem)
    })
    t.teardown(async () => holder.close())
    holder.start()
    replicas.set(name, holder)
    return { holder, own, problems }
  }
  const pass = async (ms: number): Promise<void> => {
    for (let passedMs = 0; passedMs < ms; passedMs += 100) {
      clock.advance(100)
      for (let again = 0; again < 3; again++) await turn()
    }
  }
  const roles = (): string => [...replicas].map(([name, { role }]) => `${name} ${role}`).join(', ')
  return { clock, store, add, pass, roles }
}

test('CheckHolder: the first one holds, the others follow, and results reach them', async (t) => {
  const { store, add, pass, roles } = ground(t)
  const a = add('a')
  await pass(checkHolderTurnMs)
  const [b, c] = [add('b'), add('c')]
  await pass(1_000)
  t.equal(roles(), 'a holding, b following, c following')
  const before = store.writes
  await pass(30_000)
  t.equal(roles(), 'a holding, b following, c following')
  const writes = store.writes - before
  t.ok(writes <= 30_000 / checkHolderRenewEveryMs + 1 && writes >= 10, `${writes} writes in 30 s`)
  a.own.add('tcp:80 10.0.0.1')
  a.holder.ownDownChanged()
  await pass(checkHolderTurnMs)
  t.same([[...b.holder.down], [...c.holder.down]], [['tcp:80 10.0.0.1'], ['tcp:80 10.0.0.1']])
  a.own.clear()
  a.holder.ownDownChanged()
  await pass(checkHolderTurnMs)
  t.equal(b.holder.down.size, 0)
})

test('CheckHolder: several that begin at once agree on one', async (t) => {
  const { add, pass, roles } = ground(t)
  for (const name of ['a', 'b', 'c', 'd', 'e']) add(name)
  await pass(10_000)
  t.equal(roles().match(/holding/g)?.length, 1, roles())
  t.equal(roles().match(/following/g)?.length, 4)
})

test('CheckHolder: one that falls silent loses its place, and what it found stays', async (t) => {
  const { store, add, pass, roles } = ground(t)
  const a = add('a')
  await pass(checkHolderTurnMs * 2)
  const b = add('b')
  a.own.add('tcp:80 10.0.0.1')
  a.holder.ownDownChanged()
  await pass(3_000)
  store.away.add('a')
  await pass(checkHolderSilenceMs - checkHolderRenewEveryMs - 2 * checkHolderTurnMs)
  t.equal(roles(), 'a holding, b following', 'not too soon')
  await pass(checkHolderRenewEveryMs + 4 * checkHolderTurnMs)
  t.equal(roles(), 'a holding, b holding', 'who was cut off checks on for itself')
  t.same([...b.holder.down], ['tcp:80 10.0.0.1'], 'from where the last one was')
  t.same(store.shared.down, ['tcp:80 10.0.0.1'])
  store.back('a')
  await pass(checkHolderTurnMs)
  t.equal(roles(), 'a following, b holding', 'and follows once it hears of the other')
  t.equal(a.holder.holder, 'b')
})

test('CheckHolder: one that ends gives its place up', async (t) => {
  const { store, add, pass, roles } = ground(t)
  const a = add('a')
  await pass(1_000)
  add('b')
  a.own.add('tcp:80 10.0.0.1')
  a.holder.ownDownChanged()
  await pass(1_000)
  await a.holder.close()
  t.match(store.shared, { holder: '', down: ['tcp:80 10.0.0.1'] })
  await pass(3 * checkHolderTurnMs)
  t.match(roles(), /b holding/)
  t.match(store.shared, { holder: 'b', down: ['tcp:80 10.0.0.1'] })
})

test('CheckHolder: nobody is heard and the place cannot be taken: each for itself, until somebody is heard', async (t) => {
  const { store, add, pass, roles } = ground(t)
  add('a')
  await pass(1_000)
  const b = add('b', new Set(['tcp:80 10.0.0.9']))
  store.away.add('b')
  await pass(checkAloneAfterMs - 2_000)
  t.equal(roles(), 'a holding, b following')
  t.same([...b.holder.down], ['tcp:80 10.0.0.9'], 'goes on with the last results')
  t.equal(b.problems.at(-1), 'away')
  await pass(2_000 + checkHolderTurnMs)
  t.equal(roles(), 'a holding, b alone')
  store.back('b')
  await pass(checkHolderRenewEveryMs + checkHolderTurnMs)
  t.equal(roles(), 'a holding, b following')
  t.equal(b.holder.down.size, 0)
})

test('CheckHolder: no right to write is as bad as nobody there', async (t) => {
  const { store, add, pass, roles } = ground(t)
  store.refused.add('a').add('b')
  const a = add('a')
  add('b')
  await pass(checkAloneAfterMs + checkHolderTurnMs)
  t.equal(roles(), 'a alone, b alone')
  t.match(a.problems.at(-1), /403/)
  store.refused.clear()
  await pass(5_000)
  t.equal(roles().match(/holding/g)?.length, 1, roles())
  t.equal(roles().match(/following/g)?.length, 1)
  t.equal(a.problems.at(-1), null)
})

test('CheckHolder: clocks that jump, texts that are nonsense or gone', async (t) => {
  const { clock, store, add, pass, roles } = ground(t)
  add('a')
  await pass(1_000)
  add('b')
  await pass(1_000)
  clock.setEpochMs(0)
  await pass(10_000)
  t.equal(roles(), 'a holding, b following', 'the wall clock does not matter')
  for (const text of [null, '', '{', '[]', 'null', '{"holder":1}', '{"holder":"a","renewal":1.5,"down":[]}', `{"holder":"","renewal":1,"down":[1,null,"tcp:80 10.0.0.1"]}`]) {
    store.put(text)
    await pass(5_000)
    t.equal(roles().match(/holding/g)?.length, 1, `${text}: ${roles()}`)
    t.equal(roles().match(/following/g)?.length, 1, `${text}: ${roles()}`)
  } // prettier-ignore
})

test('CheckHolder: what is shared has a bound', async (t) => {
  const { store, add, pass } = ground(t)
  const a = add('a')
  await pass(1_000)
  for (let at = 0; at < 2_000; at++) a.own.add(`http:80/${'x'.repeat(200)} 10.0.${at >> 8}.${at & 0xff}`)
  a.holder.ownDownChanged()
  await pass(checkHolderTurnMs)
  t.ok(store.text!.length < sharedDownOctets + 200, `${store.text!.length} octets`)
  t.ok(store.shared.down.length > 500)
})

test('CheckHolder: a text that hangs does not keep it from checking by itself, nor from ending', async (t) => {
  const clock = new ManualClock()
  const holder = new CheckHolder({
    clock,
    text: {
      start: async () => new Promise(() => {}),
      change: async () => new Promise(() => {}),
      close: async () => {}
    },
    identity: 'a',
    down: new Set(),
    ownDown: () => new Set(),
    onChange: () => {},
    onProblem: () => {}
  })
  holder.start()
  clock.advance(checkAloneAfterMs + checkHolderTurnMs)
  t.equal(holder.role, 'alone')
  await holder.close()
  t.equal(clock.pendingTimers, 0)
})
