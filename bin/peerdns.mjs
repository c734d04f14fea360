#!/usr/bin/env node
// The installed command. Under a Node older than package.json's `engines` it hands over to the npm package `node`
// beside it where there is one (a clone has it), and else says plainly what is missing.
import { existsSync } from 'node:fs'
import module from 'node:module'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'

const [major, minor] = process.versions.node.split('.').map(Number)
const isCurrent = major > 22 || (major === 22 && minor >= 19)
// What the compiler made, joined into a few files; where esbuild is not installed there is only what the compiler made.
const entries = ['bundle', 'cli'].map((folder) => fileURLToPath(new URL(`../dist/${folder}/main.js`, import.meta.url)))
const entry = entries.find((file) => existsSync(file))
const localNode = fileURLToPath(new URL('../node_modules/node/bin/node', import.meta.url))
/** Set for the process that is handed over to: it ends with the one that did so. */
const handedOver = 'PEERDNS_HANDED_OVER'

const endAtOnce = () => process.kill(process.pid, 'SIGKILL')

if (handedOver in process.env && process.send !== undefined) {
  delete process.env[handedOver]
  // Who hands over passes signals on and waits for our end. Where it is gone before that it was killed, and that was
  // meant for us. The channel closes with it; it keeps no command running that is done.
  if (!process.connected) endAtOnce()
  process.on('disconnect', endAtOnce)
  process.channel?.unref()
}

if (entry === undefined) {
  console.error('peerdns is not built yet: run `npm ci` (or `npm run build`) in this folder first')
  process.exit(2)
} else if (isCurrent) {
  // Reading code takes much memory once, so that V8's young generation would grow and stay large: src/main/memory.ts lets
  // it grow later. Compiled code is found again only under the same flags: this comes before.
  setFlagsFromString('--semi-space-growth-factor=1')
  // It has a few MB at most: threads that help to collect it are waited for longer than they help.
  setFlagsFromString('--no-parallel-scavenge')
  // Compiled code is kept in the temporary folder where that can be written, for a quicker next start.
  module.enableCompileCache()
  // What one file of a package says of another one by its path is taken at its word: looking each of 1,600 such paths
  // up in the file system takes a fifth of the start.
  module.registerHooks({
    resolve(specifier, context, next) {
      const isPath = specifier.startsWith('./') || specifier.startsWith('../')
      if (!isPath || !specifier.endsWith('.js') || !context.conditions.includes('import'))
        return next(specifier, context)
      return { url: new URL(specifier, context.parentURL).href, shortCircuit: true }
    }
  })
  await import(entry)
} else if (existsSync(localNode)) {
  // Takes a while to load, and is needed here alone.
  const { spawn } = await import('node:child_process')
  const child = spawn(localNode, process.argv.slice(1), {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    // Ctrl-C reaches every process of a terminal's group: outside of it the child hears of it once, from us.
    detached: true,
    env: { ...process.env, [handedOver]: '1' }
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)))
} else {
  console.error(`peerdns needs Node 22.19 or newer; this is ${process.versions.node}`)
  process.exit(2)
}
