/**
 * Endpoints of one cluster die, and a client of the other asks for them every 5 ms: for how long is it told the dead one,
 * and does peerdns know? A few of the deaths of `bench/staleness.ts`, with slack for a busy machine.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Background } from '../../bench/staleness/background.ts'
import { letDie } from '../../bench/staleness/deaths.ts'
import { ObserverProcess } from '../../bench/staleness/observer-process.ts'
import { ownFigures } from '../../bench/staleness/own-figures.ts'
import { Fleet } from '../../bench/staleness/servers.ts'
import { toldSetUps } from '../../bench/staleness/set-ups.ts'
import { namespace, nodesFor, openShop, questionName, type ShopOptions } from '../../bench/staleness/shop.ts'
import { SliceWatch } from '../../bench/staleness/slice-watch.ts'
import type { PropagationJson } from '../../src/admin/api-types.ts'
import { startCluster } from './support/cluster.ts'
import { KubeApi } from './support/kube-api.ts'
import { clusterSuite } from './support/suite.ts'

const trials = 8
/** Three times what the benchmark has to reach. */
const mostBlackHoleMs = 3 * 250
/** Three times what it may differ by, and what a batch of changes may hide: half of the deaths, since the observer too has to wait for a processor. */
const mostDifferenceMs = 3 * 10 + 50
const changesPerMinute = 1_000

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
  for (const { title, difference, missing } of await ownFigures(setUps, deaths)) {
    t.equal(missing, 0, `${title}: each death with stale answers is known`)
    t.ok(difference.medianMs < mostDifferenceMs, `${title}: ${difference.medianMs.toFixed(1)} ms beside the observer`)
    t.ok(difference.maxMs < mostBlackHoleMs, `${title}: at most ${difference.maxMs.toFixed(1)} ms`)
  }
  const response = await fetch(`${setUps[0]!.peerdns!.adminUrl}/api/v1/propagation?name=${names[0]}`)
  const { changes } = (await response.json()) as PropagationJson
  const { clockOffsetMs } = changes.find(({ peer }) => peer === 'cluster-a')!
  t.ok(Math.abs(clockOffsetMs!) < 250, `one machine has one clock, and it is seen to differ by ${clockOffsetMs} ms`)
})
