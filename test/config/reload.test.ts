import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import type { Test } from 'tap'
import type { Clock } from '../../src/base/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/problem.ts'
import { ConfigWatcher } from '../../src/config/reload.ts'
import { giveUpAfter, loopClock, sleep } from '../support/loop-clock.ts'
import { ManualClock } from '../support/manual-clock.ts'

const load = { home: '/home/user' }
const right = (name: string): string => `cluster: {name: ${name}, source: {manifests: [m]}}\n`
const wrong = 'cluster: {nam: x}\n'

/** A watcher on a file that is there, with everything it told; `next` waits for one more thing to be told. */
function watching(t: Test, file: string, options: { refuse?: (name: string) => void; clock?: Clock } = {}) {
  const { refuse, clock = loopClock } = options
  const told: string[] = []
  let wake: (() => void) | null = null
  const tell = (what: string): void => {
    told.push(what)
    wake?.()
  }
  const watcher = new ConfigWatcher({
    file,
    load,
    clock,
    hash: loadConfig(file, load).hash,
    onLoaded(config) {
      refuse?.(config.cluster.name)
      tell(config.cluster.name)
    },
    onProblem: (error) => tell(error.problems.map(({ message }) => message).join(', '))
  })
  t.teardown(() => watcher.close())
  const next = async (change: () => void): Promise<string | undefined> => {
    const before = told.length
    const giveUp = giveUpAfter(20_000, () => wake?.())
    const woken = new Promise<void>((done) => (wake = done))
    change()
    await woken
    giveUp()
    return told[before]
  }
  return { watcher, told, next }
}

const quiet = (): Promise<void> => sleep(250)

const temporaryFolder = (t: Test): string => {
  const folder = mkdtempSync(join(tmpdir(), 'peerdns-reload-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

void test('ConfigWatcher tells each new content once, and each mistake once', async (t) => {
  const file = join(temporaryFolder(t), 'peerdns.yaml')
  writeFileSync(file, right('a'))
  const { watcher, told, next } = watching(t, file)
  t.equal(await next(() => writeFileSync(file, right('b'))), 'b')
  t.match(await next(() => writeFileSync(file, wrong)), /unknown key `nam`/)
  t.equal(await next(() => writeFileSync(file, right('b'))), 'b', 'back to what is in use: the problem is over')
  const renamed = (): void => {
    writeFileSync(`${file}.new`, right('c'))
    renameSync(`${file}.new`, file)
  }
  t.equal(await next(renamed), 'c', 'renamed over')
  t.equal(await next(() => unlinkSync(file)), 'there is no such file')
  t.equal(await next(() => writeFileSync(file, right('d'))), 'd', 'deleted and made anew')
  const before = told.length
  utimesSync(file, 1, 1)
  writeFileSync(file, right('d'))
  await quiet()
  t.equal(told.length, before, 'touched, or written as it was')
  t.same(watcher.stats, { loaded: 4, refused: 2 })
  watcher.close()
  writeFileSync(file, right('e'))
  await quiet()
  t.equal(told.length, before, 'nothing after close')
})

void test('ConfigWatcher.check reads at once, and says whether there was something new', async (t) => {
  const file = join(temporaryFolder(t), 'peerdns.yaml')
  writeFileSync(file, right('a'))
  // Time stands still: what a watch of the file sees, it would tell later.
  const { watcher, told } = watching(t, file, { clock: new ManualClock() })
  t.equal(watcher.check(), false)
  writeFileSync(file, right('b'))
  t.equal(watcher.check(), true)
  writeFileSync(file, wrong)
  t.equal(watcher.check(), true)
  t.equal(watcher.check(), false, 'told once')
  t.match(told, ['b', /unknown key `nam`/])
  watcher.close()
  writeFileSync(file, right('c'))
  t.equal(watcher.check(), false, 'nothing after close')
})

void test('ConfigWatcher follows a ConfigMap through many swaps', async (t) => {
  const folder = temporaryFolder(t)
  const swap = (name: string): void => {
    mkdirSync(join(folder, `..${name}`))
    writeFileSync(join(folder, `..${name}`, 'peerdns.yaml'), right(name))
    symlinkSync(`..${name}`, join(folder, '..data_tmp'))
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  }
  swap('g0')
  const file = join(folder, 'peerdns.yaml')
  symlinkSync('..data/peerdns.yaml', file)
  const { next } = watching(t, file)
  for (const name of ['g1', 'g2', 'g3', 'g4', 'g5']) t.equal(await next(() => swap(name)), name)
})

void test('ConfigWatcher finds a change made before it watched, and survives whoever takes the configuration over', async (t) => {
  const file = join(temporaryFolder(t), 'peerdns.yaml')
  writeFileSync(file, right('a'))
  const { told, next } = watching(t, file, {
    refuse: (name) => {
      if (name === 'refused')
        throw new ConfigError([{ file, line: 1, column: 1, path: '', message: 'not while running' }])
      if (name === 'bug') throw new TypeError('a bug')
    }
  })
  t.equal(await next(() => writeFileSync(file, right('b'))), 'b', 'written in the same moment')
  t.equal(await next(() => writeFileSync(file, right('refused'))), 'not while running')
  t.equal(await next(() => writeFileSync(file, right('bug'))), 'the configuration could not be taken over: a bug')
  t.equal(await next(() => writeFileSync(file, right('c'))), 'c')
  t.equal(told.length, 4)
})
