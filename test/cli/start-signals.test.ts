/** Signals that reach `peerdns serve` before its start is over, and the end of whoever started it under an old Node. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { open } from 'node:fs/promises'
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import type { StatusJson } from '../../src/admin/api-types.ts'
import { silentLog } from '../../src/base/log.ts'
import { loadConfig } from '../../src/config/load.ts'
import { buildServer } from '../../src/main.ts'
import { loadOptions } from '../../src/main/load-options.ts'

const entry = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

const config = (folder: string, rest = ''): string => `cluster: {name: north, source: {manifests: ["${folder}"]}}
listen: ["127.0.0.1:0"]
admin: "127.0.0.1:0"
forward: []
${rest}`

type Started = Readonly<{
  child: ChildProcess
  /** Lets the configuration be read: `read` now, and what stands in its place from then on. */
  letGo(read: string, later: string): Promise<void>
  /** The addresses of the log line that says so. */
  listening: Promise<{ port: number }>
  ended: Promise<number | string | null>
}>

/**
 * A server that is in the middle of its start until it is let go: its configuration is a pipe that nobody has written
 * to.
 */
async function startedHalfway(t: Test): Promise<Started> {
  const folder = t.testdir({ objects: {} })
  const file = join(folder, 'config.yaml')
  execFileSync('mkfifo', [file])
  const child = spawn(process.execPath, [entry, 'serve', '--config', file], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  let out = ''
  const listening = Promise.withResolvers<{ port: number }>()
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
    const line = out.split('\n').find((line) => line.includes('"msg":"listening"') && line.endsWith('}'))
    if (line !== undefined) listening.resolve((JSON.parse(line) as { admin: { port: number } }).admin)
  })
  const ended = new Promise<number | string | null>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal))
  })
  void ended.then((how) => listening.reject(new Error(`the server ended (${how})`)))
  listening.promise.catch(() => {})
  // Resolves when the server has opened the other end.
  const pipe = await open(file, 'w')
  const letGo = async (read: string, later: string): Promise<void> => {
    writeFileSync(`${file}.new`, later)
    renameSync(`${file}.new`, file)
    await pipe.writeFile(read)
    await pipe.close()
  }
  return { child, letGo, listening: listening.promise, ended }
}

test('SIGHUP while the server starts: it starts, and reads its configuration again', async (t) => {
  const { child, letGo, listening, ended } = await startedHalfway(t)
  child.kill('SIGHUP')
  const content = config(join(t.testdirName, 'objects'))
  await letGo(content, `${content}policies: [{name: p, dnsName: default.svc.cluster.local, targets: [local]}]\n`)
  const admin = await listening
  let status: StatusJson
  do {
    const response = await fetch(`http://127.0.0.1:${admin.port}/api/v1/status`)
    status = (await response.json()) as StatusJson
  } while (status.policies !== 1)
  t.match(status.config, { reloadsTaken: 1, problems: [] })
  child.kill('SIGTERM')
  t.equal(await ended, 0)
})

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} while the server starts: it ends with 0`, async (t) => {
    const { child, letGo, ended } = await startedHalfway(t)
    child.kill(signal)
    const content = config(join(t.testdirName, 'objects'))
    await letGo(content, content)
    t.equal(await ended, 0)
  })
}

test('a server that is stopped while it starts leaves nothing open', async (t) => {
  const folder = t.testdir({ objects: {} })
  const file = join(folder, 'config.yaml')
  for (const batching of ['auto', 'off']) {
    writeFileSync(file, config(join(folder, 'objects'), `batching: ${batching}\n`))
    const server = buildServer(loadConfig(file, loadOptions()), { log: silentLog })
    const starting = server.start()
    await Promise.all([starting, server.stop()])
    t.equal(server.listeners, null, `batching ${batching}: nothing is listened on`)
    t.equal(server.adminAddress, null)
  }
})

const installed = fileURLToPath(new URL('../../bin/peerdns.mjs', import.meta.url))
const hasAll = ['../../dist/cli/main.js', '../../node_modules/node/bin/node'].every((path) =>
  existsSync(fileURLToPath(new URL(path, import.meta.url)))
)

/** The installed command as an old Node runs it, in a process group of its own; resolves when it listens. */
async function servingUnderOldNode(t: Test): Promise<{ pid: number; ended: Promise<string> }> {
  const folder = t.testdir({
    objects: {},
    'old-node.cjs': "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.1.0' } })"
  })
  const file = join(folder, 'config.yaml')
  writeFileSync(file, config(join(folder, 'objects')))
  const args = ['--require', join(folder, 'old-node.cjs'), installed, 'serve', '--config', file]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  t.teardown(() => child.kill('SIGKILL'))
  let out = ''
  // Not before the pipe is closed by everybody who has it: the server too.
  const ended = new Promise<string>((resolve) => {
    child.once('close', (code, signal) => resolve(`${signal ?? code} ${/"stopped"/.test(out) ? 'stopped' : 'at once'}`))
  })
  await new Promise<void>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text
      if (out.includes('"msg":"listening"')) resolve()
    })
  })
  return { pid: child.pid!, ended }
}

test('under an old Node', { skip: hasAll ? false : 'not built' }, async (t) => {
  t.test('the server ends with the process that was started, however that ends', async (t) => {
    const { pid, ended } = await servingUnderOldNode(t)
    process.kill(pid, 'SIGKILL')
    t.equal(await ended, 'SIGKILL at once')
  })
  t.test('Ctrl-C goes to all processes of the terminal: the server drains', async (t) => {
    const { pid, ended } = await servingUnderOldNode(t)
    process.kill(-pid, 'SIGINT')
    t.equal(await ended, '0 stopped')
  })
})
