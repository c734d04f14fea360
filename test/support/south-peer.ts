/** A Peer called `south` in front of stub servers, for tests over real sockets. */
import type { Test } from 'tap'
import { Peer, type PeerDependencies } from '../../src/peer/peer.ts'
import type { PeerOptions, PeerQuestion, PeerReply } from '../../src/peer/peer-types.ts'
import { RCODE, RRTYPE } from '../../src/wire/iana.ts'
import { parseName } from '../../src/wire/name.ts'
import { loopClock } from './loop-clock.ts'
import { startStubPeer, type StubFault, type StubPeer, type StubRecord } from './stub-peer.ts'

export const southZone = 'south.example'

/** `api` has one address, `www` is an alias of it, `five` has five, `n0` to `n99` one each. */
const records: StubRecord[] = [
  { type: 'A', name: `api.${southZone}`, ttl: 10, data: '192.0.2.1' },
  { type: 'CNAME', name: `www.${southZone}`, ttl: 10, data: `api.${southZone}` }
]
for (let at = 0; at < 5; at++)
  records.push({ type: 'A', name: `five.${southZone}`, ttl: 10, data: `192.0.2.${10 + at}` })
for (let at = 0; at < 100; at++) records.push({ type: 'A', name: `n${at}.${southZone}`, ttl: 10, data: '192.0.2.9' })

export const southAnswers = {
  api: 'NOERROR 192.0.2.1',
  five: 'NOERROR 192.0.2.10 192.0.2.11 192.0.2.12 192.0.2.13 192.0.2.14',
  n: 'NOERROR 192.0.2.9'
}

export const southQuestion = (label: string, more: Partial<PeerQuestion> = {}): PeerQuestion => ({
  name: parseName(`${label}.${southZone}`),
  type: RRTYPE.A,
  dnssecOk: false,
  checkingDisabled: false,
  options: [],
  ...more
})

export async function southStub(t: Test, fault: StubFault = 'none', host = '127.0.0.1'): Promise<StubPeer> {
  const stub = await startStubPeer({ records, zone: southZone, host })
  stub.fault = fault
  t.teardown(() => stub.stop())
  return stub
}

export function southPeer(
  t: Test,
  stubs: StubPeer[],
  more: Partial<PeerOptions> = {},
  parts: Partial<PeerDependencies> = {}
): Peer {
  const peer = new Peer(
    {
      id: 'south',
      servers: stubs.map(({ address }) => address),
      recursion: false,
      transport: 'auto',
      families: [4, 6],
      maxInFlight: 1_000,
      zone: parseName(southZone),
      ...more
    },
    { clock: loopClock, random: Math.random, health: () => 'unknown', ...parts }
  )
  t.teardown(() => peer.close())
  return peer
}

/** `NOERROR 192.0.2.1`, or why not. */
export function replyToText(reply: PeerReply): string {
  if (reply.kind === 'failed') return `${reply.reason}${reply.rcode === null ? '' : ` ${reply.rcode}`}`
  const { rcode, answer } = reply.sections
  const addresses = answer.flatMap(({ type, rdata }) =>
    type === RRTYPE.A ? rdata.map((octets) => octets.join('.')) : []
  )
  return [rcode === RCODE.NXDOMAIN ? 'NXDOMAIN' : 'NOERROR', ...addresses.sort()].join(' ')
}
