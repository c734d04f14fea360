#!/usr/bin/env node
// Runs one project task on a current Node, whatever Node started it.
//
// A clone may be opened with an old Node only. So this file uses nothing that Node 18 lacks: it installs
// what is missing (`npm ci`), puts node_modules/.bin (which holds a current `node`) first on PATH, and hands over.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join, delimiter } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build as buildInto } from './build.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const bin = join(root, 'node_modules', '.bin')
const [task, ...rest] = process.argv.slice(2)

/** Runs a command to its end in the project's root, and gives its exit code. */
function attempt(command, args) {
  const path = bin + delimiter + process.env.PATH
  const done = spawnSync(command, args, { cwd: root, stdio: 'inherit', env: { ...process.env, PATH: path } })
  if (done.error !== undefined) console.error(`${command}: ${done.error.message}`)
  return done.status ?? 1
}

/** Runs a command that has to succeed: a failure ends this process with the same exit code. */
function run(command, args) {
  const status = attempt(command, args)
  if (status !== 0) process.exit(status)
}

const node = (...args) => run(join(bin, 'node'), args)

const build = () => buildInto(root, (folder) => node(join(bin, 'tsc'), '-p', 'tsconfig.build.json', '--outDir', folder))

/** All three, even if the first one fails; the last line counts them as every suite's does. */
const check = () => {
  const checks = {
    types: () => attempt(join(bin, 'node'), [join(bin, 'tsc'), '--noEmit']),
    lint: () => attempt('oxlint', ['--type-aware', '--deny-warnings']),
    format: () => attempt('prettier', ['--check', '--log-level', 'warn', '.'])
  }
  const failed = Object.keys(checks).filter((name) => {
    const status = checks[name]()
    console.log(`${status === 0 ? 'ok  ' : 'FAIL'} ${name}`)
    return status !== 0
  })
  console.log(`${Object.keys(checks).length - failed.length} passed, ${failed.length} failed`)
  process.exitCode = failed.length > 0 ? 1 : 0
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
tasks[task]()
