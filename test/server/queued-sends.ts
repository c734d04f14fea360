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

async function serve(udpSendQueueOctets: number): Promise<Listeners> {
  const addresses = [{ address: '127.0.0.1', port: 0 }]
  const limits = { udpSendQueueOctets }
  return Listeners.open({ addresses, responder: new ScriptedResponder(), clock: systemClock, limits })
}

const ids = Array.from({ length: 300 }, (_, id) => id)
const received: Buffer[] = []
const client = createSocket('udp4')
client.on('message', (message) => received.push(message))

const roomy = await serve(1_000_000)
await burst(client, roomy.addresses[0]!.port, ids)
while (received.length < ids.length) await new Promise((resolve) => setImmediate(resolve))
const right = received.filter((message) => textOf(message) === `now ${idOf(message)}`).length

const tight = await serve(0)
await burst(client, tight.addresses[0]!.port, ids)
while (tight.stats.udp.receivedTotal < ids.length) await new Promise((resolve) => setImmediate(resolve))

process.stdout.write(
  JSON.stringify({
    asked: ids.length,
    right,
    wrong: ids.length - right,
    copied: roomy.stats.udp.copiedTotal,
    droppedFull: roomy.stats.udp.sendQueueFullTotal,
    fullWhenNoneMayWait: tight.stats.udp.sendQueueFullTotal
  })
)
await Promise.all([roomy, tight].map(async (listeners) => listeners.stop({ drainTimeoutMs: 0, force: true })))
client.close()
