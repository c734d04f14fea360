/** A worker thread: answers UDP from what lies ready in shared memory, and hands everything else to the main thread. */
import { parentPort, workerData } from 'node:worker_threads'
import { processTimeMs, systemClock } from '../../base/clock.ts'
import { udpBatchDatagrams } from '../../base/limits.ts'
import { ReadyReader } from '../../pipeline/ready/ready-reader.ts'
import { SharedReady, type SharedReadyBuffers } from '../../pipeline/ready/shared-ready.ts'
import { BatchedSocket } from '../../server/mmsg/batched-socket.ts'
import { BlockingReader, command } from '../../server/mmsg/blocking-reader.ts'
import { ForwardRing } from '../../server/mmsg/forward-ring.ts'
import { loadLibc } from '../../server/mmsg/libc.ts'
import { MessageBatch } from '../../server/mmsg/message-batch.ts'
import { askForShortTurns } from '../../server/mmsg/short-turns.ts'

export type WorkerData = Readonly<{
  number: number
  ready: SharedReadyBuffers
  ring: SharedArrayBuffer
  command: SharedArrayBuffer
  counters: SharedArrayBuffer
  /** How many sockets there are, and their descriptors, which the main thread closes: there when it says `serve`. */
  sockets: SharedArrayBuffer
  receiveBufferOctets: number
}>

/** Can read as soon as there are sockets; reads from now on; more comes than can be answered; there is something in the ring. */
export type WorkerMessage = 'prepared' | 'reading' | 'busy' | 'forwarded'

const data = workerData as WorkerData
// The rule is about windows of browsers.
// oxlint-disable-next-line unicorn/require-post-message-target-origin
const tell = (message: WorkerMessage): void => parentPort!.postMessage(message)

const libc = await loadLibc()
const batch = new MessageBatch(udpBatchDatagrams, libc.addressOf)
const ready = new SharedReady(data.ready)
const reader = new ReadyReader(ready, data.number, () => Math.random())
/** What makes of this thread's time the process's, which all threads agree on. */
const processOffsetMs = processTimeMs() - systemClock.nowMs()
let nowMs = 0
askForShortTurns(libc)
tell('prepared')

const word = new Int32Array(data.command)
Atomics.wait(word, 0, command.prepare)
const [count, ...fds] = new Int32Array(data.sockets)
const reading = new BlockingReader({
  libc,
  batch,
  sockets: fds.slice(0, count).map((fd) => new BatchedSocket(libc, batch, { address: '', port: 0 }, fd)),
  clock: systemClock,
  processTimeMs,
  receiveBufferOctets: data.receiveBufferOctets,
  ring: new ForwardRing(data.ring),
  command: word,
  counters: new Float64Array(data.counters),
  answer: (query, size, client, out) => reader.answer(query, size, client, out, nowMs),
  onBatch: () => {
    nowMs = systemClock.nowMs() + processOffsetMs + ready.clockOffsetMs
  },
  wake: () => tell('forwarded'),
  cryForHelp: () => tell('busy')
})
tell('reading')
reading.run()
