import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import type { Test } from 'tap'
import { watchPaths } from '../../src/base/file-watch.ts'
import { giveUpAfter, loopClock, sleep } from '../support/loop-clock.ts'

/** The promise of the product: a change is noticed within this time. */
const noticedWithinMs = 200

const temporaryFolder = (t: Test): string => {
  const folder = mkdtempSync(join(tmpdir(), 'peerdns-watch-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Watches, and gives a function that makes a change and asserts that it is told in time. */
function watched(t: Test, paths: string[]) {
  let calls = 0
  let wake: (() => void) | null = null
  const watch = watchPaths(
    paths,
    () => {
      calls++
      wake?.()
    },
    loopClock
  )
  t.teardown(() => watch.close())
  return {
    watch,
    calls: () => calls,
    async expectAfter(what: string, change: () => void): Promise<void> {
      const before = calls
      const giveUp = giveUpAfter(20_000, () => wake?.())
      const woken = new Promise<void>((done) => (wake = done))
      const startMs = loopClock.nowMs()
      change()
      await woken
      giveUp()
      const tookMs = loopClock.nowMs() - startMs
      t.ok(calls > before && tookMs < noticedWithinMs, `${what}: told after ${tookMs.toFixed(0)} ms`)
    },
    async expectQuiet(what: string, forMs: number): Promise<void> {
      const before = calls
      await sleep(forMs)
      t.equal(calls, before, what)
    }
  }
}

/** What the kubelet does: a new folder of data, a new symlink, renamed over `..data`; then the old folder goes. */
function swapConfigMap(folder: string, generation: number, files: Record<string, string>): void {
  const data = `..2026_${generation}`
  mkdirSync(join(folder, data))
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, data, name), content)
  symlinkSync(data, join(folder, '..data_tmp'))
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
  for (const name of Object.keys(files)) {
    try {
      symlinkSync(join('..data', name), join(folder, name))
    } catch {
      // It is there since the first generation.
    }
  }
  if (generation > 1) rmSync(join(folder, `..2026_${generation - 1}`), { recursive: true })
}

void test('watchPaths tells every ConfigMap swap, for the folder and for a file in it', async (t) => {
  for (const name of ['folder', 'file']) {
    const folder = temporaryFolder(t)
    swapConfigMap(folder, 1, { 'peerdns.yaml': 'content 1' })
    const changes = watched(t, [name === 'folder' ? folder : join(folder, 'peerdns.yaml')])
    for (let generation = 2; generation <= 7; generation++) {
      await changes.expectAfter(`${name}, swap ${generation}`, () =>
        swapConfigMap(folder, generation, { 'peerdns.yaml': `content ${generation}` })
      )
    }
    await changes.expectQuiet('and then nothing', 150)
  }
})

void test('watchPaths tells what editors do to one file', async (t) => {
  const folder = temporaryFolder(t)
  const file = join(folder, 'a.yaml')
  writeFileSync(file, '1')
  const changes = watched(t, [file])
  await changes.expectAfter('written in place', () => writeFileSync(file, '2'))
  await changes.expectAfter('written in place, same size, old mtime', () => {
    writeFileSync(file, '3')
    utimesSync(file, 0, 0)
  })
  for (let round = 0; round < 3; round++) {
    await changes.expectAfter('renamed over', () => {
      writeFileSync(join(folder, 'a.yaml~'), '4')
      renameSync(join(folder, 'a.yaml~'), file)
    })
  }
  await changes.expectAfter('moved away', () => renameSync(file, join(folder, 'backup')))
  await changes.expectAfter('moved back', () => renameSync(join(folder, 'backup'), file))
  await changes.expectAfter('deleted', () => unlinkSync(file))
  await changes.expectAfter('made anew', () => writeFileSync(file, '5'))
  writeFileSync(join(folder, 'other.yaml'), 'a neighbour')
  await changes.expectQuiet('a neighbour is nothing to us', 150)
})

void test('watchPaths tells what happens below a folder', async (t) => {
  const folder = join(temporaryFolder(t), 'manifests')
  mkdirSync(join(folder, 'a/b'), { recursive: true })
  const elsewhere = temporaryFolder(t)
  writeFileSync(join(elsewhere, 'x.yaml'), '1')
  const changes = watched(t, [folder])
  await changes.expectAfter('new file in a subfolder', () => writeFileSync(join(folder, 'a/b/c.yaml'), '1'))
  await changes.expectAfter('new folder', () => mkdirSync(join(folder, 'd')))
  await changes.expectAfter('new file in the new folder', () => writeFileSync(join(folder, 'd/e.yaml'), '1'))
  await changes.expectAfter('folder deleted', () => rmSync(join(folder, 'd'), { recursive: true }))
  await changes.expectAfter('symlink to a folder elsewhere', () => symlinkSync(elsewhere, join(folder, 'link')))
  await changes.expectAfter('written behind the symlink', () => writeFileSync(join(elsewhere, 'x.yaml'), '2'))
  await changes.expectAfter('symlink to a file elsewhere', () =>
    symlinkSync(join(elsewhere, 'x.yaml'), join(folder, 'x.yaml'))
  )
  await changes.expectAfter('a symlink that leads round', () => symlinkSync(folder, join(folder, 'a/round')))
  await changes.expectAfter('a symlink to itself', () => symlinkSync('self', join(folder, 'self')))
  writeFileSync(join(folder, '.hidden.yaml'), '1')
  mkdirSync(join(folder, '.git'))
  await changes.expectQuiet('dot files are left out', 150)
  for (let round = 0; round < 3; round++) {
    await changes.expectAfter('the folder itself deleted', () => rmSync(folder, { recursive: true }))
    await changes.expectAfter('and made anew', () => mkdirSync(join(folder, 'a'), { recursive: true }))
    await changes.expectAfter('and filled', () => writeFileSync(join(folder, 'a/f.yaml'), String(round)))
  }
  await changes.expectAfter('deleted, made anew and filled at once', () => {
    rmSync(folder, { recursive: true })
    mkdirSync(join(folder, 'a'), { recursive: true })
    writeFileSync(join(folder, 'a/f.yaml'), '9')
  })
  await changes.expectAfter('still heard afterwards', () => writeFileSync(join(folder, 'a/f.yaml'), '10'))
})

void test('watchPaths waits for paths that do not exist, and follows a symlink far above', async (t) => {
  const base = temporaryFolder(t)
  const changes = watched(t, [join(base, 'releases/current/conf/a.yaml')])
  await changes.expectQuiet('nothing yet', 50)
  for (const release of ['1', '2', '3']) {
    mkdirSync(join(base, release, 'conf'), { recursive: true })
    writeFileSync(join(base, release, 'conf/a.yaml'), release)
  }
  mkdirSync(join(base, 'releases'))
  await changes.expectAfter('a symlink completes the path', () => symlinkSync('../1', join(base, 'releases/current')))
  for (const release of ['2', '3']) {
    await changes.expectAfter(`release ${release}`, () => {
      symlinkSync(join(base, release), join(base, 'releases/next'))
      renameSync(join(base, 'releases/next'), join(base, 'releases/current'))
    })
  }
  await changes.expectAfter('written in the last release', () => writeFileSync(join(base, '3/conf/a.yaml'), 'x'))
})

void test('watchPaths polls for what no event tells, and is silent after close', async (t) => {
  const base = temporaryFolder(t)
  const folder = join(base, 'a/b/c')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'a.yaml'), '1')
  let nowMs = 0
  const timers = new Set<() => void>()
  const clock = {
    nowMs: () => nowMs,
    epochMs: () => Date.now(),
    after: (_delayMs: number, callback: () => void) => {
      timers.add(callback)
      return () => timers.delete(callback)
    }
  }
  let calls = 0
  const watch = watchPaths([join(folder, 'a.yaml')], () => calls++, clock)
  t.equal(timers.size, 1, 'one timer: the poll')
  // No folder on the way to `a` is watched by events here; the timer alone has to find it.
  renameSync(join(base, 'a'), join(base, 'z'))
  nowMs = 1_000
  const due = [...timers]
  timers.clear()
  for (const callback of due) callback()
  t.equal(calls, 1)
  watch.close()
  t.equal(timers.size, 0, 'no timer is left')
  mkdirSync(folder, { recursive: true })
  await sleep(50)
  t.equal(calls, 1)
})
