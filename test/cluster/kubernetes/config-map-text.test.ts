/** One text in a ConfigMap at a fake API server: followed, changed without losing anything, and put up with faults. */
import { test, type Test } from 'tap'
import { plainAccess } from '../../../src/cluster/sources/kubernetes/api-access.ts'
import { ConfigMapText } from '../../../src/cluster/sources/kubernetes/config-map-text.ts'
import { FakeApiServer, sendStatus } from '../../support/fake-api-server.ts'
import { until } from '../../support/in-process.ts'
import { loopClock, sleep } from '../../support/loop-clock.ts'

const path = '/api/v1/namespaces/peerdns/configmaps'
const name = 'peerdns-overrides'

async function startText(t: Test, server: FakeApiServer) {
  const texts: (string | null)[] = []
  const problems: (string | null)[] = []
  const text = new ConfigMapText({
    access: plainAccess(server.url),
    clock: loopClock,
    random: Math.random,
    namespace: 'peerdns',
    name,
    key: 'text'
  })
  t.teardown(() => text.close())
  await text.start({ onText: (it) => texts.push(it), onUnreadable: (reason) => problems.push(reason) })
  return { text, texts, problems }
}

async function startServer(t: Test): Promise<FakeApiServer> {
  const server = await FakeApiServer.start()
  t.teardown(() => server.stop())
  return server
}

const configMap = (text: string): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'peerdns', name },
  data: { text, other: 'is kept' }
})

test('ConfigMapText: what is there, what changes, what is deleted', async (t) => {
  const server = await startServer(t)
  server.put(path, configMap('one'))
  server.put(path, { ...configMap('other'), metadata: { namespace: 'peerdns', name: 'another' } })
  const { texts, problems } = await startText(t, server)
  t.same(texts, ['one'], 'known when the start is over')
  server.put(path, configMap('two'))
  t.ok(await until(() => texts.at(-1) === 'two'))
  server.put(path, { ...configMap('x'), metadata: { namespace: 'peerdns', name: 'another' } })
  server.delete(path, 'peerdns', name)
  t.ok(await until(() => texts.at(-1) === null))
  t.same(texts, ['one', 'two', null], 'another object is nothing to us')
  t.ok(problems.every((problem) => problem === null))
  const { query } = server.requests.find(({ kind }) => kind === 'list')!
  t.equal(query.get('fieldSelector'), `metadata.name=${name}`, 'so that rights to this one object suffice')
})

test('ConfigMapText.change: makes it, changes it, keeps other keys, loses nothing between two writers', async (t) => {
  const server = await startServer(t)
  const [one, other] = [await startText(t, server), await startText(t, server)]
  t.same(one.texts, [null])
  await one.text.change((text) => `${text ?? ''}a`)
  t.ok(await until(() => other.texts.at(-1) === 'a'))
  const letters = 'bcdefgh'.split('')
  await Promise.all(
    letters.map(async (letter, at) => (at % 2 === 0 ? one : other).text.change((text) => text + letter))
  )
  const stored = server.objects(path)[0]!['data'] as { text: string }
  t.equal(stored.text.split('').toSorted().join(''), 'abcdefgh')
  t.ok(await until(() => one.texts.at(-1) === stored.text && other.texts.at(-1) === stored.text))
  server.put(path, configMap('z'))
  await one.text.change((text) => `${text}!`)
  t.same(server.objects(path)[0]!['data'], { text: 'z!', other: 'is kept' })
})

test('ConfigMapText: an API server that is away or refuses is told once it matters, and what was known stays', async (t) => {
  const server = await startServer(t)
  server.put(path, configMap('one'))
  const { text, texts, problems } = await startText(t, server)
  await server.stop()
  t.ok(await until(() => typeof problems.at(-1) === 'string'))
  t.same(texts, ['one'])
  await t.rejects(
    text.change(() => 'two'),
    { name: 'ApiError', kind: 'network' }
  )
  await server.listen()
  t.ok(await until(() => problems.at(-1) === null))
  server.fail(({ kind }) => kind === 'write', (_request, response) => sendStatus(response, 403, 'Forbidden')) // prettier-ignore
  await t.rejects(
    text.change(() => 'two'),
    { name: 'ApiError', status: 403 }
  )
  server.fail(({ kind }) => kind === 'write', (_request, response) => sendStatus(response, 409, 'Conflict'), 100) // prettier-ignore
  await t.rejects(
    text.change(() => 'two'),
    { name: 'ApiError', status: 409 },
    'not for ever'
  )
  server.clearFaults()
  await text.change(() => 'two')
  t.equal(texts.at(-1), 'two')
})

test('ConfigMapText: a start does not wait for an API server that is away, and a watch that is refused is not asked in haste', async (t) => {
  const server = await startServer(t)
  server.freeze()
  const startedAtMs = loopClock.nowMs()
  await startText(t, server)
  t.ok(loopClock.nowMs() - startedAtMs < 8_000)
  const refusing = await startServer(t)
  refusing.fail(({ kind }) => kind === 'watch', (_request, response) => sendStatus(response, 403, 'Forbidden'), 1_000) // prettier-ignore
  const { problems } = await startText(t, refusing)
  t.ok(await until(() => refusing.requests.filter(({ kind }) => kind === 'watch').length >= 3))
  t.match(problems.at(-1), /^403/)
  const before = refusing.requests.length
  await sleep(1_000)
  t.ok(refusing.requests.length - before < 10, `${refusing.requests.length - before} requests in a second`)
})

test('ConfigMapText: storage that was rolled back counts', async (t) => {
  const server = await startServer(t)
  server.put(path, configMap('one'))
  const { texts } = await startText(t, server)
  server.put(path, configMap('two'))
  t.ok(await until(() => texts.at(-1) === 'two'))
  server.restore(50, () => server.put(path, configMap('old')))
  for (let round = 0; round < 3; round++) {
    server.endWatches()
    await until(() => server.openWatches > 0)
  }
  t.ok(await until(() => texts.at(-1) === 'old'))
})
