/** The Prometheus text format, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/ */
import type { Histogram } from '../base/histogram.ts'

export const expositionContentType = 'text/plain; version=0.0.4; charset=utf-8'

export type Labels = Readonly<Record<string, string>>

export type Sample = Readonly<{ labels: Labels; value: number }>

/** One metric: its samples differ in their labels. Counters end in `_total`. */
export type Metric = Readonly<{ name: string; help: string }> &
  (
    | Readonly<{ type: 'counter' | 'gauge'; samples: readonly Sample[] }>
    | Readonly<{ type: 'histogram'; histogram: Histogram }>
  )

const noLabels: Labels = {}

type Samples = number | readonly Sample[]

const samplesOf = (samples: Samples): readonly Sample[] =>
  typeof samples === 'number' ? [{ labels: noLabels, value: samples }] : samples

export const counter = (name: string, help: string, samples: Samples): Metric => ({
  name,
  help,
  type: 'counter',
  samples: samplesOf(samples)
})

export const gauge = (name: string, help: string, samples: Samples): Metric => ({
  name,
  help,
  type: 'gauge',
  samples: samplesOf(samples)
})

export const histogram = (name: string, help: string, histogram: Histogram): Metric => ({
  name,
  help,
  type: 'histogram',
  histogram
})

/** One sample for each key of a record or map, with the key as the value of one label. */
export const byLabel = (label: string, counts: Iterable<readonly [string, number]>): Sample[] =>
  Array.from(counts, ([key, value]) => ({ labels: { [label]: key }, value }))

/** The whole page. HELP and TYPE of a metric stand there even while it has no sample. */
export function expose(metrics: readonly Metric[]): string {
  let text = ''
  for (const metric of metrics) {
    const { name } = metric
    text += `# HELP ${name} ${escapeHelp(metric.help)}\n# TYPE ${name} ${metric.type}\n`
    if (metric.type === 'histogram') text += histogramLines(name, metric.histogram)
    else for (const { labels, value } of metric.samples) text += line(name, labels, value)
  }
  return text
}

function histogramLines(name: string, { bounds, counts, sum }: Histogram): string {
  let text = ''
  let cumulated = 0
  for (const [at, count] of counts.entries()) {
    cumulated += count
    text += line(`${name}_bucket`, { le: at < bounds.length ? numberText(bounds[at]!) : '+Inf' }, cumulated)
  }
  return text + line(`${name}_sum`, noLabels, sum) + line(`${name}_count`, noLabels, cumulated)
}

function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`)
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${numberText(value)}\n`
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}

const escapeHelp = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')

const escapeLabel = (text: string): string => escapeHelp(text).replaceAll('"', '\\"')
