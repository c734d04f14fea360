/**
 * The image of ./Dockerfile, really built by buildah and started as a runtime would start it: its own entrypoint and
 * user, no capabilities, a root file system that cannot be written. The base image is a stand-in made from Debian
 * packages and the npm package `node`, since this needs no registry of images.
 */
import { execFile, spawn } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { root } from '../k8s/built.ts'
import { dig } from './support/dig.ts'
import { Part } from './support/part.ts'
import { freePort } from '../support/free-port.ts'

const cache = join(root, '.cache/e2e/image')
const buildTimeoutMs = 280_000
/** The image without Node itself; more than this and something has come along that is not needed to serve. */
const mostOwnOctets = 80 * 1024 * 1024

type Result = Readonly<{ code: number; out: string; err: string }>
async function run(command: string, args: readonly string[], timeout = 60_000): Promise<Result> {
  return new Promise((resolve) => {
    execFile(command, [...args], { timeout, maxBuffer: 64 * 1024 * 1024, cwd: root }, (error, out, err) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 255
      resolve({ code, out, err: error !== null && err === '' ? error.message : err })
    })
  })
}

async function buildah(...args: string[]): Promise<string> {
  const where = ['--root', join(cache, 'storage'), '--runroot', join(cache, 'run')]
  const { code, out, err } = await run('buildah', [...where, ...args])
  if (code !== 0) throw new Error(`buildah ${args.join(' ')}: ${err}`)
  return out.trim()
}

async function whyNot(): Promise<string | false> {
  if (process.getuid?.() !== 0) return 'only root can start an image without a runtime'
  for (const tool of ['buildah', 'debootstrap', 'unshare', 'setpriv']) {
    if ((await run('sh', ['-c', `command -v ${tool}`])).code !== 0) return `${tool} is not here`
  }
  return false
}

type Inspected = {
  Docker: {
    config: {
      User: string
      Env: string[]
      Entrypoint: string[]
      Cmd: string[]
      WorkingDir: string
      StopSignal: string
      Healthcheck?: { Test: string[] }
    }
  }
}

/**
 * What a runtime does: a mount namespace in which the image's files are the root and cannot be written, /proc and the
 * configuration in it, then the command as the image's user. The shell is this machine's; the image has none.
 */
const asContainer = `
rootfs=$1 config=$2 user=$3 workdir=$4 env=$5; shift 5
unset NODE_OPTIONS
mount --bind "$rootfs" "$rootfs"
mount --bind "$config" "$rootfs/etc/peerdns"
mount -t proc proc "$rootfs/proc"
mount --bind /dev/null "$rootfs/dev/null"
mount -o remount,bind,ro "$rootfs"
cd "$rootfs"
exec setpriv --no-new-privs --inh-caps=-all --ambient-caps=-all chroot --userspec="$user" "$rootfs" /usr/local/bin/node -e '
  const [, workdir, env, program, ...args] = process.argv
  process.chdir(workdir); process.execve(program, [program, ...args], JSON.parse(env))' "$workdir" "$env" "$@"`

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => !lstatSync(join(folder, path)).isDirectory()) // prettier-ignore

test('image', { skip: await whyNot(), timeout: buildTimeoutMs + 60_000 }, async (t) => {
  const startedMs = performance.now()
  const built = await run(join(root, 'test/e2e/image/build.sh'), [], buildTimeoutMs)
  if (built.code !== 0) throw new Error(`the image was not built:\n${built.err}`)
  const image = built.out.trim()
  const container = await buildah('from', '--pull-never', image)
  const folder = mkdtempSync(join(tmpdir(), 'peerdns-image-'))
  const parts: Part[] = []
  t.teardown(async () => {
    for (const part of parts) await part.kill()
    await buildah('umount', container)
    await buildah('rm', container)
    rmSync(folder, { recursive: true, force: true })
  })
  const rootfs = await buildah('mount', container)
  const { config: ofImage } = (JSON.parse(await buildah('inspect', '--type', 'image', image)) as Inspected).Docker
  const files = filesBelow(rootfs)
  const octetsOf = (path: string) => lstatSync(join(rootfs, path)).size
  const total = files.reduce((sum, path) => sum + octetsOf(path), 0)
  const ofNode = octetsOf('usr/local/bin/node')
  const mib = (octets: number) => `${(octets / 1024 / 1024).toFixed(1)} MiB`
  t.comment(`built in ${Math.round((performance.now() - startedMs) / 1000)} s: ${mib(total)}, of which node ${mib(ofNode)}, node_modules ${mib(files.filter((path) => path.startsWith('app/node_modules')).reduce((sum, path) => sum + octetsOf(path), 0))}`) // prettier-ignore

  await t.test('what is in it', async (t) => {
    t.ok(total - ofNode < mostOwnOctets, `${mib(total - ofNode)} beside node`)
    const programs = files.filter((path) => /(^|\/)(s?bin)\//.test(path) && !path.startsWith('app/'))
    t.same(programs, ['usr/local/bin/node'], 'no shell, no npm, no package manager, no compiler')
    t.same(files.filter((path) => /(^|\/)node_modules\/(npm|typescript|tap|oxlint|prettier|node|dns2|dns-packet|corepack|esbuild|@esbuild)\//.test(path)), [], 'no development package') // prettier-ignore
    t.same(files.filter((path) => path.startsWith('app/') && !/^app\/(bin|compiled|config|dist|node_modules)\/|^app\/package\.json$/.test(path)), []) // prettier-ignore
    t.same(files.filter((path) => /\.npmrc$|\.npm\/|(^|\/)\.git\/|of-the-host|\.log$/.test(path)), [], 'nothing of where it was built') // prettier-ignore
    t.same(
      files.filter((path) => (lstatSync(join(rootfs, path)).mode & 0o6000) !== 0),
      [],
      'nothing set-uid'
    )
    const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: object }
    for (const name of Object.keys(dependencies)) t.ok(existsSync(join(rootfs, 'app/node_modules', name)), name)
  })

  await t.test('what it says of itself', async (t) => {
    t.equal(ofImage.User, '65532:65532')
    t.equal(ofImage.Entrypoint[0], 'node', 'no shell between the runtime and the server')
    t.equal(ofImage.Entrypoint.at(-1), 'bin/peerdns.mjs')
    t.strictSame(ofImage.Cmd, ['serve', '--config', '/etc/peerdns/config.yaml'])
    t.equal(ofImage.StopSignal, 'SIGTERM')
    t.equal(ofImage.Healthcheck?.Test[0], 'CMD', 'a health check without a shell')
    t.same(ofImage.Env.filter((line) => !/^(PATH|NODE_ENV|NODE_COMPILE_CACHE)=/.test(line)), []) // prettier-ignore
  })

  // Mount points, which a runtime makes too.
  for (const name of ['proc', 'dev', 'etc/peerdns']) mkdirSync(join(rootfs, name), { recursive: true })
  writeFileSync(join(rootfs, 'dev/null'), '')
  const [dnsPort, adminPort] = [await freePort(), await freePort()]
  const configFolder = join(folder, 'config')
  mkdirSync(configFolder)
  const configText = (more = '') =>
    `cluster: {name: here, source: {manifests: [/app/config/cluster-b]}}\nlisten: ["127.0.0.1:${dnsPort}"]\n` +
    `admin: "127.0.0.1:${adminPort}"\nforward: []\nlameDuck: 5s\n${more}`
  writeFileSync(join(configFolder, 'config.yaml'), configText())
  await run('chmod', ['-R', 'a+rX', folder])
  // The image's environment and nothing of ours.
  const env = {
    ...Object.fromEntries(ofImage.Env.map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string])),
    PEERDNS_ADMIN: `http://127.0.0.1:${adminPort}`
  }
  const commandLine = (args: readonly string[], more: Record<string, string> = {}): string[] => {
    const [program, ...rest] = args
    const path = program === 'node' ? '/usr/local/bin/node' : program!
    return ['--mount', 'sh', '-euc', asContainer, 'sh', rootfs, configFolder, ofImage.User, ofImage.WorkingDir, JSON.stringify({ ...env, ...more }), path, ...rest] // prettier-ignore
  }
  /** Runs a command in it to its end. */
  const inContainer = async (args: readonly string[], more: Record<string, string> = {}) =>
    new Promise<Result>((resolve) => {
      const child = spawn('unshare', commandLine(args, more), { stdio: ['ignore', 'pipe', 'pipe'] })
      let [out, err] = ['', '']
      child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
      child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
      child.once('close', (code) => resolve({ code: code ?? 255, out, err }))
    })

  await t.test('its commands', async (t) => {
    const node = (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { devDependencies: { node: string } }).devDependencies.node // prettier-ignore
    t.match(await inContainer(['node', '--version']), { code: 0, out: `v${node}\n`, err: '' })
    t.match(readFileSync(join(root, 'Dockerfile'), 'utf8'), `node:${node}-`, 'as the public base has it')
    t.match(await inContainer([...ofImage.Entrypoint, 'check', '--config', '/etc/peerdns/config.yaml']), { code: 0, err: '', out: /^ok: cluster here/ }) // prettier-ignore
    writeFileSync(join(configFolder, 'broken.yaml'), configText('policys: []\n'))
    t.match(await inContainer([...ofImage.Entrypoint, 'serve', '--config', '/etc/peerdns/broken.yaml']), { code: 1, err: /did you mean `policies`/ }) // prettier-ignore
    const told = await inContainer([...ofImage.Entrypoint, 'serve', '--config', '/etc/peerdns/broken.yaml'], { NODE_DEBUG_NATIVE: 'COMPILE_CACHE' }) // prettier-ignore
    const filesTold = (what: RegExp) => new Set([...told.err.matchAll(what)].map(([, file]) => file))
    const looked = filesTold(/^\[compile cache\] reading cache from \S+ for ESM file:\/\/\/app\/dist\/(\S+?)\.{3}/gm)
    t.same(looked, filesTold(/ ESM file:\/\/\/app\/dist\/(\S+) was accepted/g), 'it is compiled already')
    t.ok(looked.has('bundle/main.js'), 'as it is joined into a few files')
    t.ok(looked.size < 30, `${looked.size} files`)
    const write = await inContainer(['node', '-e', 'require("fs").writeFileSync("/app/x", "")'])
    t.match(write, { code: 1, err: /EROFS/ }, 'its files cannot be written')
  })

  await t.test('serves, is healthy, drains on SIGTERM and ends with 0', async (t) => {
    const health = ofImage.Healthcheck!.Test.slice(1)
    t.equal((await inContainer(health)).code, 1, 'nobody there: unhealthy')
    const logFile = join(folder, 'exit')
    const part = new Part({
      name: 'image',
      folder,
      // Its exit status is written down, since a part does not tell.
      command: 'sh',
      args: ['-c', `trap 'kill -TERM $!' TERM; unshare "$@" & wait $!; wait $!; echo $? >${logFile}`, 'sh', ...commandLine([...ofImage.Entrypoint, ...ofImage.Cmd])], // prettier-ignore
      isReady: async () => (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).ok
    })
    parts.push(part)
    await part.start()
    t.same((await dig(dnsPort, 'api.backend.svc.cluster.local')).data, ['10.1.1.20'])
    t.same((await dig(dnsPort, 'api.backend.svc.cluster.local', 'A', ['+tcp'])).data, ['10.1.1.20'])
    t.match(await inContainer(health), { code: 0, out: 'ok\n', err: '' }, 'healthy')
    const listed = await run('pgrep', ['-P', String(part.pid)])
    const pid = listed.out.trim()
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    t.match(status, /^Uid:\t65532\t65532\t65532\t65532$/m)
    t.match(status, /^CapEff:\t0000000000000000$/m)
    t.match(status, /^NoNewPrivs:\t1$/m)
    t.comment(`RSS ${/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]} kB`)
    process.kill(Number(pid), 'SIGTERM')
    t.same((await dig(dnsPort, 'web.backend.svc.cluster.local')).data, ['10.1.2.20'], 'answers while it drains')
    t.equal((await fetch(`http://127.0.0.1:${adminPort}/readyz`)).status, 503, 'and says so')
    for (let tries = 0; tries < 600 && part.isRunning; tries++) await new Promise((resolve) => setTimeout(resolve, 100))
    t.equal(readFileSync(logFile, 'utf8'), '0\n', 'exit status')
    t.match(part.logTail(), /"msg":"stopped"/)
    t.equal((await inContainer(health)).code, 1, 'gone: unhealthy')
  })
})
