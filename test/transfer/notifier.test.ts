/** NOTIFY over UDP on a clock that a test moves: whom, how often, how long. */
import { test } from 'tap'
import {
  notifyEveryMs,
  notifyFirstWaitMs,
  notifyPeers,
  notifyTries,
  notifyZonesPerServer
} from '../../src/base/transfer-limits.ts'
import { Notifier } from '../../src/transfer/notifier.ts'
import { makeTransferStats } from '../../src/transfer/transfer-stats.ts'
import { parseName, type DomainName } from '../../src/wire/name.ts'
import { ManualClock } from '../support/manual-clock.ts'

type Sent = { to: string; id: number; text: string; respond: (rcode?: number, id?: number) => void }

function newNotifier(addresses: Readonly<Record<string, readonly string[]>> = {}) {
  const clock = new ManualClock()
  const stats = makeTransferStats()
  const sent: Sent[] = []
  const open = new Set<object>()
  let version = 0
  let random = 0
  const notifier = new Notifier({
    clock,
    stats,
    random: () => (random = (random + 0.013) % 1),
    addressesOf: (host) => addresses[host] ?? [host],
    message: (apex) =>
      apex === parseName('gone.example')
        ? null
        : Uint8Array.from([0, 0, 0x24, 0, version, ...Buffer.from(apex, 'latin1')]),
    sign: (message, address) => (address === '192.0.2.77' ? Uint8Array.from([...message, 99]) : message),
    open: ({ address, port }, onMessage) => {
      const exchange = {
        send(octets: Uint8Array) {
          const id = (octets[0]! << 8) | octets[1]!
          sent.push({
            to: `${address}:${port}`,
            id,
            text: `v${octets[4]}${octets.at(-1) === 99 ? ' signed' : ''}`,
            respond: (rcode = 0, other = id) =>
              onMessage(Uint8Array.from([other >> 8, other & 0xff, 0xa4, rcode, 0, 0, 0, 0, 0, 0, 0, 0]))
          })
        },
        close: () => open.delete(exchange)
      }
      open.add(exchange)
      return exchange
    }
  })
  const change = (zone: DomainName, isZone = true): void => {
    version++
    notifier.changed(zone, isZone)
  }
  return { clock, stats, sent, open, notifier, change }
}

const zone = parseName('cluster.local')
const suffix = parseName('backend.svc.cluster.local')

test('Notifier tells listed servers, again until they answer, and of what came meanwhile', async (t) => {
  const { clock, stats, sent, open, notifier, change } = newNotifier({ 'ns.example': ['192.0.2.1', '2001:db8::1'] })
  notifier.use([
    { host: 'ns.example', port: 53 },
    { host: '192.0.2.77', port: 5353 }
  ])
  change(zone)
  t.same(sent.map(({ to, text }) => `${to} ${text}`), [
    '192.0.2.1:53 v1', '2001:db8::1:53 v1', '192.0.2.77:5353 v1 signed'
  ]) // prettier-ignore
  const [first, second, third] = sent
  first!.respond()
  second!.respond(0, second!.id + 1)
  third!.respond()
  t.equal(open.size, 1, 'a response of another id is none')
  change(zone)
  t.equal(sent.length, 3, 'not so soon')
  clock.advance(notifyEveryMs)
  t.same(sent.slice(3).map(({ to, text }) => `${to} ${text}`), ['192.0.2.1:53 v2', '192.0.2.77:5353 v2 signed']) // prettier-ignore
  sent.slice(3).forEach(({ respond }) => respond())
  clock.advance(notifyFirstWaitMs)
  t.match(sent.at(-1), { to: '2001:db8::1:53', text: 'v2', id: second!.id }, 'the same request, the newest serial')
  for (let tries = 1; tries < notifyTries; tries++) clock.advance(notifyFirstWaitMs * 2 ** tries)
  t.equal(open.size, 0)
  t.equal(sent.filter(({ to }) => to.startsWith('2001')).length, notifyTries)
  t.equal(stats.notifyLostTotal, 1)
  change(zone)
  t.equal(sent.at(-2)!.to, '2001:db8::1:53', 'listed ones are never given up')
  notifier.close()
  t.equal(open.size, 0)
  t.equal(clock.pendingTimers, 0)
  change(zone)
  t.equal(open.size, 0)
})

test('Notifier: what a server has not, it is not told again; what it asks for, it is', async (t) => {
  const { clock, sent, notifier, change } = newNotifier()
  notifier.use([{ host: '192.0.2.1', port: 53 }])
  change(zone)
  sent.at(-1)!.respond(9)
  clock.advance(1_000)
  change(zone)
  change(suffix, false)
  t.equal(sent.length, 1, 'neither the zone that it has not, nor a suffix')
  notifier.noteInterest('192.0.2.1', zone)
  notifier.noteInterest('192.0.2.1', suffix)
  change(zone)
  change(suffix, false)
  t.same(sent.slice(1).map(({ to }) => to), ['192.0.2.1:53', '192.0.2.1:53']) // prettier-ignore
  change(parseName('gone.example'))
  t.equal(sent.length, 3, 'a zone that is none for others')
  notifier.use([])
  clock.advance(60_000)
  t.equal(clock.pendingTimers, 0)
})

test('Notifier: servers that asked lately are told at port 53, a bounded number, until they do not answer', async (t) => {
  const { clock, sent, open, notifier, change } = newNotifier()
  for (let i = 0; i < notifyPeers + 50; i++) notifier.noteInterest(`198.51.${i >> 8}.${i & 255}`, zone)
  change(zone)
  t.equal(sent.length, notifyPeers)
  t.match(sent[0], { to: '198.51.0.50:53' })
  sent[7]!.respond()
  clock.advance(notifyFirstWaitMs * 2 ** notifyTries)
  t.equal(open.size, 0)
  const before = sent.length
  change(zone)
  t.same(sent.slice(before).map(({ to }) => to), ['198.51.0.57:53'], 'the others are forgotten') // prettier-ignore
  clock.advance(100_000_000)
  notifier.noteInterest('198.51.100.1', zone)
  const count = sent.length
  change(zone)
  t.same(sent.slice(count).map(({ to }) => to), ['198.51.100.1:53']) // prettier-ignore

  for (let i = 0; i < notifyZonesPerServer + 20; i++)
    notifier.noteInterest('198.51.100.1', parseName(`n${i}.svc.cluster.local`))
  const more = sent.length
  for (let i = 0; i < notifyZonesPerServer + 20; i++) change(parseName(`n${i}.svc.cluster.local`), false)
  t.equal(sent.length - more, notifyZonesPerServer - 1)
  notifier.close()
  t.equal(clock.pendingTimers, 0)
})
