/**
 * What users ask first, as an SVG that reads in light and in dark: for some cases the CPU time of an answer and the
 * tail latency, server by server.
 */
import type { ServerRuns } from './cases/throughput.ts'
import { caseTitle, cpuByRound, p99ByRound, type BenchReport, type ByRound } from './joined.ts'
import type { ServerId } from './rivals/server-plan.ts'
import { spreadOf } from './statistics.ts'
import { heldBack } from './summary.ts'
import type { WorkloadId } from './workloads.ts'

const shownCases: ReadonlySet<WorkloadId> = new Set([
  'cluster-a',
  'srv',
  'nxdomain',
  'peered',
  'names-100k-zipf',
  'tcp'
])
const hidden: ReadonlySet<ServerId> = new Set(['echo'])

const width = 860
const labelLeft = 16
const cpuLeft = 118
const cpuRight = 470
const p99Left = 560
const p99Right = 800
const barHeight = 13
const rowHeight = 17
const top = 78
const caseHeight = 26
const caseGap = 14
const bottom = 30
/** Bars that are longer are cut: they would make all others unreadable. */
const mostMicroseconds = 40
const cpuTicks = [0, 10, 20, 30, 40]
const leastMs = 0.05
const mostMs = 500
const p99Ticks = [0.1, 1, 10, 100]

const style = `
text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
.title { font-size: 15px; font-weight: 600; }
.case { font-weight: 600; }
.small { font-size: 11px; fill: #59636e; }
.own-text { font-weight: 600; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.bar { fill: #afb8c1; }
.own { fill: #0969da; }
.floor { fill: #d8dee4; }
.spread { stroke: #424a53; stroke-width: 1.5; }
.dot-own { stroke: #0969da; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .small { fill: #9198a1; }
  .grid { stroke: #30363d; }
  .bar { fill: #6e7681; }
  .own { fill: #58a6ff; }
  .floor { fill: #444c56; }
  .spread { stroke: #c9d1d9; }
  .dot-own { stroke: #58a6ff; }
}`

const kindOf = (id: ServerId): string => (id === 'peerdns' ? 'own' : id === 'echo' || id === 'c-echo' ? 'floor' : 'bar')

/** Transparent, so that it lies on whatever the page is. */
export function plotOf(report: BenchReport): string {
  const results = report.throughput
  const shown = results.filter(({ id }) => shownCases.has(id))
  const body: string[] = []
  let y = top
  for (const result of shown.length === 0 ? results : shown) {
    const { rate, servers } = result
    body.push(`<text class="case" x="${labelLeft}" y="${y + 14}">${escaped(caseTitle(report, result))}</text>`)
    y += caseHeight
    for (const runs of servers) {
      if (hidden.has(runs.id)) continue
      body.push(...row(runs, rate, y))
      y += rowHeight
    }
    y += caseGap
  }
  const height = y - caseGap + bottom
  const lines = [
    ...cpuTicks.map((value) => tick(cpuX(value), String(value), height)),
    ...p99Ticks.map((value) => tick(p99X(value), `${value} ms`, height))
  ]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="CPU time per answer and tail latency by case and server">
<style>${style}
</style>
<text class="title" x="${labelLeft}" y="24">At 30,000 queries a second</text>
<text class="small" x="${labelLeft}" y="42">Medians, with the lowest and the highest round. Servers took turns on one core, the client had the other. The C echo answers nothing: the floor.</text>
<text class="case" x="${cpuLeft}" y="66">CPU time per answer, microseconds</text>
<text class="case" x="${p99Left}" y="66">p99 latency, logarithmic</text>
${[...lines, ...body].join('\n')}
</svg>
`
}

const cpuX = (microseconds: number): number =>
  cpuLeft + (Math.min(microseconds, mostMicroseconds) / mostMicroseconds) * (cpuRight - cpuLeft)

function p99X(ms: number): number {
  const share = Math.log(Math.min(Math.max(ms, leastMs), mostMs) / leastMs) / Math.log(mostMs / leastMs)
  return p99Left + share * (p99Right - p99Left)
}

const tick = (x: number, text: string, height: number): string =>
  `<line class="grid" x1="${x.toFixed(1)}" x2="${x.toFixed(1)}" y1="${top - 4}" y2="${height - bottom + 4}"/>` +
  `<text class="small" x="${x.toFixed(1)}" y="${height - bottom + 20}" text-anchor="middle">${text}</text>`

const spreadBy = (runs: ServerRuns, byRound: ByRound) => spreadOf(byRound(runs).filter((value) => value !== null))

function row(runs: ServerRuns, rate: number, y: number): string[] {
  const { id, title } = runs
  const kind = kindOf(id)
  const baseline = y + barHeight - 3
  const middle = (y + barHeight / 2).toFixed(1)
  const own = kind === 'own' ? ' class="own-text"' : ''
  const parts = [`<text${own} x="${cpuLeft - 8}" y="${baseline}" text-anchor="end">${escaped(title)}</text>`]
  const cpu = spreadBy(runs, cpuByRound)
  if (cpu !== null) {
    const [end, low, high] = [cpu.median, cpu.min, cpu.max].map(cpuX) as [number, number, number]
    const answered = spreadOf(runs.atRate.flatMap((run) => run?.answeredPerSecond ?? []))?.median ?? null
    const label = `${cpu.median.toFixed(1)}${heldBack(answered, rate).replace(' at', ' at only')}`
    parts.push(
      `<rect class="${kind}" x="${cpuLeft}" y="${y}" width="${(end - cpuLeft).toFixed(1)}" height="${barHeight}"/>`,
      `<line class="spread" x1="${low.toFixed(1)}" x2="${high.toFixed(1)}" y1="${middle}" y2="${middle}"/>`,
      `<text class="small" x="${(Math.max(end, high) + 5).toFixed(1)}" y="${baseline}">${label}</text>`
    )
  }
  const p99 = spreadBy(runs, p99ByRound)
  if (p99 !== null) {
    const [at, low, high] = [p99.median, p99.min, p99.max].map(p99X) as [number, number, number]
    parts.push(
      `<line class="spread${kind === 'own' ? ' dot-own' : ''}" x1="${low.toFixed(1)}" x2="${high.toFixed(1)}" y1="${middle}" y2="${middle}"/>`,
      `<circle class="${kind}" cx="${at.toFixed(1)}" cy="${middle}" r="4.5"/>`,
      `<text class="small" x="${width - 8}" y="${baseline}" text-anchor="end">${p99.median < 10 ? p99.median.toFixed(2) : p99.median.toFixed(1)}</text>`
    )
  }
  return parts
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
