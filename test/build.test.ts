/** `npm run build`, and the tasks that build first: once for the same sources, and beside one another. */
import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

/** A clone with a few files of source. */
function smallClone(t: Test): string {
  const folder = t.testdir({
    src: {
      cli: { 'main.ts': "console.log('one')\n" },
      main: { threads: { 'worker.ts': "console.log('worker')\n" } },
      'more.ts': 'export const more = 1\n'
    }
  })
  for (const path of ['scripts', 'package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json']) {
    cpSync(join(root, path), join(folder, path), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

async function run(folder: string, task: string): Promise<{ code: number | null; out: string }> {
  const child = spawn(process.execPath, ['scripts/run.mjs', task], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit']
  })
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  return new Promise((done) => void child.once('close', (code) => done({ code, out })))
}

test('build', async (t) => {
  const folder = smallClone(t)
  const dist = join(folder, 'dist')
  const written = (): number => statSync(join(dist, 'cli/main.js')).mtimeMs
  const leftovers = (): string[] => readdirSync(folder).filter((name) => name.includes('dist') && name !== 'dist')

  const both = await Promise.all([run(folder, 'demo'), run(folder, 'demo')])
  t.same(both, [0, 1].map(() => ({ code: 0, out: 'one\n' })), 'two at once, each with a whole dist') // prettier-ignore
  t.same(readdirSync(dist).filter((name) => name.endsWith('.js')), ['more.js']) // prettier-ignore
  t.match(readFileSync(join(dist, 'more.js.map'), 'utf8'), '"../src/more.ts"', 'source maps lead to the sources')
  t.same(leftovers(), [])

  const first = written()
  t.equal((await run(folder, 'build')).code, 0)
  t.equal(written(), first, 'the same sources: nothing is built')

  rmSync(join(dist, 'more.js'))
  t.equal((await run(folder, 'build')).code, 0)
  t.ok(statSync(join(dist, 'more.js')).isFile(), 'a file that is missing comes back')

  rmSync(join(folder, 'src/more.ts'))
  writeFileSync(join(folder, 'src/cli/main.ts'), "console.log('two')\n")
  mkdirSync(join(folder, '.dist-new-1'))
  t.equal((await run(folder, 'demo')).out, 'two\n', 'a change is built')
  t.same(readdirSync(dist).filter((name) => name.endsWith('.js')), [], 'and what has no source any more goes') // prettier-ignore
  t.same(leftovers(), ['.dist-new-1'], 'what another build is at stays')

  writeFileSync(join(folder, 'src/cli/main.ts'), 'const number: number = "text"\n')
  t.not((await run(folder, 'build')).code, 0, 'a mistake')
  t.same(leftovers(), ['.dist-new-1'])
  writeFileSync(join(folder, 'src/cli/main.ts'), "console.log('two')\n")
  t.equal((await run(folder, 'demo')).out, 'two\n', 'and what was built before is still there')
})
