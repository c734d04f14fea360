/**
 * The proof of failover: patterns of targets x faults of one cluster, what clients get and how late. One real server
 * process, stub clusters that misbehave in fifteen ways at once, and a cluster that is cut off for real, in a network
 * namespace. Deadlines are three times those of the contract, by a clock that stands still while this process does, so
 * that they hold on a busy machine.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { t as root, test, type Test } from 'tap'
import { until } from '../support/in-process.ts'
import { loopClock, sleep } from '../support/loop-clock.ts'
import { startServerProcess, type ServerProcess } from '../support/server-process.ts'
import { tell } from './support/live-figures.ts'
import {
  addressOf,
  askSteadily,
  Client,
  faults,
  namespaceOf,
  nameOf,
  OtherClusters,
  ownObjects,
  percentile,
  tally,
  unsteadyFaults,
  whoseAnswer,
  zone,
  type Fault,
  type Given
} from './support/failover.ts'

root.setTimeout(280_000)

const slack = 3
/** Of the contract: before the probes have found out, and after that. */
const beforeMs = 500
const afterMs = 100
const denialMs = 10
const budgetMs = 2_000
const probe = { everyMs: 500, timeoutMs: 300, fall: 2 }
const detectionMs = probe.fall * (probe.everyMs + probe.timeoutMs)
const returnMs = 30_000

type Pattern = Readonly<{
  targets: string
  more?: string
  /** Whose answers are right while a misbehaves. */
  right: readonly string[]
}>

/** `{a}` stands for the peer that misbehaves. */
const patterns: Readonly<Record<string, Pattern>> = {
  delegate: { targets: '[{a}]', right: ['a', 'SERVFAIL'] },
  'prefer-peer': { targets: '[{a}, local]', right: ['a', 'local'] },
  'prefer-local': { targets: '[local, {a}]', right: ['local'] },
  chain: { targets: '[{a}, c, local]', right: ['a', 'c'] },
  weighted: {
    targets: '[{peer: {a}, weight: 50}, {peer: c, weight: 50}]',
    more: ', select: weighted',
    right: ['a', 'c']
  },
  geo: { targets: '[{peer: c, region: far}, {peer: {a}, region: near}]', more: ', select: geo', right: ['a', 'c'] },
  merge: { targets: '[{a}, local]', more: ', select: merge', right: ['local', 'a+local'] }
}
const patternNames = Object.keys(patterns)

function configText(clusters: OtherClusters, manifests: string): string {
  const peers = faults.map((fault) => peerLine(`a-${fault}`, clusters.a.get(fault)!.text))
  const policies = faults.flatMap((fault) =>
    Object.entries(patterns).map(
      ([name, { targets, more = '' }]) =>
        `  - {name: ${namespaceOf(name, fault)}, dnsName: ${namespaceOf(name, fault)}.svc.${zone}, targets: ${targets.replaceAll('{a}', `a-${fault}`)}${more}}`
    )
  )
  return [
    `cluster: {name: b, region: near, source: {manifests: ["${manifests}"]}}`,
    'listen: ["{listen}"]',
    'admin: "{admin}"',
    'forward: []',
    'peers:',
    ...peers,
    healthyLine('c', clusters.c.text),
    'policies:',
    ...policies,
    ''
  ].join('\n')
}

const peerLine = (name: string, server: string): string =>
  `  ${name}: {servers: ["${server}"], probe: {every: ${probe.everyMs}ms, timeout: ${probe.timeoutMs}ms, fall: ${probe.fall}, name: svc.${zone}}}`

/** One that never misbehaves, and is not to be doubted only because this process, which plays it, got no processor. */
const healthyLine = (name: string, server: string): string =>
  `  ${name}: {servers: ["${server}"], probe: {every: 1s, timeout: 1s, fall: 10, name: svc.${zone}}}`

/**
 * Answers that are wrong for their pattern. Where the last target of a chain answers now and then, the one before it,
 * which this process plays, was late: a twentieth of the answers may be so on a busy machine.
 */
function wrongOf(given: readonly Given[]): Given[] {
  const wrong = given.filter((one) => !patterns[one.pattern]!.right.includes(whoseAnswer(one)))
  const late = wrong.filter((one) => one.pattern === 'chain' && whoseAnswer(one) === 'local')
  const ofChain = given.filter(({ pattern }) => pattern === 'chain')
  return late.length * 20 <= ofChain.length ? wrong.filter((one) => !late.includes(one)) : wrong
}

/** Health by peer, as the server tells it. */
async function healthOf(server: ServerProcess): Promise<Map<string, string>> {
  const response = await fetch(`${server.adminUrl}/api/v1/peers`)
  const { peers } = (await response.json()) as { peers: { name: string; health: string }[] }
  return new Map(peers.map(({ name, health }) => [name, health]))
}

/** When each peer was first seen down, until `stop`. */
function watchHealth(server: ServerProcess): { downAtMs: Map<string, number>; stop: () => Promise<void> } {
  const downAtMs = new Map<string, number>()
  const over = new AbortController()
  const watching = (async () => {
    while (!over.signal.aborted) {
      for (const [name, health] of await healthOf(server)) {
        if (health === 'down' && !downAtMs.has(name)) downAtMs.set(name, loopClock.nowMs())
      }
      await sleep(50)
    }
  })()
  return {
    downAtMs,
    stop: async () => {
      over.abort()
      await watching
    }
  }
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ').trimEnd()).join('\n') // prettier-ignore
}

const p99 = (given: readonly Given[]): number => percentile(given.map(({ tookMs }) => tookMs), 0.99) // prettier-ignore

const whole = (ms: number): string => ms.toFixed(0)

test('patterns x faults: what clients get, and how late', { timeout: 200_000 }, async (t) => {
  const clusters = await OtherClusters.start(patternNames, ['chain', 'weighted', 'geo'])
  t.teardown(async () => clusters.stop())
  const folder = mkdtempSync(join(tmpdir(), 'peerdns-failover-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const manifests = join(folder, 'objects.json')
  writeFileSync(manifests, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: ownObjects(patternNames) }))
  const server = await startServerProcess(configText(clusters, manifests))
  t.teardown(async () => server.stop())
  const client = await Client.open(server.port, loopClock)
  t.teardown(() => client.close())
  t.ok(await until(async () => [...(await healthOf(server)).values()].every((health) => health === 'up')))

  const healthy = await askSteadily(client, patternNames, { perSecond: 3, forMs: 2_000 })
  t.same(wrongOf(healthy).slice(0, 5), [], 'healthy: all right')

  await clusters.misbehave()
  const brokenAtMs = loopClock.nowMs()
  const watch = watchHealth(server)
  const given = await askSteadily(client, patternNames, { perSecond: 3, forMs: 7_000 })
  await watch.stop()

  const rows: string[][] = [['pattern', 'fault', 'before', 'p99 ms', 'after', 'p99 ms']]
  for (const pattern of patternNames) {
    const isAfter = ({ fault, sentAtMs }: Given): boolean =>
      sentAtMs >= (watch.downAtMs.get(`a-${fault}`) ?? Number.POSITIVE_INFINITY)
    const ofPattern = given.filter((one) => one.pattern === pattern)
    const wrong = wrongOf(ofPattern)
    for (const fault of faults) {
      const all = ofPattern.filter((one) => one.fault === fault)
      const [before, after] = [all.filter((one) => !isAfter(one)), all.filter(isAfter)]
      rows.push([pattern, fault, tally(before), whole(p99(before)), tally(after), whole(p99(after))])
      const bad = wrong.filter((one) => one.fault === fault)
      t.same(bad.slice(0, 3), [], `${pattern}, ${fault}: all right, and no SERVFAIL where somebody is healthy`)
    }
    // With nobody else to ask, whoever is down is asked all the same, within half a second.
    const [beforeLimitMs, afterLimitMs] =
      pattern === 'delegate' ? [budgetMs + 500, slack * 500] : [slack * beforeMs, slack * afterMs]
    // Who answers now and then is soon up again: what it then costs is not what one costs that was found out.
    const isFoundOut = (one: Given): boolean => isAfter(one) && !unsteadyFaults.has(one.fault)
    const [beforeP99Ms, afterP99Ms] = [p99(ofPattern.filter((one) => !isAfter(one))), p99(ofPattern.filter(isFoundOut))]
    t.ok(beforeP99Ms < beforeLimitMs, `${pattern}: p99 ${whole(beforeP99Ms)} ms before faults are found out`)
    t.ok(afterP99Ms < afterLimitMs, `${pattern}: p99 ${whole(afterP99Ms)} ms after that`)
    const unsteadyP99Ms = p99(ofPattern.filter((one) => isAfter(one) && unsteadyFaults.has(one.fault)))
    t.ok(unsteadyP99Ms < beforeLimitMs, `${pattern}: p99 ${whole(unsteadyP99Ms)} ms while one is up and down`)
  }
  tell(table(rows))
  for (const fault of faults) {
    if (unsteadyFaults.has(fault)) continue
    const tookMs = (watch.downAtMs.get(`a-${fault}`) ?? Number.POSITIVE_INFINITY) - brokenAtMs
    t.ok(tookMs < slack * detectionMs, `${fault}: found out after ${whole(tookMs)} ms`)
  }

  await searchLists(t, client)

  await clusters.recover()
  const recoveredAtMs = loopClock.nowMs()
  const back = await Promise.all([
    askSteadily(client, patternNames, { perSecond: 1, forMs: slack * returnMs, hasEnded: () => isBack }),
    (async () => {
      isBack = await until(async () => (await stillAway(client)).length === 0, slack * returnMs)
    })()
  ])
  t.ok(isBack, `all are back in use after ${whole(loopClock.nowMs() - recoveredAtMs)} ms`)
  const burst = wrongOf(back[0].filter(({ pattern }) => pattern !== 'delegate'))
  t.same(burst.slice(0, 3), [], 'and the return costs nobody an answer')
})

let isBack = false

/** Faults whose cluster does not answer again for every name of the pattern that prefers it. */
async function stillAway(client: Client): Promise<Fault[]> {
  const found = await Promise.all(
    faults.map(async (fault) => {
      const texts = await Promise.all([0, 1, 2, 3].map((at) => client.ask(nameOf('prefer-peer', fault, at))))
      return texts.every(({ text }, at) => text === addressOf('a', at)) ? [] : [fault]
    })
  )
  return found.flat()
}

/** Search lists ask for `google.com.<namespace>...` first: what a dead peer would have to deny is denied at once. */
async function searchLists(t: Test, client: Client): Promise<void> {
  for (const pattern of ['delegate', 'prefer-peer', 'chain', 'merge']) {
    const tookMs: number[] = []
    for (let at = 0; at < 20; at++) {
      const reply = await client.ask(`google${at}.com.${namespaceOf(pattern, 'silent')}.svc.${zone}`)
      if (reply.text !== 'NXDOMAIN') t.equal(reply.text, 'NXDOMAIN', `${pattern}: a search list goes on`)
      tookMs.push(reply.tookMs)
    }
    // Half of them: each also waits for a processor twice.
    t.ok(percentile(tookMs, 0.5) < slack * denialMs, `${pattern}: denied in ${percentile(tookMs, 0.5).toFixed(1)} ms`)
  }
}

const hasNamespaces = (): boolean =>
  process.getuid?.() === 0 && spawnSync('ip', ['netns', 'list'], { stdio: 'ignore' }).status === 0

test(
  'a real partition: a cluster in its own network is cut off, and comes back',
  {
    skip: hasNamespaces() ? false : 'needs root and network namespaces',
    timeout: 200_000
  },
  async (t) => {
    const id = process.pid % 10_000
    const [netns, link, inside] = [`pdf${id}`, `pdf${id}h`, `pdf${id}n`]
    const [host, far] = [`10.214.${id % 250}.1`, `10.214.${id % 250}.2`]
    const ip = (...args: string[]): void => {
      const done = spawnSync('ip', args, { encoding: 'utf8' })
      if (done.status !== 0) throw new Error(`ip ${args.join(' ')}: ${done.stderr}`)
    }
    ip('netns', 'add', netns)
    t.teardown(() => {
      spawnSync('ip', ['link', 'del', link])
      spawnSync('ip', ['netns', 'del', netns])
    })
    ip('link', 'add', link, 'type', 'veth', 'peer', 'name', inside, 'netns', netns)
    ip('addr', 'add', `${host}/30`, 'dev', link)
    ip('link', 'set', link, 'up')
    ip('-n', netns, 'addr', 'add', `${far}/30`, 'dev', inside)
    ip('-n', netns, 'link', 'set', inside, 'up')
    ip('-n', netns, 'link', 'set', 'lo', 'up')

    const folder = mkdtempSync(join(tmpdir(), 'peerdns-partition-'))
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const write = (name: string, text: string): string => {
      const file = join(folder, name)
      writeFileSync(file, text)
      return file
    }
    const objects = (address: string): string =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'api', namespace: 'backend' },
        spec: { clusterIP: address, clusterIPs: [address], ports: [{ port: 80 }] }
      })
    const configA = write(
      'a.yaml',
      `cluster: {name: a, ttl: 0s, source: {manifests: ["${write('a.json', objects('172.30.1.1'))}"]}}\nlisten: ["${far}:5301"]\nadmin: off\nforward: []\n`
    )
    const main = join(import.meta.dirname, '..', '..', 'src/cli/main.ts')
    const a = spawn('ip', ['netns', 'exec', netns, process.execPath, main, 'serve', '--config', configA], {
      stdio: 'ignore'
    })
    t.teardown(() => a.kill('SIGKILL'))
    const b = await startServerProcess(
      `cluster: {name: b, ttl: 0s, source: {manifests: ["${write('b.json', objects('10.1.1.20'))}"]}}\nlisten: ["{listen}"]\nadmin: "{admin}"\nforward: []\n` +
        `peers:\n${peerLine('a', `${far}:5301`)}\n` +
        `policies:\n  - {name: p, dnsName: backend.svc.${zone}, targets: [a, local]}\n`
    )
    t.teardown(async () => b.stop())
    const client = await Client.open(b.port, loopClock)
    t.teardown(() => client.close())
    const api = `api.backend.svc.${zone}`
    t.ok(await until(async () => (await client.ask(api)).text === '172.30.1.1', 60_000), 'the cluster answers')

    for (const round of ['first', 'second']) {
      ip('-n', netns, 'link', 'set', inside, 'down')
      const cutAtMs = loopClock.nowMs()
      const before: number[] = []
      const after: number[] = []
      const texts = new Set<string>()
      let downAtMs: number | null = null
      while (loopClock.nowMs() - cutAtMs < 2 * detectionMs) {
        if (downAtMs === null && (await healthOf(b)).get('a') === 'down') downAtMs = loopClock.nowMs() - cutAtMs
        const { text, tookMs } = await client.ask(api)
        texts.add(text)
        ;(downAtMs === null ? before : after).push(tookMs)
        await sleep(20)
      }
      t.same([...texts].filter((text) => text !== '172.30.1.1'), ['10.1.1.20'], `${round} cut: our own Service, no error`) // prettier-ignore
      t.ok(percentile(before, 0.99) < slack * beforeMs, `before it is found out: ${whole(percentile(before, 0.99))} ms`)
      t.ok(
        (downAtMs ?? Number.POSITIVE_INFINITY) < slack * detectionMs,
        `found out after ${whole(downAtMs ?? Number.NaN)} ms`
      )
      t.ok(percentile(after, 0.99) < slack * afterMs, `after that: ${whole(percentile(after, 0.99))} ms`)
      ip('-n', netns, 'link', 'set', inside, 'up')
      const healedAtMs = loopClock.nowMs()
      t.ok(
        await until(async () => (await client.ask(api)).text === '172.30.1.1', slack * returnMs),
        `back ${whole(loopClock.nowMs() - healedAtMs)} ms after it healed`
      )
    }
  }
)
