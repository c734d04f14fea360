/** `takeover: on`, as processes see it: a new one beside the old one, and whoever asks meanwhile is answered. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { until } from '../support/in-process.ts'
import { startServerProcess, type ServerProcess } from '../support/server-process.ts'
import { loadLibc } from '../../src/server/mmsg/libc.ts'
import { CLASS, OPCODE, RRTYPE } from '../../src/wire/iana.ts'
import { encodeMessage } from '../../src/wire/message.ts'
import { parseName } from '../../src/wire/name.ts'

const libc = await loadLibc().catch(() => null)
const skip = libc === null && 'koffi is not installed, or this is no Linux'
const restarts = 2

const config = `
cluster: {name: a, source: {manifests: [.]}, records: ["db.backend.svc.cluster.local. 5 A 172.30.9.9"]}
listen: ["{listen}"]
admin: "{admin}"
forward: []
takeover: on
overrides: off
`

function queryOf(id: number): Uint8Array {
  const flags = { qr: false, aa: false, tc: false, rd: true, ra: false, ad: false, cd: false }
  const question = { name: parseName('db.backend.svc.cluster.local'), type: RRTYPE.A, class: CLASS.IN }
  const sections = { answer: [], authority: [], additional: [], edns: null }
  return encodeMessage({ id, opcode: OPCODE.QUERY, rcode: 0, ...flags, questions: [question], ...sections })
}

test('takeover: restarts lose nobody, and the old process ends well', { skip }, async (t) => {
  let serving = await startServerProcess(config)
  const { port, adminUrl } = serving
  const same = config.replace('{listen}', `127.0.0.1:${port}`).replace('{admin}', adminUrl.slice('http://'.length))
  const socket = createSocket('udp4')
  t.teardown(() => socket.close())
  socket.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const tally = { asked: 0, answered: 0, isOver: false }
  const rcodes = new Set<number>()
  let hasHeard: () => void = () => {}
  socket.on('message', (message) => {
    tally.answered += 1
    rcodes.add(message[3]! & 0x0f)
    hasHeard()
  })
  // A few under way at each moment, so that some always lie in the socket when it changes hands.
  const asking = (async () => {
    while (!tally.isOver) {
      while (tally.asked - tally.answered < 8) socket.send(queryOf(tally.asked++ & 0xffff))
      await new Promise<void>((resolve) => (hasHeard = resolve))
      // So that the test does not take the processor from those that it waits for.
      await sleep(2)
    }
  })()
  const all: ServerProcess[] = [serving]
  t.teardown(async () => {
    for (const { process: child } of all) child.kill('SIGKILL')
  })
  for (let restart = 0; restart < restarts; restart++) {
    const old = serving
    // Ready means that it has the sockets: the address is the old one's until then.
    serving = await startServerProcess(same)
    all.push(serving)
    t.equal(await old.stop(), 0)
    t.match(old.output(), /another process has taken the sockets over/)
    t.ok(await until(() => /sockets are taken over/.test(serving.output())), 'what it says comes a moment later')
  }
  tally.isOver = true
  await asking
  while (tally.answered < tally.asked) await new Promise<void>((resolve) => (hasHeard = resolve))
  t.equal(tally.answered, tally.asked, 'every query was answered')
  t.same([...rcodes], [0])
  t.ok(tally.asked > 100, `${tally.asked} queries`)
  t.equal(await serving.stop(), 0)
})

test('takeover: the old process serves on when the new one ends first', { skip }, async (t) => {
  const old = await startServerProcess(config)
  const same = config
    .replace('{listen}', `127.0.0.1:${old.port}`)
    .replace('{admin}', old.adminUrl.slice('http://'.length))
  const next = await startServerProcess(same)
  next.process.kill('SIGKILL')
  const [, signal] = (await once(next.process, 'exit')) as [number | null, string | null]
  t.equal(signal, 'SIGKILL')
  const socket = createSocket('udp4')
  t.teardown(() => socket.close())
  socket.send(queryOf(7), old.port, '127.0.0.1')
  const [answer] = (await once(socket, 'message')) as [Buffer]
  t.equal(answer.readUInt16BE(0), 7)
  const reply = await fetch(`${old.adminUrl}/readyz`, { headers: { connection: 'close' } })
  t.equal(await reply.text(), 'ready\n')
  t.equal(await old.stop(), 0)
})
