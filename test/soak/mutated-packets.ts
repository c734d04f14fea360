/**
 * Damaged packets against a running server: `node test/soak/mutated-packets.ts [seconds] [seed]`.
 *
 * Random octets and mutated real messages come by UDP and TCP, a peer answers with mutated replies, and plain queries
 * in between must be answered as ever. The process must live, every reply must be well-formed, and RSS must stay flat.
 * Loopback only, at a bounded rate. The last line is `N passed, N failed`.
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseName } from '../../src/wire/name.ts'
import { RCODE, RRTYPE } from '../../src/wire/iana.ts'
import { decodeMessage, encodeMessage, type Message } from '../../src/wire/message.ts'
import { TcpFrameReader } from '../../src/wire/tcp-frame.ts'
import { heapFlagsOfImage, startServerProcess, type ServerProcess } from '../support/server-process.ts'
import { below, mutated, randomFrom, realMessages } from './mutate.ts'

const seconds = Number(process.argv[2] ?? 60)
const seed = Number(process.argv[3] ?? Math.floor(Math.random() * 2 ** 32))

const datagramsPerSecond = 2_000
const connectionsPerSecond = 50
const plainQueriesPerSecond = 20
const peerQueriesPerSecond = 50
const turnMs = 20
/** RSS is compared only after everything has been used once: code compiled, pools and caches full. */
const warmUpShare = 0.4
const maxRssGrowth = 1.1
/** Asked again after this, as clients do: a socket whose queue is full drops what comes. */
const plainTimeoutMs = 1_000
const plainTries = 3

const random = randomFrom(seed)
const messages = realMessages()
const counts = { datagrams: 0, connections: 0, frames: 0, udpReplies: 0, tcpReplies: 0, plain: 0, peer: 0, fromPeer: 0 }
const malformed: string[] = []
const lost: string[] = []

/** Notes what is wrong with a reply: it must be a response, whole, and read by the strict codec. */
function judge(reply: Uint8Array, limitOctets: number): Message | null {
  try {
    const message = decodeMessage(reply)
    if (!message.qr) throw new Error('not a response')
    if (reply.length > limitOctets) throw new Error(`${reply.length} octets`)
    return message
  } catch (error) {
    if (malformed.length < 20) malformed.push(`${String(error)}: ${Buffer.from(reply).toString('hex')}`)
    return null
  }
}

const query = (name: string, id: number): Uint8Array =>
  encodeMessage({
    id, qr: false, opcode: 0, aa: false, tc: false, rd: true, ra: false, ad: false, cd: false, rcode: 0,
    questions: [{ name: parseName(name), type: RRTYPE.A, class: 1 }], answer: [], authority: [], additional: [], edns: null
  }) // prettier-ignore

/** A peer on UDP and TCP of one port that answers everything with damaged replies. */
async function startPeer(): Promise<{ port: number; close: () => void }> {
  const tcp = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => {
      const reply = mutated(messages, random)
      socket.write(Buffer.concat([Buffer.from([reply.length >> 8, reply.length & 0xff]), reply]))
      if (random() < 0.3) socket.destroy()
    })
  })
  tcp.listen(0, '127.0.0.1')
  await once(tcp, 'listening')
  const { port } = tcp.address() as AddressInfo
  const udp = createSocket('udp4', (octets, from) => {
    counts.fromPeer++
    // Half of them are replies to the question, damaged: those reach deeper than noise does.
    const reply = Buffer.from(octets)
    reply[2]! |= 0x80
    const sent =
      random() < 0.5
        ? mutated([reply], random)
        : Buffer.concat([octets.subarray(0, 2), mutated(messages, random).subarray(2)])
    udp.send(sent, from.port, from.address)
  })
  udp.bind(port, '127.0.0.1')
  await once(udp, 'listening')
  return { port, close: () => (udp.close(), tcp.close()) }
}

const config = (peerPort: number) => `
cluster:
  name: north
  reverse: [10.43.0.0/16]
  source: {manifests: ["${join(import.meta.dirname, '../cases/k8s-dns/manifests')}"]}
listen: ["{listen}"]
admin: "{admin}"
forward: []
peers: {partner: {servers: ["127.0.0.1:${peerPort}"], probe: {name: partner.example}}}
policies: [{name: partner, dnsName: partner.example, targets: [partner]}]
cache: {maxBytes: 4MiB}
log: {level: info}
`

/** Calls `act` so often a second, in small bursts, until the time is over. */
async function atRate(perSecond: number, untilMs: number, act: () => void): Promise<void> {
  const startMs = performance.now()
  for (let done = 0; performance.now() < untilMs; await sleep(turnMs)) {
    const due = ((performance.now() - startMs) / 1000) * perSecond
    // After a stall the missed ones are not made up for: the rate stays bounded.
    if (due - done > perSecond) done = due
    for (; done < due; done++) act()
  }
}

/** One connection with some damaged frames, in one write or several, and one of several ways to end. */
function sendOverTcp(port: number): void {
  counts.connections++
  const socket = connect(port, '127.0.0.1')
  const frames = new TcpFrameReader()
  socket.on('error', () => {})
  socket.setTimeout(3_000, () => socket.destroy())
  socket.on('data', (chunk: Buffer) => {
    frames.push(chunk)
    for (let reply = frames.next(); reply !== null; reply = frames.next()) {
      counts.tcpReplies++
      judge(reply, 65_535)
    }
  })
  const framed = Array.from({ length: 1 + below(random, 8) }, () => {
    const octets = mutated(messages, random)
    const length = random() < 0.05 ? below(random, 65_536) : octets.length
    counts.frames++
    return Buffer.concat([Buffer.from([length >> 8, length & 0xff]), octets])
  })
  const stream = Buffer.concat(framed)
  const cut = below(random, stream.length)
  socket.write(stream.subarray(0, cut))
  setTimeout(
    () => {
      const way = below(random, 3)
      if (way === 0) socket.destroy()
      else if (way === 1) socket.end(stream.subarray(cut))
      else socket.write(stream.subarray(cut), () => setTimeout(() => socket.destroy(), 200))
    },
    below(random, 50)
  )
}

/** Asks like any client, each time from a socket of its own, and notes what is not answered rightly. */
function askPlainly(port: number): void {
  counts.plain++
  const id = below(random, 65_536)
  const socket = createSocket('udp4')
  const send = (): void => socket.send(query('cider.orchard.svc.cluster.local.', id), port, '127.0.0.1')
  let tries = 1
  const timer = setInterval(() => {
    if (++tries <= plainTries) return send()
    clearInterval(timer)
    lost.push(`no answer to ${plainTries} tries`)
    socket.close()
  }, plainTimeoutMs)
  socket.on('error', (error) => lost.push(String(error)))
  socket.on('message', (reply) => {
    clearInterval(timer)
    socket.close()
    const message = judge(reply, 512)
    if (message?.id !== id || message.rcode !== RCODE.NOERROR || message.answer.length !== 1)
      lost.push('a wrong answer')
  })
  send()
}

function rssOctets({ process: { pid } }: ServerProcess): number | null {
  try {
    return Number(/VmRSS:\s*(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
  } catch {
    return null // gone, or a system without /proc
  }
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

async function bugsCounted({ adminUrl }: ServerProcess): Promise<string> {
  const response = await fetch(`${adminUrl}/metrics`)
  return /^peerdns_query_bugs_total (.*)$/m.exec(await response.text())?.[1] ?? 'no such metric'
}

function openUdp(): UdpSocket {
  const socket = createSocket('udp4')
  socket.on('error', () => {})
  socket.on('message', (reply) => {
    counts.udpReplies++
    judge(reply, 1232)
  })
  return socket
}

let passed = 0
let failed = 0
function check(isGood: boolean, what: string, instead: readonly unknown[] = []): void {
  if (isGood) passed++
  else failed++
  console.log(isGood ? `ok   ${what}` : `FAIL ${what}\n     ${instead.map(String).join('\n     ')}`)
}

const peer = await startPeer()
// Without them node's young generation doubles up to three times 16 MiB, some of it only after a minute: no leak, but a
// step.
const server = await startServerProcess(config(peer.port), heapFlagsOfImage())
console.log(`${seconds} s, seed ${seed}, ${messages.length} real messages, server pid ${server.process.pid}`)
const startMs = performance.now()
const endMs = startMs + seconds * 1000
const udp = openUdp()
const rss: number[] = []
await Promise.all([
  atRate(datagramsPerSecond, endMs, () => {
    counts.datagrams++
    udp.send(mutated(messages, random), server.port, '127.0.0.1')
  }),
  atRate(connectionsPerSecond, endMs, () => sendOverTcp(server.port)),
  atRate(plainQueriesPerSecond, endMs, () => askPlainly(server.port)),
  atRate(peerQueriesPerSecond, endMs, () => {
    counts.peer++
    udp.send(query(`n${below(random, 200)}.partner.example.`, below(random, 65_536)), server.port, '127.0.0.1')
  }),
  atRate(2, endMs, () => rss.push(rssOctets(server) ?? Number.NaN))
])
await sleep(plainTries * plainTimeoutMs + 2_500)

const warm = rss.slice(Math.floor(rss.length * warmUpShare))
const before = median(warm.slice(0, Math.ceil(warm.length / 3)))
const after = median(warm.slice(-Math.ceil(warm.length / 3)))
const mebibytes = (octets: number) => `${(octets / 2 ** 20).toFixed(1)} MiB`
console.log(JSON.stringify(counts))
check(server.process.exitCode === null && server.process.signalCode === null, 'the process lives')
check(malformed.length === 0, 'every reply is well-formed', malformed)
check(lost.length === 0, `${counts.plain} plain queries are answered`, [lost.length, ...new Set(lost)])
check(counts.udpReplies > counts.datagrams * 0.3, `${counts.udpReplies} replies to ${counts.datagrams} datagrams`)
check(counts.tcpReplies > counts.frames * 0.1, `${counts.tcpReplies} replies to ${counts.frames} frames`)
check(counts.fromPeer > 0, `${counts.fromPeer} damaged replies of the peer`)
const series = rss.filter((_, index) => index % 10 === 9).map((octets) => Math.round(octets / 2 ** 20))
check(after <= before * maxRssGrowth, `RSS stays flat: ${mebibytes(before)}, then ${mebibytes(after)}`, [
  `every 5 s in MiB: ${series.join(' ')}`
])
const bugs = await bugsCounted(server).catch(String)
check(bugs === '0', 'no bug was counted', [bugs])
const errors = server.output().split('\n').filter((line) => /"level":"(error|fatal)"/.test(line)) // prettier-ignore
check(errors.length === 0, 'no error was logged', errors.slice(0, 10))
const how = await server.stop()
check(how === 0, 'it ends with exit code 0', [how])
if (failed > 0) console.log(server.output().split('\n').slice(-40).join('\n'))
udp.close()
peer.close()
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
