/**
 * The tables in test/cases, over UDP and TCP, in all three pod modes, each row one assertion; only what the RFC or the
 * specification says counts (`--strict`). The runner is Python, so that no code of ours judges our octets.
 */
import { spawn, spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { startServerProcess } from './support/server-process.ts'

const cases = join(dirname(fileURLToPath(import.meta.url)), 'cases')
const tables = ['k8s-dns/cases.tsv', 'wire/cases.tsv']
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
`

/** Runs one table to its end and gives the runner's lines. */
async function runTable(table: string, port: number, pods: string, isTcp: boolean): Promise<string[]> {
  const args = [
    '--server',
    '127.0.0.1',
    '--port',
    String(port),
    '--cases',
    join(cases, table),
    '--strict',
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

for (const pods of ['insecure', 'verified', 'disabled']) {
  test(`cases, pods ${pods}`, { skip: hasPython ? false : 'python3 is not installed' }, async (t) => {
    const server = await startServerProcess(config(pods))
    t.teardown(() => server.stop())
    const runs = tables.flatMap((table) => [false, true].map((isTcp) => ({ table, isTcp })))
    const outputs = await Promise.all(runs.map(({ table, isTcp }) => runTable(table, server.port, pods, isTcp)))
    for (const [index, { table, isTcp }] of runs.entries()) {
      const lines = outputs[index] ?? []
      const title = `${table.slice(0, table.indexOf('/'))} over ${isTcp ? 'TCP' : 'UDP'}`
      const total = /^(\d+) passed, (\d+) failed/.exec(lines.at(-1) ?? '')
      const passes = lines.filter((line) => line.startsWith('PASS'))
      const failures = lines.filter((line) => line.startsWith('FAIL'))
      for (const line of passes) t.pass(`${title}: ${line.slice(4).trim()}`)
      for (const line of failures) t.fail(`${title}: ${line.slice(4).trim()}`)
      t.equal(total?.[0], `${passes.length} passed, ${failures.length} failed`, `${title}: the runner came to its end`)
      t.ok(passes.length > 40, `${title}: ${passes.length} rows were tried`)
    }
  })
}
