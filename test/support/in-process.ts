/**
 * Servers from configuration text in this process, and clients that ask them over real sockets and show all that an
 * answer holds. Octets are read by dns-packet and dns2, so that our codec is not compared with itself.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as dnsPacket from 'dns-packet'
import type { Answer, DecodedPacket, RecordType } from 'dns-packet'
import DNS from 'dns2'
import type { Test } from 'tap'
import type { Clock } from '../../src/base/clock.ts'
import { silentLog, type Logger } from '../../src/base/log.ts'
import { loadConfig } from '../../src/config/load.ts'
import { RunningServer } from '../../src/main.ts'
import { loadOptions } from '../../src/main/load-options.ts'
import { serialStepMs } from '../../src/zone/serial.ts'
import { freePort } from './free-port.ts'
import { loopClock, sleep as delay } from './loop-clock.ts'

/** What comes in the end may take so long on a busy machine. */
const longestMs = 10_000

export type Where = Readonly<{ address: string; port: number }>

export type InProcessServer = Where &
  Readonly<{
    server: RunningServer
    /** `host:port`, as a peer is written. */
    text: string
    /** Path of the configuration file. */
    file: string
    /** Exchanges the objects. */
    writeObjects: (objects: readonly object[]) => void
    /** Writes another configuration over the file that the server follows. */
    writeConfig: (text: string) => void
    stop: () => Promise<void>
  }>

const head = (folder: string, port: number): string =>
  `listen: ["127.0.0.1:${port}"]\nadmin: off\nlog: {level: error}\n`.concat('# ', folder, '\n')

/**
 * Starts a server with this configuration, without `listen`, `admin` and `log`; `{manifests}` in it is the file with
 * the objects. It is stopped after the test, and may be started again on its port. `isUnread`: resolves as soon as it
 * listens, while it reads the objects; where none are given, it waits for them until `writeObjects`.
 */
export async function startInProcess(
  t: Test,
  config: string,
  options: {
    objects?: readonly object[]
    port?: number
    isUnread?: boolean
    watchConfig?: boolean
    log?: Logger
    clock?: Clock
  } = {}
): Promise<InProcessServer> {
  const folder = mkdtempSync(join(tmpdir(), 'peerdns-in-process-'))
  const manifests = join(folder, 'objects.yaml')
  const file = join(folder, 'config.yaml')
  const port = options.port ?? (await freePort())
  const writeObjects = (items: readonly object[]): void =>
    writeFileSync(manifests, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  const writeConfig = (text: string): void =>
    writeFileSync(file, head(folder, port) + text.replaceAll('{manifests}', manifests))
  if (options.objects !== undefined || options.isUnread !== true) writeObjects(options.objects ?? [])
  writeConfig(config)
  const loaded = loadConfig(file, loadOptions())
  // Threads of their own cost each server of a test tens of milliseconds: only where the configuration names them.
  const hasThreads = /^threads:/m.test(config)
  const server = new RunningServer(loaded, options.clock ?? loopClock, options.log ?? silentLog, hasThreads)
  const stop = (): Promise<void> => server.stop({ force: true })
  t.teardown(async () => {
    await stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const started = server.start(options.watchConfig ?? false)
  if (options.isUnread === true) {
    started.catch(() => {})
    await until(() => server.dnsAddresses.length > 0)
  } else {
    await started
    // What a zone is made of at the start gets its serial a moment later, which a secondary would see as a change.
    if (/^transfer:/m.test(config)) await delay(2 * serialStepMs)
  }
  const bound = server.dnsAddresses[0]!
  return {
    server,
    address: bound.address,
    port: bound.port,
    text: `${bound.address}:${bound.port}`,
    file,
    writeObjects,
    writeConfig,
    stop
  }
}

/** A configuration of cluster `b` whose source is the file of objects. */
export const clusterB = (rest: string, cluster = ''): string =>
  `cluster: {name: b, source: {manifests: ["{manifests}"]}, reverse: [10.0.0.0/8]${cluster}}\n${rest}`

export type Reply = Readonly<{
  /** `NOERROR`, `NXDOMAIN`, ..., extended ones with their number. */
  rcode: string
  /** RCODE and the data of the answer section, or `NODATA`: what most tests compare. */
  text: string
  flags: Readonly<{ aa: boolean; tc: boolean; rd: boolean; ra: boolean; ad: boolean; cd: boolean }>
  /** `owner ttl TYPE data`, without final dots. */
  answer: readonly string[]
  authority: readonly string[]
  additional: readonly string[]
  /** Lowest TTL of answer and authority in seconds; null where there is no record. */
  ttl: number | null
  ede: readonly Readonly<{ code: number; text: string }>[]
  /** Codes of the EDNS options; null where the answer has no OPT record. */
  options: readonly number[] | null
  packet: DecodedPacket
  tookMs: number
}>

/** What of a reply has to be the same from two servers with the same data, which may order records as they like. */
export const shown = ({ rcode, answer, authority, additional, flags, ede }: Reply) => ({
  rcode,
  answer: [...answer].sort(),
  authority,
  additional: [...additional].sort(),
  flags,
  ede
})

export type AskOptions = Readonly<{
  type?: string
  recursionDesired?: boolean
  /** false: without OPT record. */
  edns?: boolean
  udpPayloadOctets?: number
  options?: readonly Readonly<{ code: number; data: Uint8Array }>[]
  dnssecOk?: boolean
  flags?: number
  isTcp?: boolean
  /** Address that the query comes from. */
  from?: string
  timeoutMs?: number
}>

/** Asks once, and waits for at most ten seconds unless told; times are by `loopClock`. */
export async function ask(where: Where, name: string, options: AskOptions = {}): Promise<Reply> {
  const octets = queryOctets(name, options)
  const startedAtMs = loopClock.nowMs()
  const exchange = options.isTcp === true ? exchangeTcp : exchangeUdp
  const reply = await exchange(where, octets, options.timeoutMs ?? longestMs, options.from)
  if (reply === null) throw new Error(`no answer for ${name} from ${where.port}`)
  return readReply(reply, loopClock.nowMs() - startedAtMs)
}

export function queryOctets(name: string, options: AskOptions = {}): Buffer {
  const opt = {
    type: 'OPT' as const,
    name: '.',
    udpPayloadSize: options.udpPayloadOctets ?? 1232,
    flags: options.dnssecOk === true ? dnsPacket.DNSSEC_OK : 0,
    options: (options.options ?? []).map(({ code, data }) => ({ code, data: Buffer.from(data) }))
  }
  return dnsPacket.encode({
    type: 'query',
    id: Math.floor(Math.random() * 0x1_0000),
    flags: (options.recursionDesired === false ? 0 : dnsPacket.RECURSION_DESIRED) | (options.flags ?? 0),
    questions: [{ type: (options.type ?? 'A') as RecordType, name }],
    additionals: options.edns === false ? [] : [opt as unknown as Answer]
  })
}

/** The reply's octets, or null where none came in time. */
export async function exchangeUdp(
  where: Where,
  octets: Uint8Array,
  timeoutMs = longestMs,
  from = '127.0.0.1'
): Promise<Buffer | null> {
  const socket = createSocket('udp4')
  try {
    const reply = Promise.withResolvers<Buffer | null>()
    // A late reply to whoever had this port before is not ours.
    socket.on('message', (message) => {
      if (message[0] === octets[0] && message[1] === octets[1]) reply.resolve(message)
    })
    socket.on('error', reply.reject)
    socket.bind(0, from)
    await once(socket, 'listening')
    socket.send(octets, where.port, where.address)
    const cancel = loopClock.after(timeoutMs, () => reply.resolve(null))
    const message = await reply.promise
    cancel()
    return message
  } finally {
    socket.close()
  }
}

export async function exchangeTcp(where: Where, octets: Uint8Array, timeoutMs = longestMs): Promise<Buffer | null> {
  const socket = connect({ host: where.address, port: where.port })
  try {
    const reply = Promise.withResolvers<Buffer | null>()
    let held = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk])
      if (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) {
        reply.resolve(held.subarray(2, 2 + held.readUInt16BE(0)))
      }
    })
    socket.on('error', reply.reject)
    socket.on('close', () => reply.resolve(null))
    const cancel = loopClock.after(timeoutMs, () => reply.resolve(null))
    socket.write(Buffer.concat([Buffer.from([octets.length >> 8, octets.length & 0xff]), octets]))
    const message = await reply.promise
    cancel()
    return message
  } finally {
    socket.destroy()
  }
}

export function readReply(octets: Buffer, tookMs = 0): Reply {
  const packet = dnsPacket.decode(octets)
  const opt = packet.additionals?.find((record) => record.type === 'OPT')
  const options = (opt?.options ?? null) as unknown as ReadOption[] | null
  // The high bits of the RCODE are the first octet of the OPT record's TTL. RFC 6891 §6.1.3.
  const high = opt === undefined ? 0 : (opt as unknown as { extendedRcode: number }).extendedRcode
  const rcode = high === 0 ? (packet as unknown as { rcode: string }).rcode : `RCODE${high * 16 + (octets[3]! & 0x0f)}`
  const answer = (packet.answers ?? []).map(recordText)
  const authority = (packet.authorities ?? []).map(recordText)
  const data = answer.map((line) => line.split(' ').slice(3).join(' '))
  const ttls = [...answer, ...authority].map((line) => Number(line.split(' ')[1]))
  const isNodata = rcode === 'NOERROR' && answer.length === 0
  return {
    rcode,
    text: isNodata ? 'NODATA' : [...(rcode === 'NOERROR' ? [] : [rcode]), ...data.sort()].join(' '),
    flags: {
      aa: packet.flag_aa,
      tc: packet.flag_tc,
      rd: packet.flag_rd,
      ra: packet.flag_ra,
      ad: packet.flag_ad,
      cd: packet.flag_cd
    },
    answer,
    authority,
    additional: (packet.additionals ?? []).filter(({ type }) => type !== 'OPT').map(recordText),
    ttl: ttls.length === 0 ? null : Math.min(...ttls),
    ede: (options ?? []).filter(({ code }) => code === edeOption).map(readEde),
    options: options?.map(({ code }) => code) ?? null,
    packet,
    tookMs
  }
}

/** RFC 8914 §2. */
const edeOption = 15

/** An option as dns-packet gives it; its types know four codes only. */
type ReadOption = Readonly<{ code: number; data: Buffer }>

function readEde({ data }: ReadOption): { code: number; text: string } {
  return { code: data.readUInt16BE(0), text: data.subarray(2).toString('utf8') }
}

function recordText(record: Answer): string {
  if (record.type === 'OPT') return 'OPT'
  const ttl = 'ttl' in record ? (record.ttl ?? 0) : 0
  return `${record.name} ${ttl} ${record.type} ${dataText(record)}`
}

function dataText(record: Answer): string {
  switch (record.type) {
    case 'SRV':
      return `${record.data.priority ?? 0} ${record.data.weight ?? 0} ${record.data.port} ${record.data.target}`
    case 'SOA':
      return `${record.data.mname} ${record.data.minimum ?? 0}`
    case 'TXT':
      return [record.data].flat().map(String).join(' ')
    default:
      return (record as { data?: string }).data ?? ''
  }
}

export type PlainReply = Readonly<{ rcode: number; data: string[]; aa: boolean; answers: DNS.Packet['answers'] }>

/** A question of the plainest client there is: dns2 over UDP, without EDNS. */
export async function askPlain(where: Where, name: string, type = 'A'): Promise<PlainReply> {
  const packet = await DNS.UDPClient({ dns: where.address, port: where.port, timeout: longestMs })(name, type)
  const data = packet.answers.map((record) => {
    const { address, domain, target, priority, weight, port, data } = record as unknown as Record<string, string>
    if (target !== undefined) return `${priority} ${weight} ${port} ${target}`
    return address ?? domain ?? String(data)
  })
  return { rcode: packet.header.rcode, data: data.sort(), aa: packet.header.aa === 1, answers: packet.answers }
}

/** Waits until something is so; false after `withinMs` by `loopClock`. */
export async function until(isSo: () => boolean | Promise<boolean>, withinMs = 30_000): Promise<boolean> {
  const endMs = loopClock.nowMs() + withinMs
  for (;;) {
    if (await isSo()) return true
    if (loopClock.nowMs() > endMs) return false
    await delay(5)
  }
}

export { delay }
