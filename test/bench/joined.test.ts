import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { aimsOf, type Aim } from '../../bench/aims.ts'
import type { ServerRuns } from '../../bench/cases/throughput.ts'
import {
  caseOf,
  emptyReport,
  format,
  joined,
  textOf,
  type BenchReport,
  type Measured,
  type MeasuredCase
} from '../../bench/joined.ts'
import { demandsOn } from '../../bench/overload/demands.ts'
import { plotOf } from '../../bench/plot.ts'
import { readmePart, withFigures } from '../../bench/readme.ts'
import { markdownReport } from '../../bench/report.ts'
import { readOtherResults, readReport } from '../../bench/results.ts'
import { serverTitles, type ServerId } from '../../bench/rivals/server-plan.ts'
import { memoryOf, summaryOf } from '../../bench/summary.ts'
import { allWorkloads, type WorkloadId } from '../../bench/workloads.ts'

const none = { overload: null, restart: null }

const measuredAt = (commit: string, run = commit): Measured => ({
  date: '2026-12-01',
  run,
  commit,
  machine: 'Two shared cores',
  versions: { Node: '26.0.0' },
  seconds: 1,
  rounds: 3,
  notes: []
})

type Figures = Readonly<{ cpu: readonly number[]; p99?: number; maximum?: number; rss?: number; answered?: number }>

function runsWith(id: ServerId, { cpu, p99 = 1, maximum, rss = 50e6, answered = 30_000 }: Figures): ServerRuns {
  const shares = { lostShare: 0, foreignShare: 0 }
  const latency = { p50Ms: 0.1, p99Ms: p99, p999Ms: 2 }
  return {
    id,
    title: serverTitles[id],
    setUp: 'as it is',
    atRate: cpu.map((cpuMicroseconds) => ({
      cpuMicroseconds,
      latency,
      answeredPerSecond: answered,
      responseOctets: 68,
      ...shares
    })),
    atMaximum:
      maximum === undefined
        ? []
        : cpu.map((cpuMicroseconds) => ({ cpuMicroseconds, answeredPerSecond: maximum, outstanding: 100, ...shares })),
    rssOctets: rss
  }
}

function caseWith(
  id: WorkloadId,
  servers: Partial<Record<ServerId, Figures>>,
  commit = 'a',
  run = commit
): MeasuredCase {
  const { title, shortTitle, rate } = allWorkloads.find((workload) => workload.id === id)!
  const runs = Object.entries(servers).map(([server, figures]) => runsWith(server as ServerId, figures))
  const absent = [{ title: 'dns2', why: 'it has no such thing' }]
  return { id, title, shortTitle, rate, servers: runs, absent, measured: measuredAt(commit, run) }
}

const reportOf = (...throughput: MeasuredCase[]): BenchReport => ({ ...emptyReport, throughput })
const three = (value: number): number[] => [value, value, value]

test('joined replaces the cases that were measured again and keeps all others', async (t) => {
  const before: BenchReport = {
    ...reportOf(caseWith('peered', { peerdns: { cpu: [1] } }), caseWith('cluster-a', { peerdns: { cpu: [1] } })),
    start: { measured: measuredAt('a'), rows: [] }
  }
  const now = reportOf(caseWith('cluster-a', { peerdns: { cpu: [2] } }, 'b'), caseWith('srv', {}, 'b'))
  const both = joined(before, now)
  t.same(
    both.throughput.map(({ id, measured }) => [id, measured.commit]),
    [
      ['cluster-a', 'b'],
      ['srv', 'b'],
      ['peered', 'a']
    ],
    'in the order of the workloads, each with its own commit'
  )
  t.equal(caseOf(both, 'cluster-a')!.servers[0]!.atRate[0]!.cpuMicroseconds, 2)
  t.equal(both.start, before.start, 'what this run had not')
  t.equal(both.latency, null)
  t.same(joined(emptyReport, now).throughput.length, 2)
})

test('textOf writes what can be read again, rounded, a line for each server', async (t) => {
  const report = reportOf(caseWith('srv', { peerdns: { cpu: [10.123456] }, coredns: { cpu: [20] } }))
  const text = textOf(report)
  const again = JSON.parse(text) as BenchReport
  t.equal(again.format, format)
  t.equal(again.throughput[0]!.servers[0]!.atRate[0]!.cpuMicroseconds, 10.123)
  t.equal(text.split('\n').length, 5, 'the head, the case, two servers, and the end')
})

const aimAt = (aims: readonly Aim[], what: string): Aim => aims.find((aim) => aim.what === what)!
const manyNames = "CPU per query, 100,000 names, by 200 names'"
const twoThreads = "CPU per query, two threads, by one thread's"
const underChanges = 'CPU per query, 500 endpoint changes a second, by that without'

test('aimsOf compares within the rounds and says what was not measured', async (t) => {
  const nothing = aimsOf(emptyReport, none)
  t.ok(
    nothing.every(({ measured, isMet }) => measured === null && isMet === null),
    'nothing measured, nothing met'
  )
  const report = reportOf(
    caseWith('cluster-a', {
      peerdns: { cpu: [10, 30, 10], p99: 0.4, maximum: 160_000, rss: 119e6 },
      unbound: { cpu: [10, 30, 8], p99: 0.3, maximum: 150_000 },
      coredns: { cpu: three(25) },
      knot: { cpu: three(10), maximum: 160_000 },
      dnsdist: { cpu: three(10), maximum: 160_000 },
      'c-echo': { cpu: three(8) }
    }),
    caseWith('names-200', { peerdns: { cpu: [10, 20, 10] } }),
    caseWith('names-100k', { peerdns: { cpu: [14, 28, 13] } }),
    caseWith('no-changes', { peerdns: { cpu: three(10) }, coredns: { cpu: three(20) } }),
    caseWith('changes', { peerdns: { cpu: three(15) }, coredns: { cpu: three(50) } }),
    caseWith('threads-1', { peerdns: { cpu: three(10), maximum: 150_000 } }),
    caseWith('threads-2', { peerdns: { cpu: three(12), maximum: 200_000 } })
  )
  const restart = { date: '', commit: 'a', restarts: 50, queriesPerSecond: 10_000, sent: 5, lost: 1, longestMs: 61 }
  const aims = aimsOf(report, { overload: null, restart })
  t.match(aimAt(aims, "CPU per query, ClusterIP A, by Unbound's"), {
    measured: '1.00x',
    isMet: true,
    beside: '10.0 us and 10.0 us'
  })
  t.match(aimAt(aims, "CPU per query, ClusterIP A, by CoreDNS's"), {
    measured: '0.40x',
    isMet: false,
    beside: '10.0 us and 25.0 us; C echo, which answers nothing: 0.32x'
  })
  t.match(aimAt(aims, "maximum q/s, ClusterIP A, by Unbound's"), { measured: '1.07x', isMet: true })
  t.match(aimAt(aims, "maximum q/s, ClusterIP A, by dnsdist's"), { measured: '1.00x', isMet: false }, 'above it')
  t.match(aimAt(aims, "maximum q/s, ClusterIP A, by Knot DNS's (stretch)"), { isMet: true }, 'level is enough')
  t.match(aimAt(aims, "p99 latency, ClusterIP A, by Unbound's"), { measured: '1.33x', isMet: false })
  t.match(aimAt(aims, twoThreads), { measured: '1.20x', isMet: false })
  t.match(aimAt(aims, manyNames), { measured: '1.40x', isMet: false, beside: '14.0 us and 10.0 us' })
  t.match(aimAt(aims, underChanges), {
    measured: '1.50x',
    isMet: true,
    beside: 'p99 1.00 ms and 1.00 ms; CoreDNS: 2.50x'
  })
  t.match(aimAt(aims, 'RSS with a small cluster, after the load'), { measured: '119 MB', isMet: true })
  t.match(aimAt(aims, 'queries lost in restarts that take over'), { measured: '1 of 5', isMet: false })
  t.match(aimAt(aims, "CPU per query, cached peered name, by Unbound's"), { measured: null, isMet: null })
})

test('aimsOf divides nothing by figures of another run', async (t) => {
  const pairs: [string, WorkloadId, WorkloadId][] = [
    [manyNames, 'names-200', 'names-100k'],
    [twoThreads, 'threads-1', 'threads-2'],
    [underChanges, 'no-changes', 'changes']
  ]
  const runs = { peerdns: { cpu: three(10), maximum: 100_000 }, coredns: { cpu: three(20) } }
  const apart = { measured: 'not measured in one run', isMet: false, beside: '' }
  for (const [what, base, other] of pairs) {
    const aimOf = (...cases: MeasuredCase[]): Aim => aimAt(aimsOf(reportOf(...cases), none), what)
    t.match(aimOf(caseWith(base, runs), caseWith(other, runs)), { measured: '1.00x', isMet: true }, what)
    t.match(aimOf(caseWith(base, runs, 'a', '1'), caseWith(other, runs, 'a', '2')), apart, `${what}: another run`)
    t.match(aimOf(caseWith(base, runs, 'a'), caseWith(other, runs, 'b')), apart, `${what}: another commit`)
    t.match(aimOf(caseWith(other, runs)), apart, `${what}: the one alone`)
    t.match(aimOf(caseWith(base, runs)), apart, `${what}: the other alone`)
  }
  const noRival = aimsOf(reportOf(caseWith('cluster-a', { peerdns: { cpu: three(10), maximum: 1 } })), none)
  t.match(aimAt(noRival, "CPU per query, ClusterIP A, by Unbound's"), apart, 'Unbound was not there')
  t.match(aimAt(noRival, "maximum q/s, ClusterIP A, by dnsdist's"), apart)
})

test('tables mark the cases of another commit than the last run had', async (t) => {
  const runs = { peerdns: { cpu: three(10), maximum: 100_000 }, unbound: { cpu: three(10) } }
  const report = reportOf(
    caseWith('cluster-a', runs, 'old', '2026-12-01T01:00:00Z'),
    caseWith('srv', runs, 'new', '2026-12-01T03:00:00Z'),
    caseWith('nxdomain', runs, 'new', '2026-12-01T02:00:00Z')
  )
  const restart = { date: '', commit: 'old', restarts: 50, queriesPerSecond: 1, sent: 5, lost: 0, longestMs: 6 }
  const demand = { what: 'RSS', aim: 'flat' }
  const overloads = [
    { title: 'ready', demands: [{ ...demand, measured: '1.00x', isMet: true }] },
    { title: 'plain', demands: [{ ...demand, measured: '1.01x', isMet: true }] },
    { title: 'new', demands: [{ ...demand, measured: '2.00x', isMet: false }] }
  ]
  const overload = { date: '', commit: 'new', setUps: overloads }
  const summary = summaryOf(report)
  t.match(summary, /^\| ClusterIP A \(at old\) +\|/m)
  t.match(summary, /^\| SRV +\|/m)
  t.match(summary, /^\| NXDOMAIN +\|/m)
  t.match(memoryOf(report), /^\| ClusterIP A \(at old\) +\|/m)
  t.match(plotOf(report), 'ClusterIP A (at old)')
  const aims = aimsOf(report, { overload, restart })
  t.match(aimAt(aims, "CPU per query, ClusterIP A, by Unbound's"), { beside: '10.0 us and 10.0 us; at old' })
  t.match(aimAt(aims, 'RSS with a small cluster, after the load'), { beside: 'at old' })
  t.match(aimAt(aims, 'queries lost in restarts that take over').beside, /; at old$/)
  const besideOverload = '**missed** with new: 2.00x; met with plain'
  t.match(aimAt(aims, 'overload: RSS'), { measured: '1.00x', isMet: true, beside: besideOverload })
})

test('demandsOn judges what an overload did', async (t) => {
  const sample = { rssOctets: 100, healthMs: 2, answerMs: 1 }
  const good = {
    maximum: 1_000,
    offeredPerSecond: 2_000,
    answeredPerSecond: 950,
    longestMs: 270,
    meanMs: 20,
    p99Ms: null,
    restRssOctets: 100,
    samples: [sample, sample],
    recovery: { sent: 10, lost: 0, longestMs: 1 }
  }
  const missed = (figures: Partial<typeof good>): string[] =>
    demandsOn({ ...good, ...figures }).flatMap(({ what, isMet }) => (isMet ? [] : [what]))
  t.same(missed({}), [])
  t.same(missed({ answeredPerSecond: 900 }), ['answered, by the maximum'])
  t.same(missed({ offeredPerSecond: 1_400 }), ['answered, by the maximum'], 'that was no overload')
  t.same(missed({ longestMs: 501 }), ['latency of what was answered'])
  t.same(missed({ samples: [sample, { ...sample, rssOctets: 111 }] }), ['RSS, by that before'])
  t.same(missed({ samples: [] }), ['`/healthz` answers'], 'nobody asked')
  t.same(missed({ recovery: { sent: 10, lost: 1, longestMs: 1 } }), ['right behind it'])
})

test('reports show each case of a joined report, and why a figure is missing', async (t) => {
  const report = reportOf(
    caseWith('cluster-a', { peerdns: { cpu: [10], maximum: 150_000 }, coredns: { cpu: [25], answered: 20_000 } }),
    caseWith('changes', { peerdns: { cpu: [12] } }, 'b')
  )
  const markdown = markdownReport(report, none)
  t.match(markdown, '25.0 at 20.0k', 'a server that did not keep up')
  t.match(markdown, '- dns2: it has no such thing (ClusterIP A; 500 endpoint changes/s)')
  t.match(markdown, 'peerdns b, 3 rounds of 1 s')
  t.notMatch(markdown, /undefined|NaN/)
  const svg = plotOf(report)
  t.match(svg, 'ClusterIP A')
  t.notMatch(svg, /undefined|NaN/)
  const part = readmePart(report, none)
  t.equal(withFigures(`before\n${part}\nafter\n`, part), `before\n${part}\nafter\n`)
  t.throws(() => withFigures('no place', part), { message: /has no lines/ })
  t.doesNotThrow(() => markdownReport(emptyReport, none))
})

test('README.md has the figures of the results that lie beside it', async (t) => {
  const root = join(import.meta.dirname, '..', '..')
  const folder = join(root, 'bench', 'results')
  const part = readmePart(readReport(join(folder, 'latest.json')), readOtherResults(folder))
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  t.ok(readme.includes(part), 'else: npm run bench -- --draw --readme')
})
