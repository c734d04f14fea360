/**
 * The costs of an answer in every case as an SVG that reads in light and in dark: a bar for each server, with its
 * spread.
 */
import type { ServerRuns, ThroughputResult } from './cases/throughput.ts'
import type { ServerId } from './rivals/server-plan.ts'
import { spreadOf } from './statistics.ts'

const width = 860
const labelWidth = 150
const right = 70
const barHeight = 14
const gap = 3
const top = 64
const titleHeight = 30
/** Bars that are longer are cut: they would make all others unreadable. */
const mostMicroseconds = 40

const style = `
text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
.title { font-size: 15px; font-weight: 600; }
.case { font-weight: 600; }
.small { font-size: 11px; fill: #59636e; }
.bar { fill: #8c959f; }
.own { fill: #0969da; }
.floor { fill: #d1d9e0; }
.spread { stroke: #1f2328; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .small { fill: #9198a1; }
  .bar { fill: #6e7681; }
  .own { fill: #58a6ff; }
  .floor { fill: #3d444d; }
  .spread { stroke: #e6edf3; }
}`

const kindOf = (id: ServerId): string => (id === 'peerdns' ? 'own' : id === 'echo' || id === 'c-echo' ? 'floor' : 'bar')

/** Transparent, so that it lies on whatever the page is. */
export function plotOf(results: readonly ThroughputResult[]): string {
  const body: string[] = []
  let y = top
  for (const { title, rates, servers } of results) {
    body.push(
      `<text class="case" x="16" y="${y + 12}">${escaped(title)}, ${thousands(rates[1])} queries a second</text>`
    )
    y += titleHeight - 8
    for (const runs of servers) {
      body.push(...bar(runs, y))
      y += barHeight + gap
    }
    y += titleHeight - 8
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" width="${width}" height="${y}" role="img" aria-label="CPU time per answer by case and server">
<style>${style}
</style>
<text class="title" x="16" y="26">CPU time per answer, in microseconds</text>
<text class="small" x="16" y="45">Medians with the lowest and the highest run; servers that took turns on one core, the client on another. Echoes answer nothing: the floor.</text>
${body.join('\n')}
</svg>
`
}

const xOf = (microseconds: number): number =>
  labelWidth + (Math.min(microseconds, mostMicroseconds) / mostMicroseconds) * (width - labelWidth - right)

function bar({ id, title, atRate }: ServerRuns, y: number): string[] {
  const spread = spreadOf(atRate[1].flatMap((run) => (run === null ? [] : [run.cpuMicroseconds])))
  const label = `<text x="${labelWidth - 8}" y="${y + barHeight - 3}" text-anchor="end">${escaped(title)}</text>`
  if (spread === null) return [label]
  const [end, low, high] = [spread.median, spread.min, spread.max].map((value) => xOf(value).toFixed(1))
  const middle = y + barHeight / 2
  return [
    label,
    `<rect class="${kindOf(id)}" x="${labelWidth}" y="${y}" width="${(Number(end) - labelWidth).toFixed(1)}" height="${barHeight}"/>`,
    `<line class="spread" x1="${low}" x2="${high}" y1="${middle}" y2="${middle}"/>`,
    `<text class="small" x="${(Math.max(Number(end), Number(high)) + 6).toFixed(1)}" y="${y + barHeight - 3}">${spread.median.toFixed(1)}</text>`
  ]
}

const thousands = (rate: number): string => rate.toLocaleString('en')

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
