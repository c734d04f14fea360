/** docs/policies.md: every configuration in it loads, and every `dig` line below it says what the server says. */
import { readFileSync } from 'node:fs'
import { test, type Test } from 'tap'
import { ask, startInProcess, until, type InProcessServer, type Reply } from '../support/in-process.ts'
import { namespace, service } from '../support/objects.ts'
import { startStubPeer, type StubPeer } from '../support/stub-peer.ts'
import { below, quickProbes, recordsOf } from './two-peers.ts'

const document = readFileSync(new URL('../../docs/policies.md', import.meta.url), 'utf8')

type Example = Readonly<{ title: string; config: string; lines: readonly string[] }>

/** Each configuration with the block of `dig` lines that follows it. */
function examplesOf(text: string): Example[] {
  const found = text.matchAll(/```yaml\n(.*?)```\n\n```\n(.*?)```/gs)
  return [...found].map(([, config, lines], index) => ({
    title: `${index + 1}: ${/name: ([\w-]+)/.exec(config!)![1]!}`,
    config: config!,
    lines: lines!.trimEnd().split('\n')
  }))
}

const objects = [
  namespace('backend'),
  ...service('api.backend', '10.1.1.20'),
  ...service('b-only.backend', '10.1.4.20'),
  ...service('new.backend', '10.1.6.20')
]

const withoutOwnService = (net: string) => recordsOf(net).filter(({ name }) => !name.startsWith('idle'))

async function start(t: Test, config: string): Promise<{ b: InProcessServer; peers: Map<string, StubPeer> }> {
  const peers = new Map<string, StubPeer>()
  const lines = ['cluster-a us-central 172.30.1', 'cluster-c eu-west 172.30.2'].map((line) => line.split(' '))
  const text: string[] = []
  for (const [name, region, net] of lines) {
    const stub = await startStubPeer({ zone: 'cluster.local', records: withoutOwnService(net!) })
    t.teardown(async () => stub.stop())
    peers.set(name!, stub)
    text.push(`  ${name}: {servers: ["${stub.text}"], region: ${region}, probe: ${quickProbes}}`)
  }
  const b = await startInProcess(
    t,
    `cluster: {name: cluster-b, region: us-west, source: {manifests: ["{manifests}"]}}\nforward: []\npeers:\n${text.join('\n')}\n${config}`,
    { objects }
  )
  return { b, peers }
}

const healthOf = (b: InProcessServer, peer: string): string | undefined =>
  b.server.peers.status().find(({ name }) => name === peer)?.health

/** `172.30.1.1 (EDE 3)` as the document writes it. */
const written = ({ text, ede }: Reply): string => text + ede.map(({ code }) => ` (EDE ${code})`).join('')

async function sharesHold(t: Test, b: InProcessServer, name: string, want: string, line: string): Promise<void> {
  const shares = [...want.matchAll(/(\S+) for (\d+) %/g)].map(([, text, percent]) => [text!, Number(percent)] as const)
  t.ok(shares.length > 1, `${line}: shares`)
  const counts = new Map<string, number>()
  const clients = 400
  for (let at = 0; at < clients; at++) {
    const { text } = await ask(b, name, { from: `127.0.${at >> 7}.${(at & 127) + 5}` })
    counts.set(text, (counts.get(text) ?? 0) + 1)
  }
  for (const [text, percent] of shares) {
    const found = ((counts.get(text) ?? 0) / clients) * 100
    // 400 clients: five standard deviations at the most. Exact shares are another test's.
    t.ok(Math.abs(found - percent) < 12.5, `${line}: ${text} ${found} %`)
  }
}

for (const { title, config, lines } of examplesOf(document)) {
  test(title, async (t) => {
    const { b, peers } = await start(t, config)
    // Who is in no policy has nothing to be probed for.
    const used = [...peers.keys()].filter((name) => config.includes(name))
    t.ok(await until(() => used.every((name) => healthOf(b, name) === 'up')))
    for (const line of lines) {
      const match = /^(?:(.+) down, )?dig (?:-b (\S+) )?(\S+) +-> (.+)$/.exec(line)
      if (match === null) {
        t.fail(`not understood: ${line}`)
        continue
      }
      const [, down, from, name, want] = match
      for (const peer of down?.split(', ') ?? []) {
        peers.get(peer)!.fault = 'silent'
        t.ok(await until(() => healthOf(b, peer) === 'down'), `${peer} is down`)
        if (!want!.includes('EDE 3')) b.server.cache.flush()
      }
      // What was given before it was cut off is out of its TTL then.
      if (want!.includes('EDE 3')) await until(async () => (await ask(b, name!)).ede.length > 0, 15_000)
      if (want!.includes('%')) await sharesHold(t, b, name!, want!, line)
      else t.equal(written(await ask(b, name!, from === undefined ? {} : { from })), want, line)
    }
  })
}

test('the document has an example for each way to select', async (t) => {
  const examples = examplesOf(document)
  t.equal([...document.matchAll(/```yaml/g)].length, examples.length, 'each configuration says what dig shows')
  for (const word of ['weighted', 'geo', 'merge'])
    t.ok(examples.some(({ config }) => config.includes(`select: ${word}`)))
  t.ok(document.includes(below('api')))
})
