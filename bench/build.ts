/**
 * peerdns compiled as it is shipped, but into a folder of its own: what is measured stays the same while somebody edits
 * or builds.
 */
import { copyFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { runToEnd } from './children.ts'
import type { PeerdnsProgram } from './rivals/peerdns.ts'
import type { ServerPlan } from './rivals/server-plan.ts'

const bundleScript = join('scripts', 'bundle.mjs')
const compileTimeoutMs = 120_000
const installedCommand = join('bin', 'peerdns.mjs')

/** @param logFolder where the compiler's output may lie. @throws Error when the sources do not compile. */
export async function buildPeerdns(root: string, logFolder: string): Promise<PeerdnsProgram> {
  const folder = join(root, '.cache', 'bench', 'peerdns')
  const dist = join(folder, 'dist')
  rmSync(dist, { recursive: true, force: true })
  const [stdoutFile, stderrFile] = [join(logFolder, 'build.out'), join(logFolder, 'build.err')]
  const options = { core: null, cwd: root, timeoutMs: compileTimeoutMs, stdoutFile, stderrFile }
  const compile = [join(root, 'node_modules', '.bin', 'tsc'), '-p', 'tsconfig.build.json', '--outDir', dist]
  for (const args of [compile, [bundleScript, dist]]) {
    const code = await runToEnd(process.execPath, args, options)
    if (code === 0) continue
    const said = [stdoutFile, stderrFile].map((file) => readFileSync(file, 'utf8')).join('')
    throw new Error(`peerdns does not compile:\n${said}`)
  }
  mkdirSync(join(folder, 'bin'), { recursive: true })
  // The server reads its version in package.json.
  for (const file of ['package.json', installedCommand]) copyFileSync(join(root, file), join(folder, file))
  return { node: process.execPath, nodeOptions: [], main: join(folder, installedCommand) }
}

/** The same where no compiled code is kept or found: as a first start is. */
export const withoutCompiledCode = (plan: ServerPlan): ServerPlan => ({
  ...plan,
  command: 'env',
  args: ['NODE_DISABLE_COMPILE_CACHE=1', plan.command, ...plan.args]
})
