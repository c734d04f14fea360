/**
 * What one answer costs from query octets to response octets, without any socket: as it lies ready, and worked out
 * anew; `node bench/micro/answer.ts`. CPU time; the best of several rounds counts.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { systemClock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { loadConfig } from '../../src/config/load.ts'
import { loadOptions } from '../../src/main/load-options.ts'
import { RunningServer } from '../../src/main.ts'
import { DataPlane } from '../../src/pipeline/data-plane.ts'
import { CLASS, OPCODE, parseType } from '../../src/wire/iana.ts'
import { encodeMessage } from '../../src/wire/message.ts'
import { parseName } from '../../src/wire/name.ts'
import { manifestsOf, zone, type BenchQuestion, type BenchService } from '../dataset.ts'
import { clusterWorkloads, ownServices, peeredServices, peeredSuffixes, peeredWorkload } from '../workloads.ts'

const rounds = 7
const answersEach = 200_000
const cookie = { code: 10, data: new Uint8Array(8) }

const folder = mkdtempSync(join(tmpdir(), 'peerdns-micro-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
async function start(name: string, services: readonly BenchService[], more: object): Promise<RunningServer> {
  const manifests = join(folder, `${name}.json`)
  writeFileSync(manifests, manifestsOf(services))
  const file = join(folder, `${name}.yaml`)
  const cluster = { zone, name, ttl: '60s', source: { manifests: [manifests] } }
  writeFileSync(file, stringify({ cluster, listen: ['127.0.0.1:0'], admin: 'off', forward: [], ...more }))
  const server = new RunningServer(loadConfig(file, loadOptions()), systemClock, silentLog)
  await server.start(false)
  return server
}
const peer = await start('bench-a', peeredServices, {})
const { address, port } = peer.dnsAddresses[0]!
const server = await start('bench-b', ownServices, {
  peers: { 'bench-a': { servers: [`${address}:${port}`] } },
  policies: [{ name: 'from-a', dnsName: peeredSuffixes, targets: ['bench-a'] }]
})

const client = { address: '127.0.0.1', port: 1_024, transport: 'udp' } as const
const out = new Uint8Array(65_535)
const planes = {
  ready: server.dataPlane,
  anew: new DataPlane(server.dataPlane.parts, { hasReadyAnswers: false })
}

function encoded({ name, type }: BenchQuestion, hasCookie: boolean): Uint8Array {
  const flags = { qr: false, aa: false, tc: false, rd: true, ra: false, ad: false, cd: false }
  const questions = [{ name: parseName(name), type: parseType(type)!, class: CLASS.IN }]
  const edns = { version: 0, udpPayloadOctets: 1_232, dnssecOk: false, options: hasCookie ? [cookie] : [] }
  return encodeMessage({
    id: 1,
    opcode: OPCODE.QUERY,
    rcode: 0,
    ...flags,
    questions,
    answer: [],
    authority: [],
    additional: [],
    edns
  })
}

function nanosecondsEach(plane: DataPlane, queries: readonly Uint8Array[]): number {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) {
    const before = process.cpuUsage()
    for (let at = 0; at < answersEach; at++) {
      const query = queries[at % queries.length]!
      plane.answer(query, query.length, client, out)
    }
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, ((user + system) * 1_000) / answersEach)
  }
  return best
}

const asked = [...clusterWorkloads.filter(({ hasMaximum }) => hasMaximum), peeredWorkload]
for (const { id, questions, transport } of asked) {
  if (transport !== 'udp') continue
  for (const [what, plane] of Object.entries(planes)) {
    for (const hasCookie of [false, true]) {
      const queries = questions.map((question) => encoded(question, hasCookie))
      await Promise.all(queries.map(async (query) => plane.resolve(query, client)))
      const name = `answer, ${id}${hasCookie ? ', a cookie' : ''}, ${what}`
      console.log(`${name.padEnd(44)} ${nanosecondsEach(plane, queries).toFixed(0).padStart(27)} ns`)
    }
  }
}
await server.stop({ force: true })
await peer.stop({ force: true })
