/** The Prometheus text format, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/ */
import type { Histogram } from '../base/histogram.ts'

export const expositionContentType = 'text/plain; version=0.0.4; charset=utf-8'

export type Labels = Readonly<Record<string, string>>

export type Sample = Readonly<{ labels: Labels; value: number }>

export type HistogramSeries = Readonly<{ labels: Labels; histogram: Histogram }>

/** One metric: its samples differ in their labels. Counters end in `_total`. */
export type Metric = Readonly<{ name: string; help: string }> &
  (
    | Readonly<{ type: 'counter' | 'gauge'; samples: readonly Sample[] }>
    | Readonly<{ type: 'histogram'; series: readonly HistogramSeries[] }>
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
  series: [{ labels: noLabels, histogram }]
})

export const histograms = (name: string, help: string, series: readonly HistogramSeries[]): Metric => ({
  name,
  help,
  type: 'histogram',
  series
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
    if (metric.type === 'histogram') for (const series of metric.series) text += histogramLines(name, series)
    else for (const { labels, value } of metric.samples) text += line(name, labels, value)
  }
  return text
}

function histogramLines(name: string, { labels, histogram: { bounds, counts, sum } }: HistogramSeries): string {
  let text = ''
  let cumulated = 0
  for (const [at, count] of counts.entries()) {
    cumulated += count
    text += line(`${name}_bucket`, { ...labels, le: at < bounds.length ? numberText(bounds[at]!) : '+Inf' }, cumulated)
  }
  return text + line(`${name}_sum`, labels, sum) + line(`${name}_count`, labels, cumulated)
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
