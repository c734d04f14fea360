#!/usr/bin/env node
// Runs one project task on a current Node, whatever Node started it.
//
// A clone may be opened with an old Node only. So this file uses nothing that Node 18 lacks: it installs
// what is missing (`npm ci`), puts node_modules/.bin (which holds a current `node`) first on PATH, and hands over.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join, delimiter } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build as buildInto } from './build.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const bin = join(root, 'node_modules', '.bin')
const [task, ...rest] = process.argv.slice(2)

const withBin = () => ({ ...process.env, PATH: bin + delimiter + process.env.PATH })

/** Runs a command to its end in the project's root, and gives its exit code. */
function attempt(command, args) {
  const done = spawnSync(command, args, { cwd: root, stdio: 'inherit', env: withBin() })
  if (done.error !== undefined) console.error(`${command}: ${done.error.message}`)
  return done.status ?? 1
}

/** Runs a command that has to succeed: a failure ends this process with the same exit code. */
function run(command, args) {
  const status = attempt(command, args)
  if (status !== 0) process.exit(status)
}

const node = (...args) => run(join(bin, 'node'), args)

const build = () =>
  buildInto(root, (folder) => {
    node(join(bin, 'tsc'), '-p', 'tsconfig.build.json', '--outDir', folder)
    node(join(root, 'scripts', 'bundle.mjs'), folder)
  })

/** Runs a command beside others: what it says comes at its end, with its exit code. */
const beside = (command, args) =>
  new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, env: withBin(), stdio: ['ignore', 'pipe', 'pipe'] })
    const output = []
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk))
    child.on('error', (error) => resolve({ status: 1, output: `${command}: ${error.message}\n` }))
    child.on('close', (code) => resolve({ status: code ?? 1, output: Buffer.concat(output).toString() }))
  })

/** All three at once, even if one fails; the last line counts them as every suite's does. */
const check = async () => {
  const checks = {
    types: ['node', [join(bin, 'tsc'), '--noEmit', '--pretty']],
    lint: ['oxlint', ['--type-aware', '--deny-warnings']],
    format: ['prettier', ['--check', '--log-level', 'warn', '.']]
  }
  const running = Object.entries(checks).map(([name, [command, args]]) => {
    return { name, result: beside(join(bin, command), args) }
  })
  let failed = 0
  for (const { name, result } of running) {
    const { status, output } = await result
    if (status !== 0) failed++
    console.log(`${status === 0 ? '' : output}${status === 0 ? 'ok  ' : 'FAIL'} ${name}`)
  }
  console.log(`${running.length - failed} passed, ${failed} failed`)
  process.exitCode = failed > 0 ? 1 : 0
}

const tasks = {
  build,
  dev: () => node('src/cli/main.ts', ...rest),
  check,
  format: () => run('prettier', ['--write', '--log-level', 'warn', '.']),
  test: () => {
    build()
    node(join(bin, 'tap'), ...rest)
  },
  demo: () => {
    build()
    node('dist/cli/main.js', 'demo', ...rest)
  },
  e2e: () => node('test/e2e/run.ts', ...rest),
  soak: () => node('test/soak/mutated-packets.ts', ...(rest.length > 0 ? rest : ['600'])),
  bench: () => node('bench/run.ts', ...rest),
  micro: () => node('bench/micro.ts', ...rest)
}

if (!Object.hasOwn(tasks, task)) {
  console.error(`usage: node scripts/run.mjs ${Object.keys(tasks).join('|')} [arguments]`)
  process.exit(2)
}
if (!existsSync(join(bin, 'node')) || !existsSync(join(bin, 'tap'))) {
  // `prepare` would build now; this task builds for itself where it needs to.
  run('npm', ['ci', '--ignore-scripts=false', '--no-audit', '--no-fund'])
}
await tasks[task]()
