/** The command as its own process: files, signals, pipes, and what an operator sees of a wrong configuration. */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import type { StatusJson } from '../../src/admin/api-types.ts'
import { run as runHere } from '../../src/cli/run.ts'
import { startServerProcess } from '../support/server-process.ts'

const entry = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

type Result = Readonly<{ code: number | null; out: string; err: string }>

type RunOptions = Readonly<{ env?: NodeJS.ProcessEnv; afterBytes?: number; command?: string }>

/** Runs the command to its end; `afterBytes` closes its output that early. */
function run(
  args: readonly string[],
  { env = {}, afterBytes = Infinity, command = entry }: RunOptions = {}
): Promise<Result> {
  const child = spawn(process.execPath, [command, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    out += chunk
    if (out.length >= afterBytes) child.stdout.destroy()
  })
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (err += chunk))
  return new Promise((done) => void child.on('close', (code) => done({ code, out, err })))
}

/** The same without a process of its own, where nothing but words and the exit code is looked at. */
async function runInProcess(args: readonly string[]): Promise<Result> {
  let [out, err] = ['', '']
  const write = { out: (text: string) => void (out += text), err: (text: string) => void (err += text) }
  const code = await runHere(args, { ...write, env: {}, colors: false })
  return { code, out, err }
}

const service = (name: string, clusterIP = '10.1.1.1'): string =>
  `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}, namespace: default}\nspec: {clusterIP: ${clusterIP}, ports: [{port: 80}]}\n`

const endpoints = (name: string): string =>
  `apiVersion: v1\nkind: Endpoints\nmetadata: {name: ${name}, namespace: default}\nsubsets: []\n`

const config = (folder: string, rest = '', records: readonly string[] = []): string => `cluster:
  name: north${records.length === 0 ? '' : `\n  records: ${JSON.stringify(records)}`}
  source: {manifests: ["${folder}"]}
listen: ["127.0.0.1:0"]
admin: "127.0.0.1:0"
forward: []
${rest}`

/** A folder with a configuration file and manifests; gives the path of the file. */
function configFile(t: Test, manifests: Record<string, string>, rest = '', records: readonly string[] = []): string {
  const folder = t.testdir({ objects: manifests, 'config.yaml': '' })
  const file = join(folder, 'config.yaml')
  writeFileSync(file, config(join(folder, 'objects'), rest, records))
  return file
}

test('check', async (t) => {
  const rows: { name: string; manifests: Record<string, string>; rest?: string; records?: string[]; args?: string[]; code: number; out?: RegExp; err?: RegExp }[] = [
    { name: 'all is well', manifests: { 'a.yaml': service('one') }, code: 0, out: /^ok: cluster north; 1 Service; \d+ RRsets in 2 zones; 0 policies; 0 peers\n$/ },
    {
      name: 'an unknown key',
      manifests: {},
      rest: 'policys: []',
      code: 1,
      err: /config\.yaml:7:1: [^\n]*`policys`[^\n]*did you mean `policies`\?[^\n]*\npeerdns: 1 error\n$/
    },
    {
      name: 'several mistakes',
      manifests: {},
      rest: 'cache: {maxTtl: 5}\npeers: {x: {servers: []}}\n',
      code: 1,
      err: /config\.yaml:7:\d+: cache\.maxTtl: [^\n]*no unit[^]*config\.yaml:8:\d+: peers\.x\.servers[^]*peerdns: 2 errors\n$/
    },
    {
      name: 'a mistake, and what is only worth a warning',
      manifests: {},
      rest: 'peers: {x: {servers: ["192.0.2.1:53"], lease: 5s}}\nlameDuck: 5\n',
      code: 1,
      err: /config\.yaml:8:\d+: lameDuck: [^\n]*\n[^\n]*config\.yaml:7:\d+: warning: peers\.x\.lease: [^\n]*\npeerdns: 1 error\n$/
    },
    {
      name: 'mistakes in the configuration and in its manifests',
      manifests: { 'a.yaml': service('one'), 'b.yaml': service('two', 'nowhere') },
      rest: 'policys: []',
      code: 1,
      err: /config\.yaml:7:1: [^\n]*`policys`[^\n]*\n[^\n]*objects\/b\.yaml:\d+:\d+: warning: Service default\/two: left out: [^\n]*\npeerdns: 1 error\n$/
    },
    {
      name: 'an object that is left out',
      manifests: { 'a.yaml': service('one'), 'b.yaml': service('two', 'nowhere') },
      code: 0,
      out: /^ok: [^\n]*; 1 warning\n$/,
      err: /objects\/b\.yaml:\d+:\d+: warning: Service default\/two: left out: spec\.clusterIP[^\n]*\n$/
    },
    {
      name: 'the same, strictly',
      manifests: { 'b.yaml': service('two', 'nowhere') },
      args: ['--strict'],
      code: 1,
      err: /warning: Service default\/two: [^\n]*\npeerdns: 1 warning\n$/
    },
    {
      name: 'two files with the same object',
      manifests: { 'a.yaml': service('one'), 'b.yaml': service('one', '10.1.1.2') },
      code: 0,
      out: /^ok: [^\n]*1 Service[^\n]*; 1 warning\n$/,
      err: /objects\/[ab]\.yaml:\d+:\d+: warning: Service default\/one: [^\n]*\n$/
    },
    {
      name: 'a hand-written record in the place of a Service',
      manifests: { 'a.yaml': `${service('one')}---\n${service('two', '10.1.1.2')}` },
      records: ['one.default.svc.cluster.local. CNAME www.example.', 'own.default.svc.cluster.local. A 192.0.2.1'],
      code: 0,
      out: /^ok: [^\n]*; 1 warning\n$/,
      err: /config\.yaml:3:\d+: warning: cluster\.records: one\.default\.svc\.cluster\.local\. CNAME hides what a Service has there: A, SRV\n$/
    },
    { name: 'two of a kind, as they are called', manifests: { 'a.yaml': `${endpoints('one')}---\n${endpoints('two')}` }, code: 0, out: /^ok: cluster north; 2 Endpoints; / },
    {
      name: 'objects that do not say who they are',
      manifests: { 'a.yaml': 'apiVersion: v1\nkind: Service\nmetadata: {namespace: shop}\n---\n7\n---\nmetadata: {name: x}\n' },
      code: 0,
      out: /3 warnings\n$/,
      err: /a\.yaml:3:11: warning: Service without a name in shop: left out: metadata\.name: [^\n]*\n[^\n]*a\.yaml:5:1: warning: object without a kind: left out: [^\n]*\n[^\n]*a\.yaml:7:1: warning: default\/x without a kind: left out: kind: expected text, found nothing\n$/
    },
    { name: 'a manifest that is no YAML', manifests: { 'a.yaml': 'a: [' }, code: 0, out: /1 warning/, err: /objects\/a\.yaml:\d+:\d+: warning: / }
  ] // prettier-ignore
  for (const { name, manifests, rest = '', records = [], args = [], code, out, err } of rows) {
    const result = await runInProcess(['check', '--config', configFile(t, manifests, rest, records), ...args])
    t.equal(result.code, code, `${name}: exit code`)
    t.match(result.out, out ?? /^$/, `${name}: output`)
    t.match(result.err, err ?? /^$/, `${name}: error`)
  }
  const folder = t.testdir({ 'config.yaml': '' })
  writeFileSync(join(folder, 'config.yaml'), config(join(folder, 'typo')))
  const absent = await runInProcess(['check', '--config', join(folder, 'config.yaml')])
  t.match(absent, { code: 1, out: '', err: /\/typo: error: no such file or folder; [^\n]*\npeerdns: 1 error\n$/ })
  writeFileSync(join(folder, 'config.yaml'), config('typo', 'policys: []'))
  const both = await runInProcess(['check', '--config', join(folder, 'config.yaml')])
  t.match(both, { code: 1, out: '', err: /`policys`[^\n]*\n[^\n]*\/typo: error: no such file or folder; [^\n]*\npeerdns: 2 errors\n$/ }) // prettier-ignore
  const node = join(folder, 'node.yaml')
  writeFileSync(node, config('.').replace(/source: .*/, 'source: {mirror: ["192.0.2.1:53"]}'))
  t.match(await runInProcess(['check', '--config', node]), { code: 0, out: /^ok: cluster north; zones from the cluster's own peerdns; / }) // prettier-ignore
  const own = await run(['check', '--config', configFile(t, { 'a.yaml': service('one') })])
  t.match(own, { code: 0, out: /^ok: cluster north; /, err: '' }, 'as a process of its own')
  const missing = await runInProcess(['check', '--config', '/nowhere/config.yaml'])
  t.match(missing, { code: 1, out: '', err: '/nowhere/config.yaml:1:1: there is no such file\npeerdns: 1 error\n' })
})

test('serve starts nothing where it cannot', async (t) => {
  const wrong = await run(['serve', '--config', configFile(t, {}, 'policys: []')])
  t.match(wrong, {
    code: 1,
    out: '',
    err: /config\.yaml:7:1: [^]*\npeerdns: [^\n]* is wrong, so nothing was started\n$/
  })
  const running = await startServerProcess(config(configFile(t, {}).replace('config.yaml', 'objects')))
  t.teardown(() => running.stop())
  const file = configFile(t, {})
  writeFileSync(file, config('.').replace('"127.0.0.1:0"]', `"127.0.0.1:${running.port}"]`))
  const taken = await run(['serve', '--config', file])
  t.equal(taken.code, 1)
  t.notMatch(taken.out, /stopped/, 'nothing was started')
  t.match(taken.err, new RegExp(`^peerdns: cannot listen on 127\\.0\\.0\\.1:${running.port} \\((udp|tcp)\\): [^\n]*EADDRINUSE[^\n]*\n$`)) // prettier-ignore
})

test('serve takes its file in every form, and nothing beside it', async (t) => {
  const file = configFile(t, {}, 'policys: []')
  for (const args of [['--config', file], [`--config=${file}`]]) {
    const { code, err } = await runInProcess(['serve', ...args])
    t.match({ code, err }, { code: 1, err: /is wrong, so nothing was started/ }, args.join(' '))
  }
  const rows: [args: string[], code: number, says: RegExp][] = [
    [[], 2, /required option '--config <file>' not specified/],
    [['--config'], 2, /argument missing/],
    [['--config', ''], 1, /cannot be read|no such file/],
    [['--config', '--help'], 1, /--help/],
    [['--help', '--config', file], 0, /Usage: peerdns serve/],
    [['--config', file, '--help'], 0, /Usage: peerdns serve/],
    [['--config', file, 'more'], 2, /too many arguments/],
    [['--config', file, '--more'], 2, /unknown option '--more'/]
  ]
  for (const [args, code, says] of rows) {
    const result = await runInProcess(['serve', ...args])
    t.equal(result.code, code, args.join(' '))
    t.match(result.out + result.err, says, args.join(' '))
  }
})

test('serve follows its configuration and ends as it is told', async (t) => {
  const folder = t.testdir({ 'a.yaml': service('one') })
  t.test('SIGTERM and SIGINT: 0', async (t) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const server = await startServerProcess(config(folder))
      const response = await fetch(`${server.adminUrl}/api/v1/status`)
      await response.text()
      // The client above keeps its connection; that must not hold the server up.
      const startedAt = performance.now()
      const ended = new Promise((done) => void server.process.once('close', (code) => done(code)))
      server.process.kill(signal)
      t.equal(await ended, 0, signal)
      t.ok(performance.now() - startedAt < 4_500, `${signal}: soon`)
      t.match(server.output(), /"msg":"stopped"/)
      await server.stop()
    }
  })
  t.test('a changed file is taken over, a wrong one refused, and SIGHUP reads it again', async (t) => {
    const file = configFile(t, { 'a.yaml': service('one') })
    const content = config(join(file, '../objects'))
    writeFileSync(file, content)
    const child = spawn(process.execPath, [entry, 'serve', '--config', file], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => child.kill('SIGKILL'))
    const lines = createInterface({ input: child.stdout })
    let adminUrl = ''
    for await (const line of lines) {
      const { msg, admin } = JSON.parse(line) as { msg: string; admin?: { port: number } }
      if (msg !== 'listening') continue
      adminUrl = `http://127.0.0.1:${admin!.port}`
      break
    }
    const askedFor: boolean[] = []
    lines.on('line', (line) => {
      const { msg, isNew } = JSON.parse(line) as { msg: string; isNew?: boolean }
      if (msg === 'the configuration file was read again, as asked') askedFor.push(isNew!)
    })
    const until = async (is: (status: StatusJson) => boolean): Promise<StatusJson> => {
      for (let tries = 0; tries < 2_400; tries++) {
        const status = (await (await fetch(`${adminUrl}/api/v1/status`)).json()) as StatusJson
        if (is(status)) return status
        await sleep(25)
      }
      throw new Error('the server did not get there')
    }
    await until(({ isReady }) => isReady)
    // By a rename: the server may read it at any moment.
    const replace = (text: string): void => {
      writeFileSync(`${file}.new`, text)
      renameSync(`${file}.new`, file)
    }
    replace(`${content}policys: []\n`)
    const refused = await until(({ config }) => config.problems.length > 0)
    t.match(refused, {
      isReady: true,
      config: { reloadsRefused: 1, problems: [{ line: 7, column: 1, nearest: 'policies' }] }
    })
    const shown = await run(['status', '--admin', adminUrl])
    t.match(shown, { code: 0, out: /1 refused\n +[^\n]*config\.yaml:7:1: [^\n]*did you mean `policies`/ })
    replace(`${content}policies: [{name: p, dnsName: default.svc.cluster.local, targets: [local]}]\n`)
    t.match(await until(({ policies }) => policies === 1), { config: { reloadsTaken: 1, problems: [] } })
    t.same(askedFor, [], 'nobody asked for that')
    child.kill('SIGHUP')
    await until(() => askedFor.length > 0)
    t.same(askedFor, [false], 'read again, and found as it was')
    const ended = new Promise((done) => void child.once('close', (code) => done(code)))
    child.kill('SIGTERM')
    t.equal(await ended, 0)
  })
  t.test('a second signal ends a drain at once', async (t) => {
    const server = await startServerProcess(config(folder, 'lameDuck: 1m'))
    const ended = new Promise((done) => void server.process.once('close', (code) => done(code)))
    server.process.kill('SIGTERM')
    while (!server.output().includes('not ready any more')) await sleep(20)
    const ready = await fetch(`${server.adminUrl}/readyz`)
    t.equal(ready.status, 503, 'not ready while draining')
    t.match(await ready.text(), /^not ready: serving\n$/)
    t.equal((await fetch(`${server.adminUrl}/healthz`)).status, 200, 'and alive')
    server.process.kill('SIGTERM')
    t.equal(await ended, 143)
    await server.stop()
  })
})

const installed = fileURLToPath(new URL('../../bin/peerdns.mjs', import.meta.url))
const isBuilt = existsSync(fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url)))

test('the installed command', { skip: isBuilt ? false : 'not built' }, async (t) => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  t.match(await run(['--version'], { command: installed }), { code: 0, out: `${version}\n`, err: '' })
  const file = configFile(t, { 'a.yaml': service('a') })
  const checked = await run(['check', '--config', file], { command: installed })
  t.match(checked, { code: 0, out: /^ok: cluster north; 1 Service/, err: '' }, 'with every package that it needs')
  const wrong = await run(['serve', '--config', configFile(t, {}, 'policys: []')], { command: installed })
  t.match(wrong, { code: 1, err: /did you mean `policies`/ })
})

test('output goes to pipes that may close, without colors', async (t) => {
  const folder = t.testdir({
    'a.yaml': Array.from({ length: 2_000 }, (_, index) => service(`s${index}`)).join('---\n')
  })
  const server = await startServerProcess(config(folder))
  t.teardown(() => server.stop())
  const env = { PEERDNS_ADMIN: server.adminUrl }
  const whole = await run(['records', 'list'], { env })
  t.equal(whole.code, 0)
  t.ok(whole.out.split('\n').length > 2_000, 'more than one pipe buffer, and all of it')
  t.equal(whole.err, '')
  const cut = await run(['records', 'list'], { env, afterBytes: 1 })
  t.same({ code: cut.code, err: cut.err }, { code: 0, err: '' }, 'whoever has seen enough may close')
  const status = await run(['status'], { env: { ...env, FORCE_COLOR: '1' } })
  t.notOk(status.out.includes('\u001b'))
})
