import { test } from 'tap'
import { latencyOf, parseLatencies, parseSummary } from '../../bench/dnsperf.ts'
import { costsByPart, costsOf, type CpuProfile } from '../../bench/cpu-profile.ts'
import { parseOptions } from '../../bench/options.ts'
import {
  cpuSecondsBetween,
  parseCoreBusySeconds,
  parseCoreList,
  parseStatSeconds,
  parseStatusOctets
} from '../../bench/process-usage.ts'
import { markdownTable, spreadText } from '../../bench/tables.ts'

const statistics = `DNS Performance Testing Tool
Version 2.10.0

[Status] Testing complete (time limit)

Statistics:

  Queries sent:         60000
  Queries completed:    59990 (99.98%)
  Queries lost:         10 (0.02%)

  Response codes:       NOERROR 59000 (98.35%), NXDOMAIN 990 (1.65%)
  Average packet size:  request 45, response 135
  Run time (s):         2.000143
  Queries per second:   29992.855431

  Average Latency (s):  0.000321 (min 0.000018, max 0.049593)
  Latency StdDev (s):   0.001132
`

test('parseSummary reads the statistics of dnsperf 2.10', async (t) => {
  t.same(parseSummary(statistics), {
    sent: 60_000,
    completed: 59_990,
    lost: 10,
    seconds: 2.000143,
    rcodes: { NOERROR: 59_000, NXDOMAIN: 990 },
    responseOctets: 135,
    meanLatencyMs: 0.321,
    maxLatencyMs: 0.049593 * 1000
  })
  t.throws(() => parseSummary('Error: no such file'), { message: /not dnsperf's statistics/ })
})

test('parseLatencies reads one latency of each response line', async (t) => {
  const lines = [
    '[Status] Sending',
    '> NOERROR b.example A 0.002500',
    '> T c.example A',
    '> NXDOMAIN a. SRV 0.000100',
    ''
  ]
  t.same(
    [...parseLatencies(lines.join('\n'))],
    [0.1, 2.5],
    'sorted, in milliseconds; timeouts and other lines left out'
  )
  t.same([...parseLatencies('> NOERROR x A 0.5')], [500], 'the last line without an end')
  t.equal(latencyOf(new Float64Array(0)), null)
  t.same(latencyOf(Float64Array.of(1, 2, 3)), { p50Ms: 2, p99Ms: 3, p999Ms: 3 })
})

test("/proc's texts are read", async (t) => {
  const stat = '5636 (a (b) c) S 1 2 3 0 -1 4194560 3014 0 1 0 150 50 7 8 20 0 5 0 219173 1674489856 12934'
  t.equal(parseStatSeconds(stat), 2, 'user and system time, whatever the name holds')
  t.equal(parseStatusOctets('VmHWM:\t  900 kB\nVmRSS:\t  512 kB\n', 'VmRSS'), 512 * 1024)
  t.ok(Number.isNaN(parseStatusOctets('', 'VmRSS')))
  const stats = 'cpu  1 1 1 1 1 1 1 1\ncpu0 100 0 50 9999 77 0 30 20 0 0\ncpu1 1 2 3 4 5 6 7 8 0 0\n'
  t.equal(parseCoreBusySeconds(stats, 0), 2, 'neither idle nor waiting')
  t.ok(Number.isNaN(parseCoreBusySeconds(stats, 2)))
  t.same(parseCoreList('0-2,5\n'), [0, 1, 2, 5])
  t.same(parseCoreList(''), [])
})

test('cpuSecondsBetween takes nanoseconds, and ticks where a thread ended', async (t) => {
  const reading = (tickSeconds: number, threads: Record<string, number>) => ({
    tickSeconds,
    threadNanoseconds: new Map(Object.entries(threads))
  })
  t.equal(cpuSecondsBetween(reading(1, { a: 1e9, b: 0 }), reading(9, { a: 2e9, b: 5e8 })), 1.5)
  t.equal(cpuSecondsBetween(reading(1, { a: 1e9 }), reading(9, { a: 2e9, new: 1e9 })), 2, 'a new thread counts in full')
  t.equal(cpuSecondsBetween(reading(1, { a: 1e9, b: 1e9 }), reading(4, { a: 2e9 })), 3, 'b ended')
  t.equal(cpuSecondsBetween(reading(1, {}), reading(4, {})), 3, 'a kernel without schedstat')
})

test('costsOf counts functions within the window, recursion once', async (t) => {
  const frame = (functionName: string, url: string) => ({ functionName, url, lineNumber: 9 })
  const profile: CpuProfile = {
    startTime: 1000,
    nodes: [
      { id: 1, callFrame: frame('(root)', ''), children: [2, 5] },
      { id: 2, callFrame: frame('walk', 'file:///repo/src/wire/name.ts'), children: [3] },
      { id: 3, callFrame: frame('walk', 'file:///repo/src/wire/name.ts'), children: [4] },
      { id: 4, callFrame: frame('doSend', 'node:dgram') },
      { id: 5, callFrame: frame('(idle)', '') }
    ],
    samples: [4, 2, 3, 4, 5],
    timeDeltas: [100, 10, 20, 70, 500]
  }
  const costs = costsOf(profile, '/repo', { from: 1105, to: 2000 })
  t.same(costs, [
    { name: 'doSend', where: 'node:dgram:10', selfShare: 0.7, totalShare: 0.7 },
    { name: 'walk', where: 'src/wire/name.ts:10', selfShare: 0.3, totalShare: 1 }
  ])
  t.same(costsByPart(costs), [
    { part: 'node:dgram', share: 0.7 },
    { part: 'src/wire', share: 0.3 }
  ])
})

test('parseOptions takes known cases and numbers in range', async (t) => {
  t.match(parseOptions(['--quick', '--only', 'srv,start']), { seconds: 1, rounds: 2, resultsFolder: null })
  t.match(parseOptions([]), { seconds: 1, rounds: 5, batching: 'auto', resultsFolder: 'bench/results' })
  t.match(parseOptions(['--batching', 'off']), { batching: 'off', threads: 1, resultsFolder: null })
  t.match(parseOptions(['--threads', '2', '--out', 'x']), { threads: 2, resultsFolder: 'x' })
  t.match(parseOptions(['--draw', '--readme']), { isDrawnOnly: true, hasReadme: true })
  const both = parseOptions(['--only', 'threads,srv'])
  t.same(
    typeof both === 'string' ? both : [...both.cases],
    ['threads-0', 'threads-1', 'threads-2', 'srv'],
    'cases that only mean something together'
  )
  const many = parseOptions(['--only', 'names-100k'])
  t.same(typeof many === 'string' ? many : [...many.cases], ['names-200', 'names-100k'], 'and what it is compared with')
  t.match(parseOptions(['--seconds', '10', '--no-files']), { seconds: 10, resultsFolder: null })
  for (const wrong of [
    ['--only', 'all'],
    ['--only', 'names-200'],
    ['--rounds', '0'],
    ['--seconds', 'x'],
    ['--fast'],
    ['--patience', '-1'],
    ['--batching', 'on'],
    ['--threads', '65']
  ]) {
    t.type(parseOptions(wrong), 'string', wrong.join(' '))
  }
})

test('markdownTable pads columns, and spreadText shows the range of several runs', async (t) => {
  t.equal(
    markdownTable(
      ['server', 'us'],
      [
        ['a', '1.5'],
        ['longer', '10.25']
      ]
    ),
    ['| server |    us |', '| ------ | ----: |', '| a      |   1.5 |', '| longer | 10.25 |'].join('\n')
  )
  const text = (value: number): string => value.toFixed(1)
  t.equal(spreadText(null, text), '–')
  t.equal(spreadText({ median: 2, min: 1, max: 3, runs: 3 }, text), '2.0 (1.0–3.0)')
  t.equal(spreadText({ median: 2, min: 2, max: 2, runs: 1 }, text), '2.0')
})
