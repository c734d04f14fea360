/**
 * Whole histories: random changes with random faults end in exactly the server's state, and where the official
 * informer can follow, it sees the same events.
 */
import { ADD, DELETE, ERROR, KubeConfig, makeInformer, UPDATE } from '@kubernetes/client-node'
import type { KubernetesListObject, V1Service } from '@kubernetes/client-node'
import * as fc from 'fast-check'
import { test } from 'tap'
import type { Test } from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLog } from '../../../src/base/log.ts'
import type { ObjectEvent } from '../../../src/cluster/object-event.ts'
import { plainAccess } from '../../../src/cluster/sources/kubernetes/api-access.ts'
import { KubernetesSource } from '../../../src/cluster/sources/kubernetes/kubernetes-source.ts'
import { FakeApiServer, sendStatus } from '../../support/fake-api-server.ts'
import { sleep } from '../../support/loop-clock.ts'
import { paths, service, setUp } from './fixture.ts'
import type { Setup } from './fixture.ts'

const name = fc.integer({ min: 0, max: 5 }).map((at) => `svc-${at}`)
const address = fc.integer({ min: 1, max: 3 }).map((at) => `10.0.0.${at}`)
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('put' as const), name, address }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), name }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('remake' as const), name, address }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('end', 'cut', 'cut in a line', 'garbage', 'bookmark') }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('compact', 'freeze', 'thaw', 'stop', 'imports') }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('fail' as const), status: fc.constantFrom(410, 401, 500, 503, 429) })
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('restore' as const), version: fc.integer({ min: 1, max: 100 }), name })
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 20_000 }) }) }
)
type Step = Readonly<{ do: string; name?: string; address?: string; status?: number; version?: number; ms?: number }>

async function take({ server, clock }: Setup, one: Step): Promise<void> {
  const path = paths.services
  const remove = () => server.delete(path, 'shop', one.name!)
  const put = () => server.put(path, service(one.name!, one.address))
  switch (one.do) {
    case 'put': return put()
    case 'delete': return remove()
    case 'remake': remove(); return put()
    case 'end': return server.endWatches()
    case 'cut': return server.cutWatches()
    case 'cut in a line': return server.cutWatches(path, '{"type":"ADDED","obj')
    case 'garbage': return server.sendToWatches(path, '{"type":\n')
    case 'bookmark': return server.sendBookmarks(path)
    case 'compact': return server.compact()
    case 'freeze': return server.freeze()
    case 'thaw': return server.thaw()
    case 'stop':
      await server.stop()
      return server.listen()
    case 'imports': server.mcsVersions = server.mcsVersions.length > 0 ? [] : ['v1beta1']; return
    case 'fail': return server.fail(() => true, (_, response) => sendStatus(response, one.status!, 'Failure'))
    case 'restore':
      server.restore(one.version!, () => server.delete(path, 'shop', one.name!))
      return server.endWatches()
    default:
      clock.advance(one.ms!)
      await sleep(4)
  }
} // prettier-ignore

const runs = process.env['PEERDNS_TEST_RUNS']

test('random histories with random faults end in exactly what the server holds', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 5, maxLength: 40 }),
      fc.integer({ min: 0, max: 99 }),
      async (steps, seed) => {
        const teardowns: (() => Promise<void>)[] = []
        const owner = { teardown: (close: () => Promise<void>) => void teardowns.push(close) } as Test
        let random = seed
        const setup = await setUp(owner, {
          random: () => (random = (random * 61 + 17) % 100) / 100,
          knowsProtobuf: seed % 2 === 0
        })
        try {
          for (const one of steps) await take(setup, one)
          setup.server.thaw()
          setup.server.clearFaults()
          await setup.settled(500)
          const { handlerErrors, drift } = setup.resource('services')
          // Storage that was restored and has overtaken us meanwhile is found only by the audit that a broken watch
          // brings.
          return handlerErrors === 0 && (drift === 0 || steps.some((one) => one.do === 'restore'))
        } finally {
          for (const close of teardowns) await close()
        }
      }
    ),
    // The same ones each time, unless more are asked for.
    { endOnFailure: false, ...(runs === undefined ? { numRuns: 25, seed: 20_261_130 } : { numRuns: Number(runs) }) }
  )
  t.pass('all of them')
})

/** The official informer's events of Services, in our words. */
function officialInformer(server: FakeApiServer) {
  const kubeconfig = new KubeConfig()
  kubeconfig.loadFromClusterAndUser({ name: 'test', server: server.url.origin, skipTLSVerify: true }, { name: 'test' })
  const listServices = async () => {
    const reply = await fetch(new URL(paths.services, server.url))
    if (!reply.ok) throw Object.assign(new Error('list'), { statusCode: reply.status })
    return (await reply.json()) as KubernetesListObject<V1Service>
  }
  const informer = makeInformer<V1Service>(kubeconfig, paths.services, listServices)
  const words: string[] = []
  const wordOf = (verb: string) => (object: V1Service) =>
    void words.push(`${verb} ${object.metadata?.name} ${object.spec?.clusterIP}`)
  informer.on(ADD, wordOf('put'))
  informer.on(UPDATE, wordOf('put'))
  informer.on(DELETE, ({ metadata }) => void words.push(`delete ${metadata?.name}`))
  informer.on(ERROR, () => {})
  return { informer, words }
}

test('the official informer and ours see the same events', async (t) => {
  const server = await FakeApiServer.start()
  for (const name of ['a', 'b', 'c']) server.put(paths.services, service(name))
  const { informer, words: theirs } = officialInformer(server)
  const ours: string[] = []
  const wordOf = (event: ObjectEvent): string => {
    if (event.type === 'put' && event.object.kind === 'Service')
      return `put ${event.object.name} ${event.object.clusterIPs.join()}`
    return event.type === 'delete' ? `delete ${event.name}` : event.type
  }
  const source = new KubernetesSource({
    access: plainAccess(server.url),
    withPods: false,
    clock: systemClock,
    log: silentLog,
    random: Math.random,
    onEvents: (events) => ours.push(...events.map(wordOf)),
    onSynced: () => {}
  })
  t.teardown(async () => {
    await Promise.all([informer.stop(), source.close()])
    await server.stop()
  })
  source.start()
  await informer.start()
  const isWatching = () => server.openWatches >= 4
  const until = async (condition: () => boolean, what: string) => {
    const startedAtMs = performance.now()
    while (!condition()) {
      if (performance.now() - startedAtMs > 60_000)
        throw new Error(`never: ${what}: ${JSON.stringify({ ours, theirs })}`)
      await new Promise((resolve) => void setTimeout(resolve, 5))
    }
  }
  const both = async (count: number, what: string) => {
    await until(() => ours.length >= count && theirs.length >= count, what)
    return [ours.splice(0), theirs.splice(0)] as const
  }
  await until(isWatching, 'watching')
  const [ourList, theirList] = await both(3, 'the list')
  t.same(ourList, theirList)
  t.same(ourList, ['put a 10.0.0.1', 'put b 10.0.0.1', 'put c 10.0.0.1'])

  server.put(paths.services, service('d'))
  server.put(paths.services, service('a', '10.0.0.2'))
  server.delete(paths.services, 'shop', 'b')
  server.put(paths.services, service('b', '10.0.0.3'))
  server.delete(paths.services, 'shop', 'd')
  const [ourChanges, theirChanges] = await both(5, 'changes')
  t.same(ourChanges, theirChanges)
  t.same(ourChanges, ['put d 10.0.0.1', 'put a 10.0.0.2', 'delete b', 'put b 10.0.0.3', 'delete d'])

  server.restore(server.version + 100, () => {
    server.put(paths.services, service('a', '10.0.0.4'))
    server.delete(paths.services, 'shop', 'c')
    server.put(paths.services, service('e'))
  })
  server.sendError(paths.services, 410, 'Expired')
  const [ourRelist, theirRelist] = await both(3, 'the list after a 410')
  t.same([...ourRelist].sort(), [...theirRelist].sort())
  t.same([...ourRelist].sort(), ['delete c', 'put a 10.0.0.4', 'put e 10.0.0.1'])

  await until(isWatching, 'watching again')
  server.put(paths.services, service('f'))
  t.same(...(await both(1, 'a change after that')))
})
