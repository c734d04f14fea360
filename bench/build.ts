/**
 * peerdns compiled as it is shipped, but into a folder of its own: what is measured stays the same while somebody edits or builds.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { PeerdnsProgram } from './rivals/peerdns.ts'

/** @throws Error when the sources do not compile. */
export function buildPeerdns(root: string): PeerdnsProgram {
  const folder = join(root, '.cache', 'bench', 'peerdns')
  const dist = join(folder, 'dist')
  rmSync(dist, { recursive: true, force: true })
  const compiler = join(root, 'node_modules', '.bin', 'tsc')
  const args = [compiler, '-p', 'tsconfig.build.json', '--outDir', dist]
  const done = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' })
  if (done.status !== 0) throw new Error(`peerdns does not compile:\n${done.stdout}${done.stderr}`)
  // The server reads its version there.
  copyFileSync(join(root, 'package.json'), join(folder, 'package.json'))
  return { node: process.execPath, nodeOptions: [], main: join(dist, 'cli', 'main.js') }
}
