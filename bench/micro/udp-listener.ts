/**
 * What the listeners cost beside Node's own sockets: dnsperf on loopback against a responder that only turns the query
 * round, and against a bare dgram socket that does the same.
 *
 *     node bench/micro/udp-listener.ts [--seconds 3] [--rounds 3] [--rate 30000]
 *
 * Servers take turns, so that what else the machine does hits all of them; the table shows medians. With a rate, CPU
 * time of the server for one query (its waking up included); with `--rate 0` also what it manages at most.
 */
import { execFileSync, fork, type ChildProcess } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { systemClock } from '../../src/base/clock.ts'
import { Listeners } from '../../src/server/listeners.ts'
import { MISS, type Responder } from '../../src/server/responder.ts'

const servers = [
  'bare dgram',
  'listener',
  'listener, all resolved',
  'bare dgram, promise',
  'listener over TCP'
] as const
type ServerName = (typeof servers)[number]
type Usage = { cpuMicroseconds: number; queries: number }

const turnRound = (query: Uint8Array): Uint8Array => {
  const answer = Buffer.from(query)
  answer[2]! |= 0x80
  return answer
}

const memoryResponder: Responder = {
  answer(query, size, _client, out) {
    out.set(query)
    out[2]! |= 0x80
    return size
  },
  resolve: async () => null
}

const waitingResponder: Responder = { answer: () => MISS, resolve: async (query) => turnRound(query) }

async function startBare(isAwaited: boolean): Promise<{ port: number; queries: () => number }> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1024 * 1024 })
  let queries = 0
  socket.on('message', (query, from) => {
    queries += 1
    if (isAwaited) {
      void Promise.resolve(turnRound(query)).then((answer) => socket.send(answer, from.port, from.address))
    } else {
      query[2]! |= 0x80
      socket.send(query, from.port, from.address)
    }
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return { port: socket.address().port, queries: () => queries }
}

async function startListeners(responder: Responder): Promise<{ port: number; queries: () => number }> {
  const listeners = await Listeners.open({
    addresses: [{ address: '127.0.0.1', port: 0 }],
    responder,
    clock: systemClock
  })
  const { udp, tcp } = listeners.stats
  return { port: listeners.addresses[0]!.port, queries: () => udp.receivedTotal + tcp.receivedTotal }
}

/** In the child: serves until the parent goes away, and tells what it has used whenever asked. */
async function serve(name: ServerName): Promise<void> {
  const isBare = name.startsWith('bare')
  const responder = name === 'listener, all resolved' ? waitingResponder : memoryResponder
  const { port, queries } = isBare ? await startBare(name !== 'bare dgram') : await startListeners(responder)
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send!({ cpuMicroseconds: user + system, queries: queries() } satisfies Usage)
  })
  process.on('disconnect', () => process.exit(0))
  process.send!({ port })
}

async function usageOf(child: ChildProcess): Promise<Usage> {
  child.send('usage')
  const [usage] = (await once(child, 'message')) as [Usage]
  return usage
}

type Result = { microsecondsPerQuery: number; queriesPerSecond: number; lost: number }

async function measure(name: ServerName, queryFile: string, seconds: number, rate: number): Promise<Result> {
  const child = fork(fileURLToPath(import.meta.url), ['--serve', name])
  try {
    const [{ port }] = (await once(child, 'message')) as [{ port: number }]
    const load = (length: number) => {
      const mode = name.endsWith('TCP') ? ['-m', 'tcp', '-c', '8'] : ['-c', '8']
      const limit = rate === 0 ? ['-q', '500'] : ['-Q', String(rate)]
      const target = ['-s', '127.0.0.1', '-p', String(port), '-d', queryFile, '-l', String(length)]
      return execFileSync('dnsperf', [...target, ...mode, ...limit], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore']
      })
    }
    load(1)
    const before = await usageOf(child)
    const output = load(seconds)
    const after = await usageOf(child)
    const number = (pattern: RegExp) => Number(pattern.exec(output)?.[1] ?? Number.NaN)
    return {
      microsecondsPerQuery: (after.cpuMicroseconds - before.cpuMicroseconds) / (after.queries - before.queries),
      queriesPerSecond: number(/Queries per second:\s+([\d.]+)/),
      lost: number(/Queries lost:\s+(\d+)/)
    }
  } finally {
    child.kill()
  }
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

async function compare(seconds: number, rounds: number, rate: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'peerdns-bench-'))
  const queryFile = join(folder, 'queries')
  writeFileSync(
    queryFile,
    Array.from({ length: 200 }, (_, index) => `service-${index}.shop.svc.cluster.local A\n`).join('')
  )
  const results = new Map<ServerName, Result[]>(servers.map((name) => [name, []]))
  try {
    for (let round = 0; round < rounds; round++) {
      for (const name of servers) results.get(name)!.push(await measure(name, queryFile, seconds, rate))
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
  const base = median(results.get('bare dgram')!.map((result) => result.microsecondsPerQuery))
  console.log(`${rate === 0 ? 'as fast as it goes' : `${rate} q/s offered`}, ${seconds} s, medians of ${rounds}`)
  for (const [name, list] of results) {
    const costs = list.map((result) => result.microsecondsPerQuery)
    const cost = median(costs)
    console.log(
      `${name.padEnd(24)} ${cost.toFixed(2)} us CPU a query (${Math.min(...costs).toFixed(2)} to ${Math.max(...costs).toFixed(2)}), ` +
        `${(cost / base).toFixed(2)}x bare; ${Math.round(median(list.map((result) => result.queriesPerSecond)))} q/s, ` +
        `lost ${median(list.map((result) => result.lost))}`
    )
  }
}

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '3' },
    rate: { type: 'string', default: '30000' },
    serve: { type: 'string' }
  }
})
if (values.serve === undefined) await compare(Number(values.seconds), Number(values.rounds), Number(values.rate))
else await serve(values.serve as ServerName)
