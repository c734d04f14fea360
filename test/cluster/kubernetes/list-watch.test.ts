/** Every rule of list and watch, over real sockets, with time moved by hand. */
import { test } from 'tap'
import { plainAccess } from '../../../src/cluster/sources/kubernetes/api-access.ts'
import { KubernetesSource } from '../../../src/cluster/sources/kubernetes/kubernetes-source.ts'
import { silentLog } from '../../../src/base/log.ts'
import { apiBackoffMaxMs, apiListPageObjects } from '../../../src/base/limits.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { FakeApiServer, sendStatus } from '../../support/fake-api-server.ts'
import type { FakeRequest } from '../../support/fake-api-server.ts'
import { sleep } from '../../support/loop-clock.ts'
import { Model, paths, sameObjects, service, serviceImport, setUp, wantedObjects } from './fixture.ts'

const isList = ({ kind, path }: FakeRequest) => kind === 'list' && path === paths.services
const isWatch = ({ kind, path }: FakeRequest) => kind === 'watch' && path === paths.services
/** Six short waits, and then long ones, of which a fourth may be saved by chance. */
const mostPerMinute = 6 + Math.ceil(60_000 / (apiBackoffMaxMs * 0.75))
const page = String(apiListPageObjects)
const names = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => `svc-${from + at}`)

test('list: in pages, of all resources, then synced', async (t) => {
  const { server, model, counts, source, resource } = await setUp(t, {
    withPods: true,
    prepare: (server) => {
      for (const name of names(0, 2 * apiListPageObjects + 203)) server.put(paths.services, service(name))
      server.put(paths.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web-0', namespace: 'shop' } }
      server.put(paths.pods, { ...pod, status: { phase: 'Running', podIP: '10.1.0.1' } })
    }
  })
  t.equal(counts.synced, 1)
  t.equal(model.objects.size, 2 * apiListPageObjects + 205)
  const lists = server.requests.filter(isList)
  t.same(lists.map(({ query }) => query.get('limit')), [page, page, page]) // prettier-ignore
  t.same(lists.map(({ query }) => query.get('continue') !== null), [false, true, true]) // prettier-ignore
  t.ok(
    lists.every(({ query }) => query.get('resourceVersion') === null),
    'never from a cache that may be old'
  )
  const podRequests = server.requests.filter(({ path }) => path === paths.pods)
  t.equal(podRequests.length, 2)
  for (const { query } of podRequests)
    t.equal(query.get('fieldSelector'), 'status.phase!=Succeeded,status.phase!=Failed')
  const watch = server.requests.find(isWatch)!
  t.equal(watch.query.get('resourceVersion'), String(server.version))
  t.equal(watch.query.get('allowWatchBookmarks'), 'true')
  const seconds = Number(watch.query.get('timeoutSeconds'))
  t.ok(seconds >= 20 && seconds <= 25)
  t.equal(server.connections, 5, 'one connection for each resource')
  t.match(source.status(), { hasSynced: true, lastSignOfLifeAgeMs: 0 })
  t.match(resource('services'), {
    state: 'watching',
    objects: 2 * apiListPageObjects + 203,
    lists: 1,
    watches: 1,
    events: 2 * apiListPageObjects + 203,
    errors: 0,
    lastError: null
  })
  t.ok(model.batches.every(({ size }) => size <= 500))
  t.notOk(
    server.requests.some(({ path }) => path.endsWith('/endpoints')),
    'old Endpoints are not watched'
  )
})

test('watch: changes at once, those of one chunk in one batch', async (t) => {
  const { server, clock, model, until } = await setUp(t)
  server.put(paths.services, service('web'))
  await until(() => model.events.length === 1, 'added')
  server.put(paths.services, service('web', '10.0.0.2'))
  server.delete(paths.services, 'shop', 'web')
  await until(() => model.events.length === 3, 'changed and deleted')
  t.same(model.takeWords(), ['put Service/shop/web', 'put Service/shop/web', 'delete Service/shop/web'])
  t.equal(model.batches.at(-1)?.originAtMs, clock.epochMs(), 'the time of arrival')
  const batches = model.batches.length
  const lines = names(0, 1_200).map((name, at) => {
    const object = {
      ...service(name),
      metadata: { name, namespace: 'shop', uid: name, resourceVersion: String(1_000 + at) }
    }
    return `${JSON.stringify({ type: 'ADDED', object })}\n`
  })
  server.sendToWatches(paths.services, lines.join(''))
  await until(() => model.objects.size === 1_200, 'all')
  t.ok(model.batches.length - batches < 100, `${model.batches.length - batches} batches`)
})

test('watch: the age of an EndpointSlice is what its controller says', async (t) => {
  const { server, clock, model, until } = await setUp(t)
  clock.advance(10_000)
  const changedAt = new Date(Math.floor(clock.epochMs() / 1000) * 1000 - 5_000)
  const annotations = {
    'endpoints.kubernetes.io/last-change-trigger-time': changedAt.toISOString().replace('.000', '')
  }
  server.put(paths.slices, {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web-1', namespace: 'shop', annotations },
    addressType: 'IPv4',
    endpoints: [],
    ports: []
  })
  await until(() => model.events.length === 1, 'added')
  t.equal(model.batches.at(-1)?.originAtMs, changedAt.getTime() + 999)
})

test('watch: ended by the server in time, it goes on from the last bookmark without a list', async (t) => {
  const { server, clock, resource, until, settled } = await setUp(t)
  server.put(paths.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } })
  server.sendBookmarks(paths.services)
  await until(() => resource('services').resourceVersion === String(server.version), 'the bookmark')
  for (let watches = 2; watches <= 4; watches++) {
    clock.advance(19_000)
    t.equal(resource('services').watches, watches - 1)
    await until(() => resource('services').watches === watches, 'the next watch', 500)
    await settled()
  }
  t.match(resource('services'), { lists: 1, errors: 0 })
  t.equal(server.requests.findLast(isWatch)?.query.get('resourceVersion'), String(server.version))
  const lists = server.requests.filter(isList).map(({ query }) => query.get('limit'))
  t.same(lists, [page, '1', '1', '1'], 'one object, for the resourceVersion, before each further watch')
  t.equal(server.connections, 4, 'the connections are kept')
})

test('watch: frozen, it is cut and begun anew in under 30 s', async (t) => {
  const { server, clock, source, model, lines, until, settled } = await setUp(t)
  server.put(paths.services, service('before'))
  await until(() => model.objects.size === 1, 'before')
  const before = server.requests.length
  server.freeze()
  server.put(paths.services, service('meanwhile'))
  clock.advance(20_000)
  t.equal(source.status().lastSignOfLifeAgeMs, 20_000, 'the age shows it all the time')
  clock.advance(8_500)
  await until(() => server.requests.length > before, 'asked again')
  t.ok(
    source.status().resources.every(({ state }) => state !== 'watching'),
    'noticed'
  )
  t.equal(model.objects.size, 1, 'what was known stays')
  await until(() => lines.some(({ text }) => text.startsWith('the watch is lost')), 'said', 200)
  server.thaw()
  await settled(200)
  t.equal(model.objects.size, 2)
  await until(() => lines.filter(({ text }) => text === 'the watch is back').length === 3, 'said again', 500)
  t.equal(lines.filter(({ text }) => text.startsWith('the watch is lost')).length, 3, 'once for each resource')
  t.match(source.status().resources[0], { drift: 0, lists: 1 })
})

test('watch: a short break is not said', async (t) => {
  const { server, clock, lines, until, settled } = await setUp(t)
  server.cutWatches()
  await until(() => server.openWatches === 0, 'cut')
  await settled(50)
  clock.advance(15_000)
  await settled(50)
  t.same(lines, [])
})

test('watch: expired, by status or by event, ends in the exact difference', async (t) => {
  for (const how of ['event', 'status', 'at the next watch'] as const) {
    const { server, clock, model, resource, until, settled } = await setUp(t, {
      prepare: (server) => {
        for (const name of ['same', 'changed', 'vanished', 'remade']) server.put(paths.services, service(name))
      }
    })
    model.takeWords()
    if (how === 'status') server.fail(isWatch, (_, response) => sendStatus(response, 410, 'Expired'))
    server.restore(server.version + 50, () => {
      server.put(paths.services, service('changed', '10.0.0.9'))
      server.delete(paths.services, 'shop', 'vanished')
      server.delete(paths.services, 'shop', 'remade')
      server.put(paths.services, service('remade'))
      server.put(paths.services, service('new'))
    })
    if (how === 'event') server.sendError(paths.services, 410, 'Expired')
    else {
      server.compact()
      if (how === 'at the next watch') clock.advance(25_000)
      else server.cutWatches()
    }
    await until(() => resource('services').lists === 2, how, 100)
    await settled(100)
    const words = model.takeWords()
    t.same([...words].sort(), ['delete Service/shop/remade', 'delete Service/shop/vanished', 'put Service/shop/changed', 'put Service/shop/new', 'put Service/shop/remade'], how) // prettier-ignore
    t.ok(words.indexOf('delete Service/shop/remade') < words.indexOf('put Service/shop/remade'), 'deleted first')
    t.equal(resource('services').errors >= 1, true)
  }
})

test('list: begins anew where its pages expire, and is asked for whole if they do again', async (t) => {
  const { server, model, source, settled } = await setUp(t, {
    start: false,
    prepare: (server) => {
      for (const name of names(0, 2 * apiListPageObjects + 100)) server.put(paths.services, service(name))
      const isLaterPage = (request: FakeRequest) => isList(request) && request.query.has('continue')
      server.fail(
        isLaterPage,
        (_, response) => {
          server.deleteUntold(paths.services, 'shop', `svc-${server.version % 2}`)
          return sendStatus(response, 410, 'Expired')
        },
        2
      )
    }
  })
  source.start()
  await settled()
  t.same(server.requests.filter(isList).map(({ query }) => query.get('limit')), [page, page, page, page, null]) // prettier-ignore
  t.equal(model.objects.size, server.objects(paths.services).length, 'without what vanished between the attempts')
  t.match(source.status().resources[0], { errors: 0, lists: 1 })
})

test('storage: emptied, rolled back or restored, it ends in what the list holds', async (t) => {
  const rows = [
    { name: 'emptied', version: 5, isPolite: true },
    { name: 'emptied, connections cut', version: 5, isPolite: false },
    { name: 'rolled back', version: 102, isPolite: true }
  ]
  for (const { name, version, isPolite } of rows) {
    const { server, model, resource, until, settled } = await setUp(t, {
      prepare: (server) => {
        for (const service_ of ['a', 'b', 'c']) server.put(paths.services, service(service_))
      }
    })
    server.restore(version, () => {
      for (const service_ of ['a', 'b']) server.delete(paths.services, 'shop', service_)
    })
    if (isPolite) server.endWatches()
    else server.cutWatches()
    await until(() => resource('services').lists === 2, name, 100)
    await settled(100)
    t.equal(model.objects.size, 1, name)
    server.put(paths.services, service('later'))
    await settled(0)
    t.equal(model.objects.size, 2, 'and the watch is alive')
  }
})

test('errors: whatever the server says, it is asked again, slower and slower', async (t) => {
  const rows = [
    { name: '500', status: 500, maxPerMinute: mostPerMinute },
    { name: '429 that says when', status: 429, headers: { 'retry-after': '20' }, maxPerMinute: 4 },
    { name: '403', status: 403, maxPerMinute: 12 },
    { name: '404', status: 404, maxPerMinute: 12 }
  ]
  for (const { name, status, headers, maxPerMinute } of rows) {
    const { server, clock, model, source, until, settled } = await setUp(t, {
      start: false,
      prepare: (server) => server.put(paths.services, service('web'))
    })
    server.fail(isList, (_, response) => sendStatus(response, status, 'Failure', headers), Infinity)
    source.start()
    await until(() => source.status().resources[0]!.errors === 1, name)
    const startedAtMs = clock.nowMs()
    await until(() => clock.nowMs() - startedAtMs > 60_000, 'a minute', 250)
    const asked = server.requests.filter(isList).length
    t.ok(asked >= 3 && asked <= maxPerMinute, `${name}: ${asked} requests in a minute`)
    t.match(source.status(), { hasSynced: false, resources: [{ lastError: { text: new RegExp(String(status)) } }] })
    server.clearFaults()
    await settled(500)
    t.equal(model.objects.size, 1, `${name} is over`)
  }
})

test('watches that end at once again and again do not spin', async (t) => {
  const { server, clock, until, settled, resource } = await setUp(t)
  const before = server.requests.length
  server.fail(isWatch, (_, response) => {
    response.writeHead(200)
    response.end()
    return true
  }, Infinity) // prettier-ignore
  server.endWatches(paths.services)
  const startedAtMs = clock.nowMs()
  await until(() => clock.nowMs() - startedAtMs > 60_000, 'a minute', 250)
  const watches = server.requests.slice(before).filter(isWatch).length
  t.ok(watches >= 5 && watches <= mostPerMinute, `${watches} watches`)
  server.clearFaults()
  await settled(500)
  t.equal(resource('services').lists, 1)
})

test('watch: what cannot be understood leads to a list, and is said once', async (t) => {
  const event = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`
  const rows = [
    { name: 'garbage', text: 'ab{"\n' },
    { name: 'no event', text: '[]\n' },
    { name: 'an unknown type', text: event('RENAMED', { metadata: { name: 'a', resourceVersion: '9999' } }) },
    { name: 'no resourceVersion', text: event('ADDED', { metadata: { name: 'a' } }) },
    { name: 'no name', text: event('ADDED', { metadata: { resourceVersion: '9999' } }) },
    { name: 'going back', text: event('BOOKMARK', { metadata: { resourceVersion: '1' } }) },
    { name: 'an error that is no 410', text: event('ERROR', { code: 500, message: 'decoding failed' }) }
  ]
  const { server, model, lines, resource, until, settled } = await setUp(t)
  for (const [at, { name, text }] of rows.entries()) {
    server.putUntold(paths.services, service(`svc-${at}`))
    server.sendToWatches(paths.services, text)
    await until(() => resource('services').lists === at + 2, name, 100)
    await settled(100)
    t.equal(model.objects.size, at + 1, `${name}: what it hid is known`)
  }
  t.equal(resource('services').unreadable, 5)
  t.equal(lines.filter(({ text }) => text.startsWith('the API server went back')).length, 1)
  t.equal(lines.filter(({ text }) => text === 'the API server cannot be understood').length, 1)
})

test('watch: cut inside a line, or with an endless line, nothing is lost or taken twice', async (t) => {
  const { server, model, until, settled, resource } = await setUp(t)
  server.put(paths.services, service('one'))
  await until(() => model.events.length === 1, 'one')
  server.fail(isWatch, () => false)
  server.cutWatches(paths.services, '{"type":"ADDED","object":{"metadata":{"name":"ha')
  server.put(paths.services, service('two'))
  await settled(100)
  t.same(model.takeWords(), ['put Service/shop/one', 'put Service/shop/two'])
  t.match(resource('services'), { lists: 1, unreadable: 0 })
  server.sendToWatches(paths.services, 'x'.repeat(9 * 1024 * 1024))
  await until(() => resource('services').lists === 2, 'cut', 100)
  await settled(100)
  t.same(model.takeWords(), [])
})

test('list: what is no list is not believed', async (t) => {
  const rows = [
    { name: 'HTML', body: '<html>' },
    { name: 'a broken list', body: '{"kind":"ServiceList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"}},' },
    { name: 'an empty answer', body: '' },
    { name: 'an object without a name', body: '{"kind":"ServiceList","metadata":{"resourceVersion":"1"},"items":[{}]}' }
  ] // prettier-ignore
  for (const { name, body } of rows) {
    const { server, model, source, until, settled } = await setUp(t, {
      start: false,
      prepare: (server) => server.put(paths.services, service('web'))
    })
    server.fail(isList, (_, response) => {
      response.end(body)
      return true
    }, 3) // prettier-ignore
    source.start()
    await until(() => source.status().resources[0]!.errors >= 2, name, 100)
    t.notOk(source.status().hasSynced, name)
    await settled(200)
    t.ok(sameObjects(model.objects, wantedObjects(server)), name)
  }
})

test('server: refused, and back', async (t) => {
  const { server, clock, model, source, lines, until, settled } = await setUp(t, {
    prepare: (server) => server.put(paths.services, service('gone'))
  })
  await server.stop()
  server.delete(paths.services, 'shop', 'gone')
  server.put(paths.services, service('new'))
  await until(() => source.status().resources.every(({ state, path }) => path === null || state === 'waiting'), 'lost')
  const startedAtMs = clock.nowMs()
  await until(() => clock.nowMs() - startedAtMs > 120_000, 'two minutes', 500)
  t.same([...model.objects.keys()], ['Service/shop/gone'], 'the last that was known')
  t.ok(source.status().lastSignOfLifeAgeMs! > 100_000)
  t.match(source.status().resources[0]?.lastError?.text, /ECONNREFUSED/)
  await server.listen()
  await settled(500)
  t.same([...model.objects.keys()], ['Service/shop/new'])
  await until(() => lines.filter(({ text }) => text === 'the watch is back').length === 4, 'said', 500)
})

test('list: slow, nothing is told as synced before its end', async (t) => {
  const { server, clock, source, counts, until, settled } = await setUp(t, {
    start: false,
    prepare: (server) => {
      server.put(paths.services, service('web'))
      server.fail(isList, () => false, 0)
    }
  })
  let answer = (): void => {}
  server.fail(isList, (_, response) => {
    const { version } = server
    response.writeHead(200)
    response.write(`{"kind":"ServiceList","metadata":{"resourceVersion":"${version}"},"items":[`)
    answer = () => response.end(`${JSON.stringify(server.objects(paths.services)[0])}]}`)
    return true
  }) // prettier-ignore
  source.start()
  await until(() => source.status().resources.filter(({ hasSynced }) => hasSynced).length === 3, 'the others')
  clock.advance(4_000)
  t.equal(counts.synced, 0)
  t.match(source.status(), { hasSynced: false, lastSignOfLifeAgeMs: 4_000 })
  answer()
  await settled()
  t.equal(counts.synced, 1)
  t.match(source.status().resources[0], { lists: 1, errors: 0 })
})

test('list: silent for too long, it is asked for again', async (t) => {
  const { server, clock, source, until, settled } = await setUp(t, { start: false })
  server.fail(isList, (_, response) => {
    response.writeHead(200)
    response.write('{"kind":"ServiceList",')
    return true
  }) // prettier-ignore
  server.fail(isList, () => true)
  source.start()
  await until(() => source.status().resources.filter(({ hasSynced }) => hasSynced).length === 3, 'the others')
  clock.advance(10_500)
  await until(() => source.status().resources[0]!.errors === 1, 'in the body', 100)
  await until(() => server.requests.filter(isList).length === 2, 'asked again', 100)
  clock.advance(10_500)
  await until(() => source.status().resources[0]!.errors === 2, 'before the header', 100)
  await settled(100)
})

test('list: asked for again and again without an answer, nothing has shown a sign of life', async (t) => {
  const { server, clock, source, resource, until } = await setUp(t, { start: false })
  server.fail(isList, () => true, 100)
  source.start()
  await until(() => server.requests.filter(isList).length === 1, 'asked')
  t.equal(resource('services').lastSignOfLifeAgeMs, null, 'asked')
  for (let times = 1; times <= 3; times++) {
    clock.advance(10_500)
    await until(() => server.requests.filter(isList).length > times, 'asked again', 100)
    t.equal(resource('services').lastSignOfLifeAgeMs, null, `given up ${times} times`)
  }
})

test('list: the age of the last sign of life grows while lists fail', async (t) => {
  const { server, clock, resource, until } = await setUp(t)
  const lists = server.requests.filter(isList).length
  server.fail(isList, () => true, 100)
  server.fail(isWatch, (_, response) => sendStatus(response, 410, 'Expired'))
  await until(() => server.requests.filter(isList).length > lists, 'listed again', 500)
  const begun = clock.nowMs()
  const ageMs = resource('services').lastSignOfLifeAgeMs!
  await until(() => clock.nowMs() - begun > 60_000, 'a minute', 500)
  t.ok(resource('services').lastSignOfLifeAgeMs! >= ageMs + 60_000, `${resource('services').lastSignOfLifeAgeMs} ms`)
})

test('ServiceImports: come, change their version, and go', async (t) => {
  const { server, clock, model, lines, counts, resource, until } = await setUp(t)
  t.equal(counts.synced, 1, 'synced without them')
  t.match(resource('serviceimports'), { path: null, state: 'waiting', hasSynced: true, objects: 0 })
  await until(() => resource('serviceimports').lists === 2, 'looked for again', 500)
  t.ok(clock.nowMs() <= 25_500, 'soon enough to be a sign of life')
  t.equal(resource('serviceimports').lastSignOfLifeAgeMs, 0)
  const alpha = paths.imports.replace('v1beta1', 'v1alpha1')
  server.mcsVersions = ['v1alpha1']
  server.put(alpha, serviceImport('web', 'v1alpha1'))
  await until(() => model.objects.has('ServiceImport/shop/web'), 'found', 500)
  t.equal(resource('serviceimports').path, alpha)
  // Both are served now: the watch stays where it is.
  server.mcsVersions = ['v1alpha1', 'v1beta1']
  server.put(paths.imports, { ...server.objects(alpha)[0]! })
  model.takeWords()
  server.mcsVersions = ['v1beta1']
  server.endWatches(alpha)
  await until(() => resource('serviceimports').path === paths.imports, 'the other version', 500)
  t.same(model.takeWords(), ['put ServiceImport/shop/web'], 'the same object')
  server.mcsVersions = []
  server.endWatches(paths.imports)
  await until(() => resource('serviceimports').path === null, 'gone', 500)
  t.same(model.takeWords(), ['delete ServiceImport/shop/web'])
  t.match(resource('serviceimports'), { hasSynced: true, objects: 0 })
  t.equal(counts.synced, 1)
  const moves = lines.map(({ text }) => text).filter((text) => text.includes('this resource'))
  const has = 'the API server has this resource now'
  t.same(moves, [has, has, 'the API server no longer has this resource'], 'each is said')
})

test('ServiceImports: v1beta1 is preferred, and an error is not absence', async (t) => {
  const isDiscovery = ({ kind }: FakeRequest) => kind === 'other'
  const { source, counts, resource, until, settled } = await setUp(t, {
    start: false,
    prepare: (server) => {
      server.mcsVersions = ['v1alpha1', 'v1beta1']
      server.put(paths.imports, serviceImport('web'))
      server.fail(isDiscovery, (_, response) => sendStatus(response, 503, 'Unavailable'), 2)
    }
  })
  source.start()
  await until(() => resource('serviceimports').errors === 1, 'asked')
  t.equal(counts.synced, 0)
  await settled(100)
  t.equal(resource('serviceimports').path, paths.imports)
  t.equal(counts.synced, 1)
})

test('audit: finds ghosts and missed objects, counts and repairs them', async (t) => {
  const { server, clock, model, lines, resource, source, until, settled } = await setUp(t, {
    prepare: (server) => {
      for (const name of ['a', 'b', 'c']) server.put(paths.services, service(name))
    }
  })
  const audited = async (count: number) => {
    await until(() => resource('services').audits === count, `audit ${count}`, 1_000)
    await settled(100)
  }
  await audited(1)
  const startedAtMs = clock.nowMs()
  t.ok(startedAtMs < 650_000, `${startedAtMs}`)
  t.equal(resource('services').drift, 0)
  const auditList = server.requests.find(
    ({ headers }) => headers.accept?.includes('PartialObjectMetadataList') === true
  )!
  t.equal(auditList.path, paths.services, 'it asks for the metadata alone')
  model.takeWords()
  server.deleteUntold(paths.services, 'shop', 'a')
  server.putUntold(paths.services, service('b', '10.0.0.9'))
  server.putUntold(paths.services, service('d'))
  await audited(2)
  t.ok(clock.nowMs() - startedAtMs < 650_000)
  t.equal(resource('services').drift, 3)
  t.same(model.takeWords().sort(), ['delete Service/shop/a', 'put Service/shop/b', 'put Service/shop/d'])
  t.match(
    lines.find(({ level }) => level === 'error'),
    { fields: { ghost: 1, missed: 1, other: 1 } }
  )
  await audited(3)
  t.equal(resource('services').drift, 3)
  t.ok(
    source.status().resources.every(({ path, audits }) => path === null || audits > 0),
    'every resource has its turn'
  )
})

test('audit: soon after a watch broke, since other storage may be behind it', async (t) => {
  const { server, clock, model, lines, resource, until, settled } = await setUp(t, {
    prepare: (server) => {
      for (const name of ['a', 'b']) server.put(paths.services, service(name))
    }
  })
  server.restore(server.version - 1, () => server.delete(paths.services, 'shop', 'a'))
  for (const name of ['c', 'd', 'e']) server.putUntold(paths.services, service(name))
  await server.stop()
  await server.listen()
  const startedAtMs = clock.nowMs()
  await until(() => resource('services').drift > 0, 'drift', 200)
  await settled(100)
  t.ok(clock.nowMs() - startedAtMs < 60_000, `${clock.nowMs() - startedAtMs} ms`)
  t.equal(model.objects.size, 4)
  await until(() => resource('endpointslices').audits > 0 && resource('namespaces').audits > 0, 'the others', 200)
  t.equal(lines.filter(({ level }) => level === 'error').length, 1)
})

test('audit: what changes meanwhile is no drift', async (t) => {
  const { server, model, resource, until, settled } = await setUp(t, {
    prepare: (server) => server.put(paths.services, service('old'))
  })
  const isAudit = ({ path, headers }: FakeRequest) =>
    path === paths.services && headers.accept?.includes('Partial') === true
  let isHit = false
  server.fail(isAudit, () => {
    isHit = true
    // After the answer has been made, before it can be compared.
    setImmediate(() => {
      server.put(paths.services, service('new'))
      server.delete(paths.services, 'shop', 'old')
    })
    return false
  }) // prettier-ignore
  await until(() => isHit, 'an audit', 1_000)
  await until(() => model.objects.has('Service/shop/new') && model.objects.size === 1, 'changed')
  await until(() => resource('services').audits === 1, 'compared', 500)
  await settled(100)
  t.match(resource('services'), { drift: 0, lists: 1 })
})

test('a listener that throws loses one event, not the others', async (t) => {
  const server = await FakeApiServer.start()
  for (const name of names(0, 20)) server.put(paths.services, service(name))
  const model = new Model()
  const source = new KubernetesSource({
    access: plainAccess(server.url),
    withPods: false,
    clock: systemClock,
    log: silentLog,
    random: Math.random,
    onEvents: (events, originAtMs) => {
      if (events.some((event) => event.type === 'put' && event.object.name === 'svc-7')) throw new Error('a bug')
      model.take(events, originAtMs)
    },
    onSynced: () => {
      throw new Error('another bug')
    }
  })
  t.teardown(async () => {
    await source.close()
    await server.stop()
  })
  source.start()
  while (model.objects.size < 19) await new Promise((resolve) => void setTimeout(resolve, 5))
  t.notOk(model.objects.has('Service/shop/svc-7'))
  t.equal(source.status().resources[0]?.handlerErrors, 1)
  while (!source.status().resources.every(({ hasSynced }) => hasSynced))
    await new Promise((resolve) => void setTimeout(resolve, 5))
})

test('close: in whatever state, it ends everything', async (t) => {
  for (const state of ['listing', 'watching', 'waiting', 'frozen'] as const) {
    const { server, clock, source, until } = await setUp(t, { start: state === 'watching' || state === 'frozen' })
    if (state === 'listing') server.fail(({ kind }) => kind === 'list', () => true, Infinity) // prettier-ignore
    if (state === 'waiting') server.fail(() => true, (_, response) => sendStatus(response, 500, 'Failure'), Infinity) // prettier-ignore
    if (state === 'frozen') server.freeze()
    source.start()
    if (state === 'listing')
      await until(() => source.status().resources.every((it) => it.state === 'listing' || it.path === null), state)
    if (state === 'waiting') await until(() => source.status().resources.every(({ errors }) => errors > 0), state)
    await source.close()
    await until(() => server.openWatches === 0, 'watches')
    const requests = server.requests.length
    const timers = clock.pendingTimers
    clock.advance(1_000_000)
    await sleep(20)
    t.equal(server.requests.length, requests, `${state}: no request`)
    t.equal(timers, 0, `${state}: no timer`)
  }
})
