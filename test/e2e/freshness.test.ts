/**
 * Endpoints of one cluster die, and a client of the other asks for them every 5 ms: for how long is it told the dead
 * one, and does peerdns know? A few of the deaths of `bench/staleness.ts`, with slack for a busy machine.
 */
import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Background } from '../../bench/staleness/background.ts'
import { letDie } from '../../bench/staleness/deaths.ts'
import { ObserverProcess } from '../../bench/staleness/observer-process.ts'
import { ownFigures } from '../../bench/staleness/own-figures.ts'
import { Fleet } from '../../bench/staleness/servers.ts'
import { toldSetUps } from '../../bench/staleness/set-ups.ts'
import { namespace, nodesFor, openShop, questionName, type ShopOptions } from '../../bench/staleness/shop.ts'
import { SliceWatch } from '../../bench/staleness/slice-watch.ts'
import type { PropagationJson, RecordsJson } from '../../src/admin/api-types.ts'
import { startCluster } from './support/cluster.ts'
import { startCoreDns } from './support/coredns.ts'
import { settled } from './support/eventually.ts'
import { KubeApi } from './support/kube-api.ts'
import { clusterSuite } from './support/suite.ts'

const trials = 8
/** Three times what the benchmark has to reach. */
const mostBlackHoleMs = 3 * 250
/**
 * Three times what it may differ by, for half of the deaths; any of them while somebody has to wait for a processor.
 */
const mostDifferenceMs = 3 * 10
const longestDifferenceMs = 400
/** One machine has one clock, and what comes quickly tells it best. */
const mostClockOffsetMs = 100
const changesPerMinute = 1_000

/** `name TTL type data` of the copy of CoreDNS's zone, without its SOA. */
async function recordsHeld(adminUrl: string): Promise<string[]> {
  const response = await fetch(`${adminUrl}/api/v1/records?zone=cluster.local&peer=cluster-a&limit=10000`)
  // It has not come yet.
  if (!response.ok) return []
  const { records } = (await response.json()) as RecordsJson
  const lines = records.map(({ name, type, ttlSeconds, data }) => `${name} ${ttlSeconds} ${type} ${data}`)
  return lines.filter((line) => !line.includes(' SOA ')).sort()
}

/** The same by AXFR, each record once: CoreDNS repeats SRV records of Services with several endpoints. */
async function recordsGiven(port: number): Promise<string[]> {
  const args = ['@127.0.0.1', '-p', String(port), '+noall', '+answer', '+onesoa', 'AXFR', 'cluster.local']
  const { stdout } = await promisify(execFile)('dig', args, { maxBuffer: 64 * 1024 * 1024 })
  const lines = stdout.split('\n').filter((line) => line !== '' && !line.startsWith(';'))
  const records = lines.map((line) => line.split(/\s+/)).map(([name, ttl, , ...rest]) => [name, ttl, ...rest].join(' '))
  return [...new Set(records.filter((line) => !line.includes(' SOA ')))].sort()
}

clusterSuite('a dead endpoint of another cluster is soon given out no more, and the figures say so', async (t) => {
  const shop: ShopOptions = { services: trials, podsOfService: 2, busyServices: 50, podsOfBusyService: 2 }
  const [a, b] = await Promise.all([
    startCluster({ name: 'cluster-a', nodes: nodesFor(shop) }),
    startCluster({ name: 'cluster-b', nodes: 0, isBare: true })
  ])
  t.teardown(async () => Promise.all([a.stop(), b.stop()]))
  const addresses = await openShop(a, shop)
  const fleet = new Fleet({ a, b })
  const setUps = (await toldSetUps(fleet)).filter(({ peerdns }) => peerdns !== null)
  t.teardown(async () => fleet.stop())
  const services = Array.from({ length: trials }, (_, number) => number)
  const names = services.map(questionName)
  const observer = await ObserverProcess.start(setUps.map(({ server }) => server), names) // prettier-ignore
  t.teardown(() => observer.kill())
  const slices = await SliceWatch.start(a, namespace)
  t.teardown(() => slices.stop())
  const busyApi = new KubeApi({ baseUrl: a.baseUrl, caFile: a.ca.caFile, certificate: a.adminCertificate })
  const background = new Background(busyApi, shop, changesPerMinute)
  t.teardown(async () => background.stop().finally(() => busyApi.close()))
  await sleep(2_000)

  const deaths = await letDie({ api: a.api, observer, slices, addresses, services, pod: 0, gapMs: 700 })
  t.comment(JSON.stringify(deaths.map(({ how, apiMs, sliceMs }) => ({ how, apiMs, sliceMs }))))

  for (const { id, title, peerdns } of setUps) {
    const seen = deaths.map(({ bySetUp }) => bySetUp[id]!)
    const blackHolesMs = seen.map(({ blackHoleMs }) => Math.round(blackHoleMs))
    t.ok(seen.every(({ isOver }) => isOver), `${title}: in the end nobody is told a dead endpoint`) // prettier-ignore
    t.ok(Math.max(...blackHolesMs) < mostBlackHoleMs, `${title}: black holes in ms: ${blackHolesMs.join(' ')}`)
    const stale = await peerdns!.metric('peerdns_stale_answers_total', 'peer="cluster-a",policy="from-a"')
    t.ok(stale! >= deaths.length, `${title}: ${stale} stale answers are counted`)
    const changes = await peerdns!.metric('peerdns_propagation_seconds_count', 'stage="peer",peer="cluster-a"')
    t.ok(changes! > deaths.length, `${title}: ${changes} changes came from A, the background's among them`)
  }
  for (const { title, difference, missing, origin, lastStale } of await ownFigures(setUps, deaths)) {
    t.equal(missing, 0, `${title}: each death with stale answers is known`)
    t.ok(difference.medianMs < mostDifferenceMs, `${title}: ${difference.medianMs.toFixed(1)} ms beside the observer`)
    const parts = `${origin!.maxMs.toFixed(1)} ms by the change, ${lastStale!.maxMs.toFixed(1)} ms by the last stale answer`
    t.ok(difference.maxMs < longestDifferenceMs, `${title}: at most ${difference.maxMs.toFixed(1)} ms, ${parts}`)
  }
  const response = await fetch(`${setUps[0]!.peerdns!.adminUrl}/api/v1/propagation?name=${names[0]}`)
  const { changes } = (await response.json()) as PropagationJson
  const { clockOffsetMs } = changes.find(({ peer }) => peer === 'cluster-a')!
  t.ok(Math.abs(clockOffsetMs!) < mostClockOffsetMs, `the clock of A is seen to differ by ${clockOffsetMs} ms`)

  // The zone transfer of CoreDNS's kubernetes plugin: AXFR alone, and one serial for all changes within a second.
  const coredns = await startCoreDns(a, { reverse: [], pods: 'disabled', lines: ['transfer {', '  to *', '}'] })
  const mirror = await fleet.peerdnsOnB({ name: 'of-coredns', peer: `127.0.0.1:${coredns.port}`, mirror: true })
  const first = await settled(() => recordsHeld(mirror.adminUrl), (records) => records.length > 0) // prettier-ignore
  await background.stop()
  const given = await recordsGiven(coredns.port)
  const held = await settled(() => recordsHeld(mirror.adminUrl), (records) => records.join() === given.join()) // prettier-ignore
  t.ok(first.length > trials, `${first.length} records of CoreDNS have come`)
  t.same(held, given, 'while endpoints change, and in the end record by record')
})
