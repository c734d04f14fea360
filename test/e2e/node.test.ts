/**
 * The resolver of a node (`k8s/overlays/daemonset`) in network namespaces that stand for a node and a pod: the init
 * container's own script makes the addresses, and peerdns serves them as that container would: root with one
 * capability.
 */
import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { root } from '../k8s/built.ts'
import { eventually } from './support/eventually.ts'
import { Part } from './support/part.ts'

const overlay = join(root, 'k8s/overlays/daemonset')
const script = join(overlay, 'node-address.sh')
const addresses = ['169.254.20.11', 'fd53:7065:6572::11'] as const
const [node, pod] = [`peerdns-node-${process.pid}`, `peerdns-pod-${process.pid}`]

type Result = Readonly<{ code: number; out: string; err: string }>

async function run(command: string, ...args: string[]): Promise<Result> {
  return new Promise((resolve) => {
    execFile(command, args, { timeout: 60_000 }, (error, out, err) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 255
      resolve({ code, out, err: error !== null && err === '' ? error.message : err })
    })
  })
}

async function ip(...args: string[]): Promise<string> {
  const { code, out, err } = await run('ip', ...args)
  if (code !== 0) throw new Error(`ip ${args.join(' ')}: ${err}`)
  return out
}

/** A command line in a namespace, as root with these capabilities alone. */
const within = (namespace: string, capabilities: readonly string[], command: readonly string[]): string[] => {
  const kept = ['-all', ...capabilities.map((name) => `+${name}`)].join(',')
  const limits = ['--no-new-privs', `--bounding-set=${kept}`, '--inh-caps=-all', '--ambient-caps=-all']
  return ['netns', 'exec', namespace, 'setpriv', ...limits, ...command]
}

async function whyNot(): Promise<string | false> {
  if (process.getuid?.() !== 0) return 'only root can make network namespaces'
  for (const [tool, args] of [
    ['ip', ['-V']],
    ['setpriv', ['--version']],
    ['dig', ['-v']]
  ] as const) {
    if ((await run(tool, ...args)).code !== 0) return `${tool} is not here`
  }
  const { code, err } = await run('ip', 'netns', 'add', node)
  return code === 0 ? false : `no network namespace can be made: ${err.trim()}`
}

const skip = await whyNot()
/** The init container's image is busybox; where that is here, its shell and its `ip` run the script too. */
const busybox = ['/bin/busybox', '/usr/bin/busybox'].find((path) => existsSync(path))

test('node', { skip, timeout: 120_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'peerdns-node-'))
  const parts: Part[] = []
  t.teardown(async () => {
    for (const part of parts) await part.kill()
    for (const namespace of [node, pod]) await run('ip', 'netns', 'del', namespace)
    rmSync(folder, { recursive: true, force: true })
  })
  await ip('netns', 'add', pod)
  await ip('-n', node, 'link', 'add', 'pod', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', pod)
  await ip('-n', node, 'link', 'add', 'nodelocaldns', 'type', 'veth', 'peer', 'name', 'other')
  for (const [namespace, device, end] of [
    [node, 'pod', 1],
    [pod, 'eth0', 2]
  ] as const) {
    await ip('-n', namespace, 'link', 'set', 'lo', 'up')
    await ip('-n', namespace, 'addr', 'add', `10.8.0.${end}/24`, 'dev', device)
    await ip('-n', namespace, 'addr', 'add', `fd00:8::${end}/64`, 'dev', device, 'nodad')
    await ip('-n', namespace, 'link', 'set', device, 'up')
  }
  await ip('-n', pod, 'route', 'add', 'default', 'via', '10.8.0.1')
  await ip('-n', pod, '-6', 'route', 'add', 'default', 'via', 'fd00:8::1')
  await ip('-n', node, 'addr', 'add', '169.254.20.10/32', 'dev', 'nodelocaldns')

  /** Runs the script as its container does. The kernel of a test may have no dummy interfaces: hence the loopback. */
  const makeAddresses = async (shell: readonly string[], ...args: string[]) =>
    run('ip', ...within(node, ['net_admin'], [...shell, script, ...args]))
  const shells: (readonly string[])[] = [['sh']]
  if (busybox !== undefined) {
    // Its applets come first, as in its image.
    const applets = join(folder, 'busybox')
    await run('mkdir', applets)
    for (const name of ['sh', 'ip']) await run('ln', '-s', busybox, join(applets, name))
    shells.push(['env', `PATH=${applets}`, join(applets, 'sh')])
  } else t.comment('busybox is not here: the script runs with the shell and the `ip` of this machine only')
  // Without the mark of duplicate address detection, which goes by itself.
  const all = async () => (await ip('-n', node, '-o', 'addr', 'show')).replaceAll(' tentative', '')

  await t.test('node-address.sh', async (t) => {
    for (const shell of shells) {
      const name = shell.at(-1) === 'sh' ? 'sh' : 'busybox'
      const before = await all()
      const taken = await makeAddresses(shell, 'lo', addresses[1], '169.254.20.10')
      t.match(taken, { code: 1, err: /169\.254\.20\.10 is taken: the interface nodelocaldns has it/ }, name)
      t.equal(await all(), before, `${name}: a refusal changes nothing, not even for the other address`)
      const made = await makeAddresses(shell, 'lo', ...addresses)
      t.match(made, { code: 0, err: '' }, `${name}: made`)
      for (const address of addresses) t.match(made.out, `${address} is now on lo`)
      const after = await all()
      for (const address of addresses) t.match(after, `${address}/${address.includes(':') ? 128 : 32}`)
      t.match(await makeAddresses(shell, 'lo', ...addresses), { code: 0, err: '', out: /is on lo already/ }, name)
      t.equal(await all(), after, `${name}: a second time changes nothing`)
      const withoutRight = await run('ip', ...within(node, [], [...shell, script, 'lo', '169.254.20.12']))
      t.equal(withoutRight.code === 0, false, `${name}: without NET_ADMIN`)
      t.equal(await all(), after)
      if (shell !== shells.at(-1)) for (const address of addresses) await ip('-n', node, 'addr', 'del', address, 'dev', 'lo') // prettier-ignore
    }
    const dummy = await makeAddresses(shells.at(-1)!, 'peerdns', '169.254.20.13')
    if (dummy.code === 0) t.match(await ip('-n', node, '-o', 'addr', 'show', 'dev', 'peerdns'), '169.254.20.13/32')
    else
      t.match(
        dummy.err,
        /the interface peerdns cannot be made/,
        'this kernel has no dummy interfaces, and that is said'
      )
  })

  const config = join(folder, 'config.yaml')
  const source = `source: {manifests: [${join(root, 'config/cluster-b')}]}`
  const written = readFileSync(join(overlay, 'config.yaml'), 'utf8').replace(/source: \{mirror: .*\}/, source)
  t.match(written, source)
  writeFileSync(config, written)
  const serve = [process.execPath, join(root, 'src/cli/main.ts'), 'serve', '--config', config]
  /** Runs a second one to its end. */
  const tryToServe = async (capabilities = ['net_bind_service']) => run('ip', ...within(node, capabilities, serve))
  const ready = async () =>
    (await run('ip', 'netns', 'exec', node, process.execPath, '-e', 'fetch("http://127.0.0.1:9155/readyz").then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))')).code === 0 // prettier-ignore
  const started = async (name: string): Promise<Part> => {
    const part = new Part({
      name,
      folder,
      command: 'ip',
      args: within(node, ['net_bind_service'], serve),
      isReady: ready
    })
    parts.push(part)
    await part.start()
    return part
  }
  const ask = async (namespace: string, address: string, name: string, ...options: string[]) =>
    run('ip', 'netns', 'exec', namespace, 'dig', `@${address}`, '+tries=1', '+time=10', '+short', ...options, `${name}.svc.cluster.local`) // prettier-ignore

  await t.test('refusals: exit code 1, and the address by name', async (t) => {
    t.match(await tryToServe([]), { code: 1, err: /cannot listen on 169\.254\.20\.11:53 .*NET_BIND_SERVICE/ })
    await ip('-n', node, 'addr', 'del', '169.254.20.11/32', 'dev', 'lo')
    t.match(await tryToServe(), { code: 1, err: /cannot listen on 169\.254\.20\.11:53 .*no interface .* has this address/ }) // prettier-ignore
    await makeAddresses(['sh'], 'lo', ...addresses)
    // Somebody who shares a port with all who want to (CoreDNS does): that must not split the node's queries silently.
    const other = 'const s = require("node:dgram").createSocket({ type: "udp4", reusePort: true }); s.bind(53, "169.254.20.11", () => console.log("bound"))' // prettier-ignore
    const child = spawn('ip', ['netns', 'exec', node, process.execPath, '-e', other], { stdio: ['ignore', 'pipe', 'inherit'] }) // prettier-ignore
    const ended = new Promise((resolve) => child.once('exit', resolve))
    await new Promise((resolve) => child.stdout.once('data', resolve))
    t.match(await tryToServe(), { code: 1, err: /cannot listen on 169\.254\.20\.11:53 \(udp\): another process has this port/ }) // prettier-ignore
    child.kill('SIGKILL')
    await ended
  })

  await t.test('root with one capability: serves both families on port 53, to the node and to its pods', async (t) => {
    const first = await started('first')
    const status = readFileSync(`/proc/${first.pid}/status`, 'utf8')
    t.match(status, /^CapEff:\t0000000000000400$/m, 'NET_BIND_SERVICE alone')
    t.match(status, /^CapBnd:\t0000000000000400$/m)
    t.match(status, /^Uid:\t0\t/m)
    for (const namespace of [node, pod]) {
      for (const address of addresses) {
        for (const option of ['+notcp', '+tcp']) {
          const label = `${namespace === pod ? 'pod' : 'node'} ${address} ${option}`
          // The cluster's own peerdns cannot be reached from here, so the policy's second target answers.
          t.match(await ask(namespace, address, 'api.backend', option), { code: 0, out: '10.1.1.20\n' }, label)
          t.match(await ask(namespace, address, 'kubernetes.default', option), { code: 0, out: '10.1.0.1\n' }, label)
        }
      }
    }
  })

  await t.test('two at a time: the second one takes over, and all who ask meanwhile are answered', async (t) => {
    const first = parts.at(-1)!
    const meanwhile = { isOver: false }
    const asking = (async () => {
      let [asked, answered] = [0, 0]
      while (!meanwhile.isOver) {
        asked++
        // A lost question waits for the whole time, and one that a busy machine is slow with does not.
        const { out } = await ask(pod, addresses[0], 'kubernetes.default', '+time=15')
        if (out === '10.1.0.1\n') answered++
        else t.comment(out)
      }
      return { asked, answered }
    })()
    t.match((await makeAddresses(['sh'], 'lo', ...addresses)).code, 0, 'its init container runs before')
    // What answers on the host's ports is the first one until then.
    const hasTaken = async (): Promise<boolean> => second.logTail().includes('sockets are taken over')
    const args = within(node, ['net_bind_service'], serve)
    const second: Part = new Part({ name: 'second', folder, command: 'ip', args, isReady: hasTaken })
    parts.push(second)
    await second.start()
    await first.kill('SIGTERM')
    t.match(first.logTail(), /"msg":"stopped"/, 'drained')
    for (const address of addresses) {
      t.match(
        await ask(pod, address, 'kubernetes.default', '+tcp'),
        { code: 0, out: '10.1.0.1\n' },
        `${address} by TCP`
      )
    }
    t.ok(await ready(), 'HTTP too')
    meanwhile.isOver = true
    const { asked, answered } = await asking
    t.ok(asked > 1)
    t.equal(answered, asked, `all of ${asked} questions meanwhile were answered`)
  })

  await t.test('one after the other: between them a pod is refused at once and can ask its next server', async (t) => {
    const first = parts.at(-1)!
    const stoppedMs = performance.now()
    await first.kill('SIGTERM')
    t.match(first.logTail(), /"msg":"stopped"/, 'drained')
    for (const address of addresses) {
      const askedMs = performance.now()
      const refused = await ask(pod, address, 'kubernetes.default')
      t.match(refused.out, /connection refused/, `${address}: refused, no time-out`)
      t.ok(performance.now() - askedMs < 5_000, address)
    }
    await started('next')
    t.comment(
      `stopped, and its successor ready: ${Math.round(performance.now() - stoppedMs)} ms, with the questions above`
    )
    await eventually(async () => {
      const { out } = await ask(pod, addresses[1], 'kubernetes.default')
      if (out !== '10.1.0.1\n') throw new Error(out)
    })
    t.pass('its successor answers')
  })
})
