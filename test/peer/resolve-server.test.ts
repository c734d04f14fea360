// Servers that are given by name: the hosts file, DNS, resolv.conf.
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import type { Test } from 'tap'
import { serversPerName } from '../../src/base/limits.ts'
import { parseHosts } from '../../src/peer/hosts-file.ts'
import type { ServerAddress } from '../../src/peer/peer-types.ts'
import { parseResolvConf, ResolvConf } from '../../src/peer/resolv-conf.ts'
import { ServerResolver } from '../../src/peer/resolve-server.ts'
import { loopClock, sleep } from '../support/loop-clock.ts'
import { ManualClock } from '../support/manual-clock.ts'

const temporaryFolder = (t: Test): string => {
  const folder = mkdtempSync(join(tmpdir(), 'peerdns-hosts-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Waits until a look-up in the background, with its file access, has come to something. */
async function until(isDone: () => boolean): Promise<void> {
  for (let turn = 0; turn < 20_000 && !isDone(); turn++) await new Promise((done) => setTimeout(done, 2))
}

test('parseHosts reads addresses by name', async (t) => {
  const hosts = parseHosts(
    '127.0.0.1 localhost\n::1\tlocalhost ip6-localhost # loopback\n#10.9.9.9 commented\n10.0.0.1 DNS-A.example.org. dns-a\nnonsense dns-a\n10.0.0.2 dns-a\n10.0.0.2 dns-a\n'
  )
  t.same(Object.fromEntries(hosts), {
    localhost: ['127.0.0.1', '::1'],
    'ip6-localhost': ['::1'],
    'dns-a.example.org': ['10.0.0.1'],
    'dns-a': ['10.0.0.1', '10.0.0.2']
  })
})

test('parseResolvConf reads name servers', async (t) => {
  const at = (...hosts: string[]) => hosts.map((host) => ({ host, port: 53 }))
  const rows: { name: string; text: string; want: ServerAddress[] }[] = [
    { name: 'usual', text: 'search svc.cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n', want: at('10.96.0.10') },
    { name: 'several, each once', text: 'nameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.1', want: at('10.0.0.1', '10.0.0.2') },
    { name: 'IPv6 with a zone', text: 'nameserver fe80::1%eth0\nnameserver\t2001:db8::53 ', want: at('fe80::1%eth0', '2001:db8::53') },
    { name: 'comments', text: '# nameserver 10.0.0.1\n; nameserver 10.0.0.2\nnameserver 10.0.0.3 # ours', want: at('10.0.0.3') },
    { name: 'wrong lines', text: 'nameserver dns.example.org\nnameserver\nnameservers 10.0.0.1\n', want: [] },
    { name: 'nothing', text: '', want: [] }
  ] // prettier-ignore
  for (const { name, text, want } of rows) t.same(parseResolvConf(text), want, name)
  const many = Array.from({ length: 50 }, (_, at) => `nameserver 10.0.0.${at}`).join('\n')
  t.equal(parseResolvConf(many).length, serversPerName)
})

test('ResolvConf follows its file, and keeps what it knows when the file is bad', async (t) => {
  const path = join(temporaryFolder(t), 'resolv.conf')
  writeFileSync(path, 'nameserver 10.0.0.1\n')
  const told: (readonly ServerAddress[])[] = []
  const resolvConf = new ResolvConf(path, loopClock, (servers) => told.push(servers))
  t.teardown(() => resolvConf.close())
  t.same(resolvConf.servers, [{ host: '10.0.0.1', port: 53 }])
  writeFileSync(`${path}.new`, 'nameserver 10.0.0.2\n')
  renameSync(`${path}.new`, path)
  await until(() => told.length > 0)
  t.same(told, [[{ host: '10.0.0.2', port: 53 }]])
  rmSync(path)
  await sleep(150)
  t.same(resolvConf.servers, [{ host: '10.0.0.2', port: 53 }], 'still')
  t.same(new ResolvConf(`${path}.none`, new ManualClock(), () => {}).servers, [], 'no file, no server')
})

test('ServerResolver asks the hosts file first, then DNS', async (t) => {
  const path = join(temporaryFolder(t), 'hosts')
  writeFileSync(path, '10.0.0.1 a.example.org\n')
  const clock = new ManualClock()
  const asked: string[] = []
  const resolver = new ServerResolver(
    {
      hostsPath: path,
      resolveHost: (name) => {
        asked.push(name)
        return Promise.resolve({ addresses: ['10.0.0.2'], ttlSeconds: 30 })
      }
    },
    clock
  )
  t.same(await resolver.resolve('A.example.org'), ['10.0.0.1'])
  t.same(asked, [])
  t.same(await resolver.resolve('b.example.org'), ['10.0.0.2'])
  t.same(asked, ['b.example.org'])
  writeFileSync(path, '10.0.0.9 a.example.org b.example.org\n')
  clock.advance(4_999)
  t.same(resolver.addresses('A.example.org'), ['10.0.0.1'], 'not before 5 s')
  clock.advance(2)
  t.same(resolver.addresses('A.example.org'), ['10.0.0.1'], 'nobody waits for the file')
  await until(() => resolver.addresses('A.example.org')[0] === '10.0.0.9')
  t.same(resolver.addresses('A.example.org'), ['10.0.0.9'])
  clock.advance(30_000)
  resolver.addresses('b.example.org')
  await until(() => resolver.addresses('b.example.org')[0] === '10.0.0.9')
  t.same(resolver.addresses('b.example.org'), ['10.0.0.9'], 'the hosts file now has it')
  t.same(asked, ['b.example.org'])
})

test('ServerResolver looks up again by TTL, and keeps the last good addresses', async (t) => {
  const clock = new ManualClock()
  const settle = () => new Promise((done) => setImmediate(done))
  let reply: (() => Promise<{ addresses: string[]; ttlSeconds: number }>) | null = null
  const resolver = new ServerResolver({ hostsPath: null, resolveHost: () => reply!() }, clock)
  const gives = (ttlSeconds: number, ...addresses: string[]) =>
    (reply = () => Promise.resolve({ addresses, ttlSeconds }))
  reply = () => Promise.reject(new Error('SERVFAIL'))
  t.same(await resolver.resolve('a'), [], 'never rejects')
  t.equal(resolver.lastError('a'), 'SERVFAIL')
  gives(10, '10.0.0.1', '10.0.0.2')
  t.same(await resolver.resolve('a'), [], 'a failure holds for a second')
  clock.advance(1_000)
  const first = await resolver.resolve('a')
  t.same(first, ['10.0.0.1', '10.0.0.2'])
  t.equal(resolver.lastError('a'), null)
  gives(10, '10.0.0.2', '10.0.0.1')
  clock.advance(10_000)
  resolver.addresses('a')
  await settle()
  t.equal(resolver.addresses('a'), first, 'another order is no change')
  reply = () => Promise.reject(new Error('timeout'))
  clock.advance(10_000)
  resolver.addresses('a')
  await settle()
  t.equal(resolver.addresses('a'), first, 'kept')
  t.equal(resolver.lastError('a'), 'timeout')
  for (const [ttlSeconds, waitMs] of [[0, 1_000], [86_400, 300_000]] as const) {
    gives(ttlSeconds, `10.0.1.${ttlSeconds % 7}`)
    clock.advance(300_000)
    await resolver.resolve('a')
    await settle()
    const before = resolver.stats.lookups
    clock.advance(waitMs - 1)
    resolver.addresses('a')
    t.equal(resolver.stats.lookups, before, `TTL ${ttlSeconds}: not before ${waitMs} ms`)
    clock.advance(1)
    resolver.addresses('a')
    t.equal(resolver.stats.lookups, before + 1, `TTL ${ttlSeconds}: then`)
    await settle()
  } // prettier-ignore
  let asked = 0
  reply = () => {
    asked++
    return new Promise(() => {})
  }
  clock.advance(300_000)
  resolver.addresses('a')
  await settle()
  clock.advance(4_999)
  resolver.addresses('a')
  t.equal(asked, 1, 'a look-up is under way')
  clock.advance(1)
  await settle()
  t.equal(resolver.lastError('a'), 'timeout', 'one that hangs is given up')
  clock.advance(1_000)
  resolver.addresses('a')
  await settle()
  t.equal(asked, 2)
  clock.advance(5_000)
  await settle()
  gives(1, ...Array.from({ length: 100 }, (_, at) => `10.0.2.${at}`))
  clock.advance(300_000)
  resolver.addresses('a')
  await settle()
  t.equal(resolver.addresses('a').length, serversPerName)
})
