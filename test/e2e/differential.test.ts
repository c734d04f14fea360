/**
 * CoreDNS with its kubernetes plugin and peerdns on the same API server, asked the same thousands of questions: each
 * difference is one of the table in test/cases/README.md, or a bug.
 */
import { test } from 'tap'
import { startCluster } from './support/cluster.ts'
import { startCoreDns } from './support/coredns.ts'
import { dashed, difference, ExpectedZone, podsAreUp, readWorld, type World } from './support/expected.ts'
import { LiveClient, silence } from './support/live-client.ts'
import { differenceOf, specificationRows, tableRows } from './support/live-differences.ts'
import { tell } from './support/live-figures.ts'
import { oddObjects } from './support/live-odd-objects.ts'
import { questionsOf } from './support/live-questions.ts'
import { LiveServer } from './support/live-server.ts'
import { Walker } from './support/live-walker.ts'
import { whyNoClusters } from './support/part.ts'
import { recordedCluster } from './support/recorded-cluster.ts'

const skip = whyNoClusters() ?? false
const seed = 20_261_130
const mutants = 6000
const reverse = ['10.0.0.0/8', '172.30.0.0/16', 'fd00::/16']

/** Names that are there whatever the objects, and the edges of the zones. */
const otherNames = ['cluster', 'clusterset'].flatMap((zone) =>
  ['', 'svc.', 'pod.', 'dns.', 'ns.dns.', 'dns-version.', 'nobody.', 'nobody.svc.'].map(
    (name) => `${name}${zone}.local`
  )
)

/** The name of each pod by its addresses, and of one that is not there, in every other namespace too. */
const podNames = ({ pods, namespaces }: World): string[] =>
  [...pods.slice(0, 12).map(({ status }) => status?.podIP ?? ''), '10.99.99.99', 'fd00:a::9'].flatMap((address) =>
    namespaces.map(({ metadata }) => `${dashed(address)}.${metadata?.name}.pod.cluster.local`)
  )

test('differences from CoreDNS 1.15', { skip, timeout: 280_000 }, async (t) => {
  const cluster = await startCluster({
    // The recorded pods are on nodes of this name.
    name: 'a',
    serviceCidr: '172.30.0.0/16',
    podCidr: '10.0.0.0/16',
    ipv6Prefix: 'fd00:a::',
    serviceImports: ['v1beta1', 'v1alpha1']
  })
  t.teardown(async () => cluster.stop())
  const recorded = recordedCluster('a')
  await cluster.api.applyAll([...recorded.all, ...oddObjects])
  for (const pods of ['insecure', 'verified'] as const) {
    await t.test(`pods ${pods}`, async (t) => {
      const [server, coreDns] = await Promise.all([
        LiveServer.start(cluster, { name: pods, pods }),
        startCoreDns(cluster, { clustersetZone: 'clusterset.local', pods, reverse })
      ])
      const rules = { clusterName: 'a', importsInZone: false, pods }
      const walker = new Walker({ server, own: cluster.api, ownRules: rules })
      const walked = await walker.untilEqual((world) => podsAreUp(world, recorded.workloads), {
        deadlineMs: 10_000
      })
      t.same(walked.problems.slice(0, 20), [], 'the plainest reading of the specification')
      const world = await readWorld(cluster.api)
      const zone = new ExpectedZone(world, rules)
      const questions = questionsOf([...zone.owners, ...otherNames, ...podNames(world)], mutants, seed)
      const theirClient = new LiveClient(coreDns.port)
      t.teardown(() => theirClient.close())
      const [ours, theirs] = await Promise.all([
        server.client.askAll(questions),
        theirClient.askAll(questions, 'udp', silence)
      ])
      const wrong = questions.flatMap((question, at) => {
        const name = question.name.toLowerCase()
        if (!/\.svc\.cluster(set)?\.local$/.test(name) || question.type === 'ANY') return []
        return difference(question, zone.lookup({ ...question, name }), ours[at]!) ?? []
      })
      t.same(wrong.slice(0, 10), [], 'changed names, too, are answered by the plainest reading')

      const unexplained: string[] = []
      const counts = new Map<string, number>(tableRows.map(({ row }) => [row, 0]))
      let same = 0
      for (const [at, question] of questions.entries()) {
        const text = differenceOf(ours[at]!, theirs[at]!)
        if (text === null) same++
        if (text === null) continue
        const difference = { question, ours: ours[at]!, theirs: theirs[at]!, zone }
        const row = [...tableRows, ...specificationRows].find(({ explains }) => explains(difference))
        if (row === undefined) unexplained.push(`${question.name} ${question.type}: ${text}`)
        else counts.set(row.row, (counts.get(row.row) ?? 0) + 1)
      }
      tell(`pods ${pods}: ${questions.length} questions, ${same} answers the same, the others by these rows:`)
      for (const [row, count] of counts) tell(`${String(count).padStart(6)}  ${row}`)
      for (const text of unexplained.slice(0, 100)) tell(`not explained: ${text}`)
      t.equal(unexplained.length, 0, 'differences that nothing explains')
      t.ok(same > questions.length / 2)
      await server.stop()
    })
  }
})
