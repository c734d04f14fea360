/** A short run of the benchmark of nodes on one hub: every node follows, and what it costs comes out. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { join } from 'node:path'
import { test } from 'tap'

const root = join(import.meta.dirname, '..', '..')

void test('twenty nodes take every change of their hub', async (t) => {
  const args = ['bench/nodes.ts', '--nodes', '20', '--services', '100', '--seconds', '1', '--rate', '5']
  const run = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => run.kill('SIGKILL'))
  const [printed, [code]] = await Promise.all([text(run.stdout), once(run, 'exit')])
  t.equal(code, 0)
  t.match(printed, /\| nodes, zones of each \| 20, 2 \|/)
  t.match(printed, /transfers of differences; whole \| [1-9]\d*; 0 \|/)
})
