/** What the demo shows: questions to try, the way of one answer, and how B's answers change while parts of A die. */
import { styleText } from 'node:util'
import { systemClock } from '../base/clock.ts'
import { decodeEde } from '../wire/edns.ts'
import { EDE, OPTION, RRTYPE, rcodeToText, typeToText } from '../wire/iana.ts'
import { decodeMessage, type Message } from '../wire/message.ts'
import { nameToText, parseName } from '../wire/name.ts'
import { rdataToText } from '../wire/record-text.ts'
import { askOnce } from '../peer/one-shot.ts'
import type { CommandIo } from './command-io.ts'
import type { ClusterLetter, DemoClusters } from './demo-clusters.ts'
import { printable, table } from './table.ts'

const api = 'api.backend.svc.cluster.local'
const headless = 'api-headless.backend.svc.cluster.local'
const dyingEndpoint = '10.0.1.21'

/** How often B is asked while the story waits for something. */
const pollEveryMs = 100
/** How often an answer that stays the same is shown again, for its age. */
const showEveryMs = 1_000
/** Nothing that the story waits for takes longer, or it is said so. */
const patienceMs = 20_000

type Style = Parameters<typeof styleText>[0]

const paint = (io: CommandIo, style: Style, text: string): string =>
  io.colors ? styleText(style, text, { validateStream: false }) : text

/** What B said, as a client sees it. */
type Seen = Readonly<{
  rcode: string
  data: readonly string[]
  ttlSeconds: number | null
  reasons: readonly string[]
  tookMs: number
}>

async function ask(
  clusters: DemoClusters,
  letter: ClusterLetter,
  name: string,
  type: number = RRTYPE.A
): Promise<Seen> {
  const answer = await askOnce({
    server: { host: '127.0.0.1', port: clusters.dnsPort(letter) },
    question: { name: parseName(name), type, dnssecOk: false, checkingDisabled: false, options: [] },
    recursion: true,
    withEdns: true,
    transport: 'auto',
    timeoutMs: 5_000,
    clock: systemClock
  })
  if (answer.kind === 'failed') {
    return { rcode: answer.detail, data: [], ttlSeconds: null, reasons: [], tookMs: answer.tookMs }
  }
  const message = decodeMessage(answer.octets)
  return {
    rcode: rcodeToText(message.rcode),
    data: message.answer.map(({ type: rrtype, rdata }) => rdataToText(rrtype, rdata)).toSorted(),
    ttlSeconds: message.answer[0]?.ttlSeconds ?? null,
    reasons: reasonsOf(message),
    tookMs: answer.tookMs
  }
}

function reasonsOf(message: Message): string[] {
  const options = message.edns?.options.filter(({ code }) => code === OPTION.EDE) ?? []
  return options.flatMap((option) => {
    const ede = decodeEde(option)
    return ede === null
      ? []
      : [`EDE ${ede.code}${ede.code === EDE.STALE_ANSWER ? ' (stale)' : ''}: ${printable(ede.text)}`]
  })
}

const seenText = ({ rcode, data, ttlSeconds, reasons }: Seen): string =>
  [data.length === 0 ? rcode : `${data.join(' ')} (TTL ${ttlSeconds})`, ...reasons].join('  ')

const heading = (io: CommandIo, text: string): void => io.out(`\n${paint(io, 'bold', text)}\n`)

export async function printWelcome(io: CommandIo, clusters: DemoClusters): Promise<void> {
  heading(io, 'Three clusters, peered by policy')
  io.out(
    table(
      ['CLUSTER', 'DNS', 'ADMIN', 'WHAT IT IS'],
      [
        [
          'A',
          `127.0.0.1:${clusters.dnsPort('a')}`,
          `http://127.0.0.1:${clusters.adminPort('a')}`,
          'has the namespace backend'
        ],
        [
          'B',
          `127.0.0.1:${clusters.dnsPort('b')}`,
          `http://127.0.0.1:${clusters.adminPort('b')}`,
          'backend: A first, then its own'
        ],
        [
          'C',
          `127.0.0.1:${clusters.dnsPort('c')}`,
          `http://127.0.0.1:${clusters.adminPort('c')}`,
          'backend: delegated to A; its zone is cluster-c.local'
        ]
      ]
    )
  )
  heading(io, 'Questions to try, in another terminal')
  const b = clusters.dnsPort('b')
  for (const [port, name, type, note] of [
    [b, api, 'A', "A's 172.30.1.0, though B has an api of its own"],
    [b, headless, 'A', "A's three pods"],
    [b, `_http._tcp.${api}`, 'SRV', '0 100 8080 and the name'],
    [b, 'cart.shop.svc.cluster.local', 'A', "B's own zone"],
    [clusters.dnsPort('c'), 'api.backend.svc.cluster-c.local', 'A', 'C, mapped to cluster.local of A']
  ] as const) {
    const seen = await ask(clusters, port === b ? 'b' : 'c', name, type === 'SRV' ? RRTYPE.SRV : RRTYPE.A)
    io.out(
      `  dig @127.0.0.1 -p ${port} ${name} ${type}\n      ${paint(io, 'green', seenText(seen))}  ${paint(io, 'dim', note)}\n`
    )
  }
  const admin = `--admin http://127.0.0.1:${clusters.adminPort('b')}`
  io.out(`  npx peerdns policies describe backend-from-a ${admin}\n  npx peerdns trace ${api} ${admin}\n`)
  await printPath(io, clusters)
}

/** The way of one answer through B. */
async function printPath(io: CommandIo, clusters: DemoClusters): Promise<void> {
  const server = clusters.server('b')
  if (server === null) return
  heading(io, `How B answers ${api}`)
  server.inspect.flushCache({ all: true })
  const question = { name: parseName(api), type: RRTYPE.A, clientAddress: '127.0.0.1', recursionDesired: true }
  const { answer, steps, tookMs } = await server.inspect.trace(question)
  for (const { step, detail, server: asked, atMs, tookMs: stepMs } of steps) {
    const where = asked === null ? '' : ` ${asked}`
    io.out(
      `  ${atMs.toFixed(1).padStart(6)} ms  ${step.padEnd(7)} ${detail}${where}${stepMs > 0 ? ` (${stepMs.toFixed(1)} ms)` : ''}\n`
    )
  }
  for (const rrset of answer.sections.answer) {
    const data = rrset.rdata.map((rdata) => rdataToText(rrset.type, rdata)).join(' ')
    io.out(
      `  ${tookMs.toFixed(1).padStart(6)} ms  answer  ${nameToText(rrset.owner)} ${rrset.ttlSeconds} ${typeToText(rrset.type)} ${data}\n`
    )
  }
}

/** Asks B again and again, prints each change, and tells how long it took until `isOver`; null: patience ran out. */
async function watch(
  io: CommandIo,
  clusters: DemoClusters,
  name: string,
  isOver: (seen: Seen) => boolean
): Promise<number | null> {
  const startedAtMs = systemClock.nowMs()
  let shown = ''
  let shownAtMs = 0
  for (;;) {
    const seen = await ask(clusters, 'b', name)
    const elapsedMs = systemClock.nowMs() - startedAtMs
    const essence = `${seen.rcode} ${seen.data.join(' ')} ${seen.reasons.join(' ')}`
    if (essence !== shown || elapsedMs - shownAtMs >= showEveryMs) {
      shownAtMs = elapsedMs
      const source = paint(io, 'dim', `  [${await sourceOf(clusters, name)}]`)
      io.out(`  ${(elapsedMs / 1000).toFixed(2).padStart(6)} s  B: ${seenText(seen)}${source}\n`)
    }
    shown = essence
    if (isOver(seen)) return elapsedMs
    if (elapsedMs > patienceMs) return null
    await new Promise<void>((resolve) => void systemClock.after(pollEveryMs, resolve))
  }
}

/** Where B's answer comes from and how old it is, as B itself knows it. */
async function sourceOf(clusters: DemoClusters, name: string): Promise<string> {
  const server = clusters.server('b')
  if (server === null) return ''
  const question = { name: parseName(name), type: RRTYPE.A, clientAddress: '127.0.0.1', recursionDesired: true }
  const { origin } = (await server.inspect.trace(question)).answer
  if (origin.from === 'zone') return "B's own zone"
  if (origin.from === 'mirror')
    return `from our copy of ${origin.target}'s zone, ${(origin.ageMs / 1000).toFixed(1)} s old`
  if (origin.from === 'cache') return `from ${origin.target}, ${(origin.ageMs / 1000).toFixed(1)} s old`
  return origin.from === 'policy' ? 'made by rule' : `from ${origin.target}, asked just now`
}

const took = (ms: number | null): string => (ms === null ? 'not within 20 s' : `${(ms / 1000).toFixed(2)} s`)

export async function tellStory(io: CommandIo, clusters: DemoClusters): Promise<void> {
  heading(io, `1. An endpoint of A dies: ${dyingEndpoint} of ${headless}`)
  await watch(io, clusters, headless, ({ data }) => data.includes(dyingEndpoint))
  clusters.setEndpoint(dyingEndpoint, false)
  const blackHoleMs = await watch(
    io,
    clusters,
    headless,
    ({ data }) => data.length > 0 && !data.includes(dyingEndpoint)
  )
  io.out(`  B gave the dead address for ${paint(io, 'yellow', took(blackHoleMs))} more: what was left of its TTL.\n`)

  heading(io, `2. Cluster A dies: who answers ${api} now?`)
  await watch(io, clusters, api, ({ data }) => data.includes('172.30.1.0'))
  await clusters.kill('a')
  const failoverMs = await watch(io, clusters, api, ({ data }) => data.includes('10.1.1.20'))
  io.out(
    `  B's own address after ${paint(io, 'yellow', took(failoverMs))}: two failed probes, then the policy's next target.\n`
  )
  const only = await ask(clusters, 'b', headless)
  io.out(`  only A has ${headless}; B says: ${seenText(only)}\n`)

  heading(io, '3. Cluster A comes back')
  clusters.setEndpoint(dyingEndpoint, true)
  await clusters.revive('a')
  const returnMs = await watch(io, clusters, api, ({ data }) => data.includes('172.30.1.0'))
  io.out(`  A answers again after ${paint(io, 'yellow', took(returnMs))}: two good probes.\n`)
  await watch(io, clusters, headless, ({ data, reasons }) => data.includes(dyingEndpoint) && reasons.length === 0)
  heading(io, 'That was the story.')
}
