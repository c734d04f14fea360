/**
 * The tables in test/cases, over UDP and TCP, in all three pod modes, each row one assertion; only what the RFC or the
 * specification says counts (`--strict`). One mode has workers. The runner is Python, so that no code of ours judges
 * our octets.
 */
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { startServerProcess } from './support/server-process.ts'

const cases = join(dirname(fileURLToPath(import.meta.url)), 'cases')
/** Rows of the second table often wait for a second, to see that there is no answer: several runners share them. */
const tables = [
  { table: 'k8s-dns/cases.tsv', runners: 1 },
  { table: 'wire/cases.tsv', runners: 6 }
]
const hasPython = spawnSync('python3', ['--version']).status === 0

const config = (pods: string) => `
cluster:
  name: north
  pods: ${pods}
  reverse: [10.43.0.0/16, 10.77.0.0/16, "fd43:1:2:1::/64", "fd77:1:2:a::/64"]
  source: {manifests: ["${join(cases, 'k8s-dns', 'manifests')}"]}
listen: ["{listen}"]
admin: "{admin}"
forward: []
peers: {partner: {servers: ["127.0.0.1:5399"]}}
policies: [{name: partner, dnsName: partner.example, targets: [partner]}]
log: {level: info}
${pods === 'verified' ? 'threads: 2' : ''}
`

/** The ids of a table's rows. */
const idsOf = (table: string): string[] =>
  readFileSync(join(cases, table), 'utf8')
    .split('\n')
    .filter((line) => line.includes('\t') && !/^(#|id\t)/.test(line))
    .map((line) => line.slice(0, line.indexOf('\t')))

/** Runs these rows of one table to their end and gives the runner's lines. */
async function runRows(
  ids: readonly string[],
  table: string,
  port: number,
  pods: string,
  isTcp: boolean
): Promise<string[]> {
  const args = [
    '--server',
    '127.0.0.1',
    '--port',
    String(port),
    '--cases',
    join(cases, table),
    '--only',
    `^(${ids.map((id) => id.replaceAll('.', '\\.')).join('|')})$`,
    '--strict',
    // For answers that come late on a busy machine. One that must not come is waited for a second, in all rows but one.
    '--timeout',
    '8',
    '--pods',
    pods
  ]
  const runner = spawn('python3', [join(cases, 'run_cases.py'), ...args, ...(isTcp ? ['--tcp'] : [])], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  const lines: string[] = []
  for await (const line of createInterface({ input: runner.stdout })) lines.push(line)
  return lines
}

type Run = Readonly<{ title: string; lines: readonly string[] }>

/** Neighbours are of one kind and wait for the same, so they are dealt out in turn. */
const share = <Item>(items: readonly Item[], among: number): Item[][] =>
  Array.from({ length: among }, (_, which) => items.filter((_, index) => index % among === which))

/** Both tables over UDP and TCP against a server with this pod mode. The runners wait a lot, so all go at once. */
async function runAll(pods: string): Promise<Run[]> {
  const server = await startServerProcess(config(pods))
  try {
    const kinds = tables.flatMap(({ table, runners }) =>
      share(idsOf(table), runners).flatMap((ids) => [false, true].map((isTcp) => ({ table, ids, isTcp })))
    )
    return await Promise.all(
      kinds.map(async ({ table, ids, isTcp }) => ({
        title: `${table.slice(0, table.indexOf('/'))} over ${isTcp ? 'TCP' : 'UDP'}`,
        lines: await runRows(ids, table, server.port, pods, isTcp)
      }))
    )
  } finally {
    await server.stop()
  }
}

const podModes = ['insecure', 'verified', 'disabled']
const skip = hasPython ? false : 'python3 is not installed'
// All modes at once. A failure waits for its test, so that it is not taken for an unhandled one before.
const results = new Map(
  podModes.map((pods) => [pods, skip === false ? runAll(pods).catch((error: unknown) => error as Error) : []])
)
/** Rows that passed or failed in some mode, over some transport. */
const tried = new Set<string>()

for (const pods of podModes) {
  test(`cases, pods ${pods}`, { skip }, async (t) => {
    const runs = (await results.get(pods)) ?? []
    if (runs instanceof Error) throw runs
    for (const { title, lines } of runs) {
      const total = /^(\d+) passed, (\d+) failed/.exec(lines.at(-1) ?? '')
      const passes = lines.filter((line) => line.startsWith('PASS'))
      const failures = lines.filter((line) => line.startsWith('FAIL'))
      for (const line of passes) t.pass(`${title}: ${line.slice(4).trim()}`)
      for (const line of failures) t.fail(`${title}: ${line.slice(4).trim()}`)
      for (const line of [...passes, ...failures]) tried.add(/^\w+ +([\w.-]+)/.exec(line)?.[1] ?? line)
      t.equal(total?.[0], `${passes.length} passed, ${failures.length} failed`, `${title}: the runner came to its end`)
    }
  })
}

test('cases: every row of the tables was tried', { skip }, async (t) => {
  const ids = tables.flatMap(({ table }) => idsOf(table))
  t.ok(ids.length > 200, `${ids.length} rows`)
  t.equal(ids.filter((id) => !tried.has(id)).join(' '), '', 'none was left out')
})
