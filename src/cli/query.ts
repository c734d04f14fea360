/**
 * `peerdns query NAME [TYPE]`: asks a DNS server and shows its answer as it is, with what the server says of its
 * source.
 */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Command } from 'commander'
import type { StatusJson, TraceJson } from '../admin/api-types.ts'
import { systemClock } from '../base/clock.ts'
import { TextError, WireError } from '../base/errors.ts'
import { hostPortToText, parseHostPort, type HostPort } from '../base/host-port.ts'
import { parseDurationMs } from '../base/quantity.ts'
import { askOnce, type OneShotAnswer } from '../peer/one-shot.ts'
import { parseType, RRTYPE, typeToText } from '../wire/iana.ts'
import { decodeMessage, type Message } from '../wire/message.ts'
import { nameToText, parseName, type DomainName } from '../wire/name.ts'
import { AdminClient } from './admin-client.ts'
import { answerIsNo, CommandFailure, wrongUse, type CommandIo } from './command-io.ts'
import { messageJson, messageText, type QueryJson } from './message-text.ts'
import { withAdmin, withExamples, withOutput, type ListOptions } from './shared-options.ts'

type QueryOptions = ListOptions &
  Readonly<{
    server?: string
    tcp?: true
    norecurse?: true
    edns: boolean
    dnssec?: true
    short?: true
    timeout: string
  }>

const dnsPort = 53
const fallbackServer: HostPort = { host: '127.0.0.1', port: dnsPort }
/** The source is told on the side: nobody waits long for it. */
const sideQuestionTimeoutMs = 3_000

export function addQuery(program: Command, io: CommandIo): void {
  const query = program
    .command('query')
    .description('ask a DNS server, like dig; exit code 1 where there is no such record')
    .argument('<name>', 'domain name; the last dot may be left out')
    .argument('[type]', 'record type', 'A')
    .option('--server <host:port>', 'whom to ask (default: where the server of --admin listens, else 127.0.0.1:53)')
    .option('--tcp', 'ask over TCP; else UDP, and TCP where the answer is truncated')
    .option('--norecurse', 'ask with RD=0: only for what the server holds itself')
    .option('--edns', 'send EDNS, so that large answers and extended errors come (default)', true)
    .option('--no-edns', 'send no EDNS')
    .option('--dnssec', 'set DO: ask for signatures too')
    .option('--short', "print the answer's data only")
    .option('--timeout <duration>', 'how long to wait', '5s')
  withExamples(
    withAdmin(withOutput(query)),
    'query api.backend.svc.cluster.local',
    'query _http._tcp.api.backend.svc.cluster.local SRV --server 127.0.0.1:5302',
    'query api.backend.svc.cluster.local AAAA --tcp -o json'
  ).action(async (name: string, type: string, options: QueryOptions) => runQuery(io, name, type, options))
}

async function runQuery(io: CommandIo, nameText: string, typeText: string, options: QueryOptions): Promise<void> {
  const name = readName(nameText)
  const type = readType(typeText)
  const timeoutMs = readTimeout(options.timeout)
  const client = AdminClient.from(options.admin, io).withTimeout(sideQuestionTimeoutMs)
  const asked = options.server === undefined ? null : readServer(options.server)
  const status = await orNull(client.get<StatusJson>('/status'))
  const server = await resolved(asked ?? firstAddress(status) ?? fallbackServer)
  const answer = await askOnce({
    server,
    question: { name, type, dnssecOk: options.dnssec === true, checkingDisabled: false, options: [] },
    recursion: options.norecurse !== true,
    withEdns: options.edns || options.dnssec === true,
    transport: options.tcp === true ? 'tcp' : 'auto',
    timeoutMs,
    clock: systemClock
  })
  const where = hostPortToText(server.host, server.port)
  if (answer.kind === 'failed') {
    throw answerIsNo(`${where} gave no answer over ${answer.transport.toUpperCase()}: ${answer.detail}`)
  }
  const message = decoded(answer, where)
  // A trace asks without DO, so for a question with it the cache may hold another answer.
  const isTold = options.dnssec !== true && isServerOf(status, server)
  const trace = isTold ? await traceOf(client, name, type, options) : null
  const shown: QueryJson = messageJson(message, { ...answer, server: where }, trace)
  if (options.output === 'json') io.out(`${JSON.stringify(shown, null, 2)}\n`)
  else if (options.short === true) io.out(shown.answer.map(({ data }) => `${data}\n`).join(''))
  else io.out(messageText(shown))
  if (message.answer.length === 0) throw answerIsNo(`no ${typeToText(type)} of ${nameToText(name)}: ${shown.rcode}`)
}

function readName(text: string): DomainName {
  try {
    return parseName(text)
  } catch (error) {
    if (error instanceof WireError) throw wrongUse(`\`${text}\` is not a domain name: ${error.message}`)
    throw error
  }
}

const notAsked: ReadonlySet<number> = new Set([RRTYPE.OPT, RRTYPE.TSIG, RRTYPE.TKEY, RRTYPE.AXFR, RRTYPE.IXFR])

function readType(text: string): number {
  const type = parseType(text)
  if (type === null) throw wrongUse(`\`${text}\` is not a record type like A, SRV or TYPE65`)
  if (notAsked.has(type)) throw wrongUse(`${typeToText(type)} is not asked like this`)
  return type
}

function readServer(text: string): HostPort {
  try {
    return parseHostPort(text, dnsPort)
  } catch (error) {
    if (error instanceof TextError) throw wrongUse(`--server: ${error.message}`)
    throw error
  }
}

function readTimeout(text: string): number {
  try {
    const timeoutMs = parseDurationMs(text)
    if (timeoutMs > 0) return timeoutMs
  } catch (error) {
    if (error instanceof TextError) throw wrongUse(`--timeout: ${error.message}`)
    throw error
  }
  throw wrongUse('--timeout: wait for some time')
}

/** The address of a server that may be given by name. */
async function resolved(server: HostPort): Promise<HostPort> {
  if (isIP(server.host) !== 0) return server
  try {
    return { host: (await lookup(server.host)).address, port: server.port }
  } catch (error) {
    throw answerIsNo(`no address is known for ${server.host}: ${(error as NodeJS.ErrnoException).code}`)
  }
}

function decoded({ octets }: Extract<OneShotAnswer, { kind: 'response' }>, where: string): Message {
  try {
    return decodeMessage(octets)
  } catch (error) {
    if (error instanceof WireError) throw answerIsNo(`the answer of ${where} is no DNS message: ${error.message}`)
    throw error
  }
}

/** What is asked on the side may fail: the answer is shown all the same. */
async function orNull<Answer>(answer: Promise<Answer>): Promise<Answer | null> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof CommandFailure) return null
    throw error
  }
}

const wildcards: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

function firstAddress(status: StatusJson | null): HostPort | null {
  const first = status?.dnsAddresses[0]
  if (first === undefined) return null
  const { host, port } = parseHostPort(first, dnsPort)
  return { host: wildcards[host] ?? host, port }
}

/** Whether the admin API is that of the server that was asked, as far as addresses tell. */
function isServerOf(status: StatusJson | null, server: HostPort): boolean {
  return (status?.dnsAddresses ?? []).some((text) => {
    const { host, port } = parseHostPort(text, dnsPort)
    return port === server.port && (host === server.host || Object.hasOwn(wildcards, host))
  })
}

function traceOf(
  client: AdminClient,
  name: DomainName,
  type: number,
  options: QueryOptions
): Promise<TraceJson | null> {
  const rd = options.norecurse === true ? '0' : '1'
  return orNull(client.get<TraceJson>('/trace', { name: nameToText(name), type: typeToText(type), rd }))
}
