/**
 * What clients get while one of two clusters misbehaves, and how late: `node bench/failover.ts`. The same questions to
 * peerdns (`targets: [a, c]`), to CoreDNS (`forward . a c`, sequential) and to dnsdist (`firstAvailable`), all with
 * their health checks on, none with a cache. A table of faults goes to bench/results/failover.md. Takes some 20 s for
 * each.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import {
  askSteadily,
  Client,
  faults,
  namespaceOf,
  noAnswer,
  OtherClusters,
  percentile,
  whoseAnswer,
  zone,
  type Fault,
  type Given
} from '../test/e2e/support/failover.ts'
import { endChildrenWithUs, startChild, type Child } from './children.ts'
import { freePort } from '../test/support/free-port.ts'
import { findCoredns, findProgram, outputOf } from './rivals/find.ts'

const root = join(import.meta.dirname, '..')
const pattern = 'pair'
const options = parseArgs({
  options: {
    seconds: { type: 'string', default: '15' },
    rate: { type: 'string', default: '4' },
    out: { type: 'string', default: join(import.meta.dirname, 'results') }
  }
}).values

/** What a program is started with, for clusters at these ports. */
type Setup = Readonly<{ command: string; args: readonly string[] }>
type Rival = Readonly<{
  title: string
  setUp: string
  start: (folder: string, port: number, clusters: OtherClusters) => Setup
}>

const suffixOf = (fault: Fault): string => `${namespaceOf(pattern, fault)}.svc.${zone}`

const peerdns: Rival = {
  title: 'peerdns',
  setUp: '`targets: [a, c]`, probes every 1 s with a timeout of 500 ms, fall 2',
  start(folder, port, clusters) {
    const peers = [...clusters.a].map(([fault, { text }]) => `  a-${fault}: {servers: ["${text}"]}`)
    const policies = faults.map(
      (fault) => `  - {name: ${fault}, dnsName: ${suffixOf(fault)}, targets: [a-${fault}, c]}`
    )
    const text = [
      `cluster: {name: b, source: {manifests: ["${folder}"]}}`,
      `listen: ["127.0.0.1:${port}"]`,
      'admin: off',
      'forward: []',
      'log: {level: error}',
      'peers:',
      ...peers,
      `  c: {servers: ["${clusters.c.text}"], probe: {name: svc.${zone}}}`,
      'policies:',
      ...policies,
      ''
    ].join('\n')
    return {
      command: process.execPath,
      args: [join(root, 'src/cli/main.ts'), 'serve', '--config', written(folder, 'peerdns.conf', text)]
    }
  }
}

const coredns = (path: string): Rival => ({
  title: 'CoreDNS',
  setUp: '`forward . a c` with `policy sequential`, `health_check 0.5s`, `max_fails 2`',
  start(folder, port, clusters) {
    const blocks = faults.map((fault) => {
      const upstreams = `${clusters.a.get(fault)!.text} ${clusters.c.text}`
      return `${suffixOf(fault)}:${port} {\n  bind 127.0.0.1\n  forward . ${upstreams} {\n    policy sequential\n    health_check 0.5s no_rec domain svc.${zone}.\n    max_fails 2\n  }\n}\n`
    })
    return { command: path, args: ['-conf', written(folder, 'Corefile', blocks.join('')), '-quiet'] }
  }
})

const dnsdistServer = (address: string, pool: string, order: number): string =>
  `newServer({address="${address}", pool="${pool}", order=${order}, checkName="svc.${zone}.", checkType="SOA", checkInterval=1, checkTimeout=500, maxCheckFailures=2, rise=2})`

const dnsdist = (path: string): Rival => ({
  title: 'dnsdist',
  setUp: '`firstAvailable`, checks every 1 s with a timeout of 500 ms, `maxCheckFailures` 2',
  start(folder, port, clusters) {
    const lines = faults.flatMap((fault) => [
      dnsdistServer(clusters.a.get(fault)!.text, fault, 1),
      dnsdistServer(clusters.c.text, fault, 2),
      `addAction(makeRule("${suffixOf(fault)}."), PoolAction("${fault}"))`
    ])
    const text = [`setLocal("127.0.0.1:${port}")`, 'setServerPolicy(firstAvailable)', ...lines, ''].join('\n')
    return { command: path, args: ['--supervised', '--disable-syslog', '-C', written(folder, 'dnsdist.conf', text)] }
  }
})

function written(folder: string, name: string, text: string): string {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

type Row = Readonly<{ isRight: boolean; share: number; firstWorstMs: number; lastP99Ms: number; wrong: string }>

/** Questions of this last part of the run are after whatever a health check could find out. */
const lastShare = 1 / 3

function rowOf(given: readonly Given[]): Row {
  const right = given.filter((one) => ['a', 'c'].includes(whoseAnswer(one)))
  const wrong = new Set(given.filter((one) => !right.includes(one)).map((one) => whoseAnswer(one)))
  const last = given.slice(Math.floor(given.length * (1 - lastShare)))
  return {
    isRight: right.length === given.length,
    share: right.length / given.length,
    firstWorstMs: Math.max(...given.map(({ tookMs }) => tookMs)),
    lastP99Ms: percentile(last.map(({ tookMs }) => tookMs), 0.99), // prettier-ignore
    wrong: [...wrong].join(', ')
  }
}

async function measure(rival: Rival, port: number): Promise<Map<Fault, Row>> {
  const folder = mkdtempSync(join(tmpdir(), 'peerdns-failover-'))
  const clusters = await OtherClusters.start([pattern], [pattern])
  let child: Child | null = null
  let client: Client | null = null
  try {
    const { command, args } = rival.start(folder, port, clusters)
    child = await startChild(command, args, { core: null, cwd: root, logFile: join(folder, 'log') })
    client = await Client.open(port)
    await sleep(4_000)
    const perSecond = Number(options.rate)
    const healthy = await askSteadily(client, [pattern], { perSecond, forMs: 3_000 })
    const bad = healthy.filter((one) => whoseAnswer(one) !== 'a')
    if (bad.length > 0)
      console.error(`failover: ${rival.title}, all healthy: ${bad.length} of ${healthy.length} not from a`)
    await clusters.misbehave()
    const given = await askSteadily(client, [pattern], { perSecond, forMs: Number(options.seconds) * 1000 })
    return new Map(faults.map((fault) => [fault, rowOf(given.filter((one) => one.fault === fault))]))
  } finally {
    client?.close()
    await child?.stop()
    await clusters.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

function markdownOf(results: ReadonlyMap<Rival, ReadonlyMap<Fault, Row>>, versions: readonly string[]): string {
  const rivals = [...results.keys()]
  const cell = ({ isRight, share, wrong, firstWorstMs, lastP99Ms }: Row): string => {
    const what = isRight
      ? 'right'
      : `${(share * 100).toFixed(0)} % right, else ${wrong.replaceAll(noAnswer, 'no answer')}`
    return `${what}; ${firstWorstMs.toFixed(0)} ms; ${lastP99Ms.toFixed(0)} ms`
  }
  const lines = faults.map(
    (fault) => `| ${fault} | ${rivals.map((rival) => cell(results.get(rival)!.get(fault)!)).join(' | ')} |`
  )
  const sums = rivals.map((rival) => {
    const rows = [...results.get(rival)!.values()]
    const worst = Math.max(...rows.map(({ firstWorstMs }) => firstWorstMs))
    return `**${rows.filter(({ isRight }) => isRight).length} of ${rows.length}**, worst ${(worst / 1000).toFixed(1)} s`
  })
  return [
    '# Failover: one of two clusters misbehaves',
    '',
    `Made by \`node bench/failover.ts\` on ${new Date().toISOString().slice(0, 10)}: ${versions.join(', ')}. ${options.rate} questions a second for each fault, for ${options.seconds} s`,
    'from the moment on which it begins; every name is cold (TTL 0). The first cluster has the fault, the second one is well. Each cell:',
    'whether every question got a right answer; the longest wait of all; the 99th percentile of the last third, when health checks',
    'have had their time. Clients repeat a truncated answer over TCP, and wait for six seconds.',
    '',
    ...rivals.map(({ title, setUp }) => `- ${title}: ${setUp}`),
    ...missing.map((what) => `- Not measured, since it was not installed: ${what}`),
    '',
    `| fault | ${rivals.map(({ title }) => title).join(' | ')} |`,
    `|---|${rivals.map(() => '---').join('|')}|`,
    ...lines,
    `| all right | ${sums.join(' | ')} |`,
    ''
  ].join('\n')
}

endChildrenWithUs()
const corednsProgram = findCoredns(join(root, '.cache', 'bench', 'bin'), (line) => console.error(`failover: ${line}`))
const dnsdistPath = findProgram('dnsdist')
const rivals = [
  peerdns,
  ...(corednsProgram === null ? [] : [coredns(corednsProgram.path)]),
  ...(dnsdistPath === null ? [] : [dnsdist(dnsdistPath)])
]
const versions = [
  'this peerdns',
  ...(corednsProgram === null ? [] : [`CoreDNS ${corednsProgram.version}`]),
  ...(dnsdistPath === null
    ? []
    : [`dnsdist ${/dnsdist (\S+)/.exec(outputOf(dnsdistPath, ['--version']) ?? '')?.[1] ?? ''}`])
]
const missing = [
  ...(corednsProgram === null ? ['CoreDNS (in PATH, or Go to build it with)'] : []),
  ...(dnsdistPath === null ? ['dnsdist (Debian package `dnsdist`)'] : [])
]
if (missing.length > 0) console.error(`failover: left out, since they are not installed: ${missing.join(', ')}`)
const results = new Map<Rival, Map<Fault, Row>>()
for (const rival of rivals) results.set(rival, await measure(rival, await freePort()))
const text = markdownOf(results, versions)
writeFileSync(join(options.out, 'failover.md'), text)
console.log(text)
process.exit(0)
