/**
 * The black holes of all set-ups as an SVG that reads in light and in dark: one dot for each death, on a logarithmic
 * axis.
 */
import type { PartFigures, SetUpFigures } from './figures.ts'
import { durationText } from './report.ts'

const width = 860
const labelWidth = 270
const right = 24
const rowHeight = 46
const top = 64
const bottom = 48
const leastMs = 1
const mostMs = 60_000
const ticksMs = [1, 10, 100, 1_000, 5_000, 30_000, 60_000]
const dotRadius = 2.6
/** How far dots of one row may lie from its middle. */
const spread = 13

const style = `
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
.title { font-size: 15px; font-weight: 600; }
.small { font-size: 11.5px; fill: #59636e; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.goal { stroke: #1a7f37; stroke-width: 1.5; stroke-dasharray: 5 4; }
.goal-text { fill: #1a7f37; font-size: 11.5px; }
.slow { fill: #bc4c00; }
.fast { fill: #0969da; }
.dot { fill-opacity: 0.35; }
.median { stroke: #1f2328; stroke-width: 2.5; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .small { fill: #9198a1; }
  .grid { stroke: #3d444d; }
  .goal { stroke: #3fb950; }
  .goal-text { fill: #3fb950; }
  .slow { fill: #f0883e; }
  .fast { fill: #58a6ff; }
  .dot { fill-opacity: 0.5; }
  .median { stroke: #e6edf3; }
}`

/** Transparent, so that it lies on whatever the page is. */
export function plotOf(parts: readonly PartFigures[]): string {
  const setUps = parts.flatMap((part) => part.setUps)
  const height = top + setUps.length * rowHeight + bottom
  const body = [
    `<text class="title" x="16" y="26">How long a dead endpoint of cluster A is still given out in cluster B</text>`,
    `<text class="small" x="16" y="45">${trialsText(parts)} endpoints in each set-up, 1,000 other endpoint changes a minute; from the API server's reply to the last stale answer</text>`,
    ...ticksMs.map((ms) => tick(ms, height)),
    goal(height),
    ...setUps.flatMap((setUp, at) => row(setUp, top + at * rowHeight + rowHeight / 2))
  ]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Black hole by set-up">
<style>${style}
</style>
${body.join('\n')}
</svg>
`
}

function xOf(ms: number): number {
  const share = Math.log(Math.min(Math.max(ms, leastMs), mostMs) / leastMs) / Math.log(mostMs / leastMs)
  return labelWidth + share * (width - labelWidth - right)
}

const tick = (ms: number, height: number): string => {
  const x = xOf(ms).toFixed(1)
  const text = ms === leastMs ? '≤ 1 ms' : durationText(ms).replace('.0 ', ' ')
  const line = `<line class="grid" x1="${x}" x2="${x}" y1="${top}" y2="${height - bottom}"/>`
  return `${line}<text class="small" x="${x}" y="${height - bottom + 18}" text-anchor="middle">${text}</text>`
}

const goal = (height: number): string => {
  const x = xOf(250).toFixed(1)
  const line = `<line class="goal" x1="${x}" x2="${x}" y1="${top - 6}" y2="${height - bottom}"/>`
  return `${line}<text class="goal-text" x="${x}" y="${height - bottom + 34}" text-anchor="middle">goal: p99 below 250 ms</text>`
}

function row({ title, blackHole, blackHolesMs, id }: SetUpFigures, y: number): string[] {
  const kind = blackHole.p99Ms < 1_000 ? 'fast' : 'slow'
  const dots = blackHolesMs.map((ms, at) => {
    // Spread without chance, so that the same results give the same file.
    const offset = (((at * 0.618_034) % 1) * 2 - 1) * spread
    return `<circle class="dot ${kind}" cx="${xOf(ms).toFixed(1)}" cy="${(y + offset).toFixed(1)}" r="${dotRadius}"/>`
  })
  const median = xOf(blackHole.medianMs).toFixed(1)
  return [
    `<g id="${id}"><text x="16" y="${y - 2}">${escaped(title)}</text>`,
    `<text class="small" x="16" y="${y + 14}">median ${durationText(blackHole.medianMs)}, p99 ${durationText(blackHole.p99Ms)}</text>`,
    ...dots,
    `<line class="median" x1="${median}" x2="${median}" y1="${y - spread - 4}" y2="${y + spread + 4}"/></g>`
  ]
}

const trialsText = (parts: readonly PartFigures[]): string => String(Math.min(...parts.map(({ trials }) => trials)))

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
