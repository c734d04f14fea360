/** A reader of the Prometheus text format that forgives nothing: whatever it takes, every scraper takes. */
import assert from 'node:assert/strict'

export type ParsedSample = Readonly<{ name: string; labels: Readonly<Record<string, string>>; value: number }>
export type ParsedMetric = { type: string; help: string; samples: ParsedSample[] }

const metricName = /^[a-z][a-z0-9_]*$/
const sampleLine = /^([a-z][a-z0-9_]*)(?:\{(.*)\})? (\S+)$/
const labelPair = /([a-z_][a-z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/y

/** @throws AssertionError with the line that breaks a rule. */
export function parseExposition(text: string): Map<string, ParsedMetric> {
  assert.ok(text.endsWith('\n'), 'the last line ends')
  const metrics = new Map<string, ParsedMetric>()
  const series = new Set<string>()
  let name = ''
  for (const line of text.slice(0, -1).split('\n')) {
    const [, keyword, about, rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? []
    if (keyword === 'HELP') {
      name = about!
      assert.match(name, metricName, line)
      assert.ok(!metrics.has(name), `one HELP a metric, and its lines together: ${line}`)
      metrics.set(name, { type: '', help: rest, samples: [] })
    } else if (keyword === 'TYPE') {
      const metric = metrics.get(name)!
      assert.equal(about, name, `TYPE follows its HELP: ${line}`)
      assert.equal(metric.type, '', `one TYPE a metric: ${line}`)
      assert.match(rest, /^(counter|gauge|histogram)$/, line)
      metric.type = rest
    } else {
      const metric = metrics.get(name)
      assert.ok(metric !== undefined && metric.type !== '', `HELP and TYPE come before samples: ${line}`)
      const sample = parseSample(line)
      const suffix = sample.name.slice(name.length)
      assert.ok(sample.name.startsWith(name), `samples stand below their metric: ${line}`)
      assert.ok(metric.type === 'histogram' ? /^_(bucket|sum|count)$/.test(suffix) : suffix === '', line)
      const pairs = Object.entries(sample.labels).map((pair) => JSON.stringify(pair))
      const key = [sample.name, ...pairs.sort()].join(' ')
      assert.ok(!series.has(key), `one line a series: ${line}`)
      series.add(key)
      metric.samples.push(sample)
    }
  }
  for (const [metricName, metric] of metrics) checkMetric(metricName, metric)
  return metrics
}

function parseSample(line: string): ParsedSample {
  const match = sampleLine.exec(line)
  assert.ok(match !== null, `a sample or a comment: ${line}`)
  const [, name, pairs = '', value] = match
  const labels: Record<string, string> = {}
  labelPair.lastIndex = 0
  for (let at = 0; at < pairs.length; at = labelPair.lastIndex) {
    const pair = labelPair.exec(pairs)
    assert.ok(pair !== null, `labels: ${line}`)
    assert.ok(!Object.hasOwn(labels, pair[1]!), `one value a label: ${line}`)
    labels[pair[1]!] = pair[2]!.replaceAll(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped))
  }
  const special: Record<string, number> = { '+Inf': Infinity, '-Inf': -Infinity, NaN }
  const number = special[value!] ?? Number(value)
  assert.ok(value === 'NaN' || !Number.isNaN(number), `a number: ${line}`)
  return { name: name!, labels, value: number }
}

function checkMetric(name: string, { type, samples }: ParsedMetric): void {
  assert.notEqual(type, '', `${name} has a TYPE`)
  assert.equal(type === 'counter', name.endsWith('_total'), `counters, and only they, end in _total: ${name}`)
  const keys = new Set(samples.map(({ labels }) => Object.keys(labels).filter((key) => key !== 'le').sort().join())) // prettier-ignore
  assert.ok(keys.size <= 1, `all series of ${name} have the same labels`)
  if (type !== 'gauge') assert.ok(samples.every(({ value }) => value >= 0), `${name} is not negative`) // prettier-ignore
  if (type !== 'histogram') return
  const seriesOf = ({ labels }: ParsedSample): string => JSON.stringify({ ...labels, le: undefined })
  for (const one of new Set(samples.map(seriesOf))) {
    const series = samples.filter((sample) => seriesOf(sample) === one)
    checkHistogram(`${name}${one}`, name, series)
  }
}

function checkHistogram(title: string, name: string, samples: readonly ParsedSample[]): void {
  const buckets = samples.filter((sample) => sample.name === `${name}_bucket`)
  const bounds = buckets.map(({ labels }) => (labels['le'] === '+Inf' ? Infinity : Number(labels['le'])))
  assert.equal(bounds.at(-1), Infinity, `${title} has a last bucket for everything`)
  assert.deepEqual(bounds, [...bounds].sort((one, other) => one - other), `${title}: bounds ascend`) // prettier-ignore
  const counts = buckets.map(({ value }) => value)
  assert.deepEqual(counts, [...counts].sort((one, other) => one - other), `${title}: buckets are cumulated`) // prettier-ignore
  assert.equal(samples.find((sample) => sample.name === `${name}_count`)?.value, counts.at(-1), `${title}: the count`)
  assert.ok(samples.some((sample) => sample.name === `${name}_sum`), `${title}: the sum`) // prettier-ignore
}
