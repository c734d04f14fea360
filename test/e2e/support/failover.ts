/**
 * Three clusters, one of which misbehaves: a stub peer for each kind of fault (cluster a), a healthy one (cluster c),
 * and questions at a steady rate to the server between them and the client. Also for bench/failover.ts.
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { systemClock, type Clock } from '../../../src/base/clock.ts'
import { exchangeTcp, queryOctets, readReply } from '../../support/in-process.ts'
import { startStubPeer, type StubFault, type StubPeer, type StubRecord } from '../../support/stub-peer.ts'

export type Fault = StubFault | 'closed'

/** What cluster a does wrong, one after the other: each has a peer and names of its own. */
export const faults: readonly Fault[] = [
  'silent', 'slow', 'lossy', 'wrong-id', 'wrong-question', 'servfail', 'refused', 'notimp', 'formerr', 'broken-rdata',
  'always-truncated', 'tcp-hang', 'tcp-reset', 'tcp-half', 'closed'
] // prettier-ignore

/** Those of which probes notice nothing for sure. */
export const unsteadyFaults: ReadonlySet<Fault> = new Set<Fault>(['slow', 'lossy', 'tcp-hang', 'tcp-reset', 'tcp-half'])

export const zone = 'cluster.local'
/** So many names, asked in turn, with TTL 0: each question is as cold as the first. */
const namesOfEach = 10
const slowDelayMs = 1_000

/** Addresses by cluster: `a` 172.30.1.x, `c` 172.30.2.x, our own 10.1.1.x. */
export type Cluster = 'a' | 'c' | 'local'
const nets: Readonly<Record<Cluster, string>> = { a: '172.30.1', c: '172.30.2', local: '10.1.1' }
export const addressOf = (cluster: Cluster, at: number): string => `${nets[cluster]}.${(at % namesOfEach) + 1}`

export const namespaceOf = (pattern: string, fault: Fault): string => `${pattern}-${fault}`
export const nameOf = (pattern: string, fault: Fault, at: number): string =>
  `n${at % namesOfEach}.${namespaceOf(pattern, fault)}.svc.${zone}`

export type Given = Readonly<{
  pattern: string
  fault: Fault
  at: number
  text: string
  sentAtMs: number
  tookMs: number
}>

/** What is given for a question that got no answer. */
export const noAnswer = 'nothing'
const clientTimeoutMs = 6_000

/** One socket that many questions go out of. */
export class Client {
  readonly #socket: Socket
  readonly #waiting = new Map<number, (octets: Buffer | null) => void>()
  readonly #port: number
  readonly clock: Clock
  #id = 0

  private constructor(socket: Socket, port: number, clock: Clock) {
    this.#socket = socket
    this.#port = port
    this.clock = clock
    socket.on('message', (octets) => this.#waiting.get(octets.readUInt16BE(0))?.(octets))
  }

  /** @param clock which times are told by. */
  static async open(port: number, clock = systemClock): Promise<Client> {
    const socket = createSocket('udp4')
    socket.connect(port, '127.0.0.1')
    await once(socket, 'connect')
    // A closed port is an answer that never comes.
    socket.on('error', () => {})
    return new Client(socket, port, clock)
  }

  /** Asks over UDP, and once more over TCP where the answer is truncated, as stub resolvers do. */
  async ask(name: string, type = 'A'): Promise<{ text: string; ede: number[]; tookMs: number }> {
    const octets = queryOctets(name, { type })
    const id = (this.#id = (this.#id + 1) & 0xffff)
    octets.writeUInt16BE(id, 0)
    const startedAtMs = this.clock.nowMs()
    const answer = Promise.withResolvers<Buffer | null>()
    const cancel = this.clock.after(clientTimeoutMs, () => answer.resolve(null))
    this.#waiting.set(id, answer.resolve)
    this.#socket.send(octets)
    let reply = await answer.promise
    if (reply !== null && readReply(reply).flags.tc) {
      reply = await exchangeTcp({ address: '127.0.0.1', port: this.#port }, octets, clientTimeoutMs).catch(() => null)
    }
    const tookMs = this.clock.nowMs() - startedAtMs
    cancel()
    this.#waiting.delete(id)
    if (reply === null) return { text: noAnswer, ede: [], tookMs }
    const read = readReply(reply)
    return { text: read.text, ede: read.ede.map(({ code }) => code), tookMs }
  }

  close(): void {
    this.#socket.close()
  }
}

const recordsOf = (cluster: Cluster, patterns: readonly string[], some: readonly Fault[]): StubRecord[] =>
  some.flatMap((fault) =>
    patterns.flatMap((pattern) =>
      Array.from({ length: namesOfEach }, (_, at): StubRecord => ({
        type: 'A',
        name: nameOf(pattern, fault, at),
        ttl: 0,
        data: addressOf(cluster, at)
      }))
    )
  )

/** Our own Services of all those names, as Kubernetes objects. */
export const ownObjects = (patterns: readonly string[]): object[] =>
  faults.flatMap((fault) =>
    patterns.flatMap((pattern) => [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespaceOf(pattern, fault) } },
      ...Array.from({ length: namesOfEach }, (_, at) => ({
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: `n${at}`, namespace: namespaceOf(pattern, fault) },
        spec: { clusterIP: addressOf('local', at), clusterIPs: [addressOf('local', at)], ports: [{ port: 80 }] }
      }))
    ])
  )

/** The other clusters: healthy until `misbehave`. */
export class OtherClusters {
  readonly a: ReadonlyMap<Fault, StubPeer>
  readonly c: StubPeer

  private constructor(a: ReadonlyMap<Fault, StubPeer>, c: StubPeer) {
    this.a = a
    this.c = c
  }

  /** @param withC the patterns that c has a part in. */
  static async start(patterns: readonly string[], withC: readonly string[]): Promise<OtherClusters> {
    const c = await startStubPeer({ zone, records: recordsOf('c', withC, faults) })
    const a = new Map<Fault, StubPeer>()
    for (const fault of faults) a.set(fault, await startStubPeer({ zone, records: recordsOf('a', patterns, [fault]) }))
    return new OtherClusters(a, c)
  }

  async misbehave(): Promise<void> {
    for (const [fault, stub] of this.a) {
      if (fault === 'closed') await stub.stop()
      else stub.fault = fault
      stub.delayMs = fault === 'slow' ? slowDelayMs : 0
    }
  }

  async recover(): Promise<void> {
    for (const [fault, stub] of this.a) {
      stub.fault = 'none'
      stub.delayMs = 0
      if (fault === 'closed') await stub.start()
    }
  }

  async stop(): Promise<void> {
    await Promise.all([this.c, ...this.a.values()].map(async (stub) => stub.stop()))
  }
}

/** Asks one name of each pattern and fault `perSecond` times a second, spread evenly, and waits for all answers. */
export async function askSteadily(
  client: Client,
  patterns: readonly string[],
  options: Readonly<{ perSecond: number; forMs: number; hasEnded?: () => boolean }>
): Promise<Given[]> {
  const pairs = patterns.flatMap((pattern) => faults.map((fault) => ({ pattern, fault })))
  const { clock } = client
  const startedAtMs = clock.nowMs()
  const given: Promise<Given>[] = []
  const stepMs = 1000 / options.perSecond / pairs.length
  for (let sent = 0; ; sent++) {
    const dueMs = startedAtMs + sent * stepMs
    const waitMs = dueMs - clock.nowMs()
    if (waitMs > 1) await new Promise<void>((resolve) => void clock.after(waitMs, resolve))
    if (clock.nowMs() - startedAtMs > options.forMs || options.hasEnded?.() === true) break
    const { pattern, fault } = pairs[sent % pairs.length]!
    const at = Math.floor(sent / pairs.length)
    const sentAtMs = clock.nowMs()
    given.push(
      client
        .ask(nameOf(pattern, fault, at))
        .then(({ text, tookMs }) => ({ pattern, fault, at, text, sentAtMs, tookMs }))
    )
  }
  return Promise.all(given)
}

/** Which cluster's answer a text is; the text itself where it is nobody's. */
export function whoseAnswer({ text, at }: Given): string {
  const clusters = (['a', 'c', 'local'] as const).filter((cluster) => text.split(' ').includes(addressOf(cluster, at)))
  return clusters.length === 0 ? text : clusters.join('+')
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted.length === 0 ? 0 : sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)]!
}

/** `a 12, local 3`: what was given how often. */
export function tally(given: readonly Given[]): string {
  const counts = new Map<string, number>()
  for (const one of given) counts.set(whoseAnswer(one), (counts.get(whoseAnswer(one)) ?? 0) + 1)
  return [...counts].toSorted((one, other) => other[1] - one[1]).map(([who, count]) => `${who} ${count}`).join(', ') // prettier-ignore
}
