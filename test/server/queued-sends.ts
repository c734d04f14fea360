/**
 * Run by udp-listener.test.ts in a process of its own, with Node's sends always queued: sends bursts and says whether
 * each answer has its own octets.
 */
import { createSocket } from 'node:dgram'
import { systemClock } from '../../src/base/clock.ts'
import { Listeners } from '../../src/server/listeners.ts'
import { idOf, ScriptedResponder, testQuery, textOf } from './scripted-responder.ts'

type Client = ReturnType<typeof createSocket>

async function burst(client: Client, port: number, ids: number[]): Promise<void> {
  const sent = ids.map(
    async (id) => new Promise((resolve) => client.send(testQuery(id, `now ${id}`), port, '127.0.0.1', resolve))
  )
  await Promise.all(sent)
}

async function serve(udpSendQueueOctets: number, responder = new ScriptedResponder()): Promise<Listeners> {
  const addresses = [{ address: '127.0.0.1', port: 0 }]
  return Listeners.open({ addresses, responder, clock: systemClock, limits: { udpSendQueueOctets } })
}

async function untilSo(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}

const ids = Array.from({ length: 300 }, (_, id) => id)
const received: Buffer[] = []
const client = createSocket('udp4')
client.on('message', (message) => received.push(message))

const roomy = await serve(1_000_000)
await burst(client, roomy.addresses[0]!.port, ids)
await untilSo(() => received.length === ids.length)
const right = received.filter((message) => textOf(message) === `now ${idOf(message)}`).length

const tight = await serve(0)
await burst(client, tight.addresses[0]!.port, ids)
await untilSo(() => tight.stats.udp.receivedTotal === ids.length)

// A stop right after the last answers were handed over must not lose those that are queued.
const responder = new ScriptedResponder()
const stopping = await serve(1_000_000, responder)
const later = ids.slice(0, 40)
for (const id of later) client.send(testQuery(id, 'later'), stopping.addresses[0]!.port, '127.0.0.1')
await untilSo(() => responder.waiting.length === later.length)
const receivedBefore = received.length
while (responder.waiting.length > 0) responder.waiting[0]!.answer()
await stopping.stop({ drainTimeoutMs: 2_000 })
for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))
const sentBeforeStop = received.length - receivedBefore

process.stdout.write(
  JSON.stringify({
    asked: ids.length,
    right,
    wrong: ids.length - right,
    copied: roomy.stats.udp.copiedTotal,
    droppedFull: roomy.stats.udp.sendQueueFullTotal,
    fullWhenNoneMayWait: tight.stats.udp.sendQueueFullTotal,
    askedBeforeStop: later.length,
    sentBeforeStop
  })
)
await Promise.all([roomy, tight].map(async (listeners) => listeners.stop({ drainTimeoutMs: 0, force: true })))
client.close()
