// A peerdns tells peers how old its data are; one that has lost sight of its cluster is not asked any more.
import { test } from 'tap'
import { clusterB, ask, startInProcess, until } from '../support/in-process.ts'
import { service } from '../support/objects.ts'
import { below, objectsOfB, policy, quickProbes } from './two-peers.ts'

test('maxAge: a peer whose data are too old counts as down, and is used again when they are young', async (t) => {
  const a = await startInProcess(t, 'cluster: {name: a, source: {manifests: ["{manifests}"]}}\nforward: []\n', {
    objects: service('api.backend', '172.30.1.0')
  })
  let ageMs = 0
  const { parts } = a.server.dataPlane
  a.server.dataPlane.use({ ...parts, own: { ...parts.own, signOfLifeAgeMs: () => ageMs } })
  const b = await startInProcess(
    t,
    clusterB(
      `peers:\n  a: {servers: ["${a.text}"], maxAge: 30s, probe: ${quickProbes}}\n` +
        `policies:\n${policy('p', 'backend.svc.cluster.local', '[a, local]')}forward: []\n`
    ),
    { objects: objectsOfB }
  )
  const health = (): string => b.server.peers.status()[0]!.health
  t.ok(await until(() => health() === 'up'))
  t.equal((await ask(b, below('api'))).text, '172.30.1.0')
  ageMs = 31_000
  t.ok(await until(() => health() === 'down'))
  t.match(b.server.peers.status()[0]!.servers[0]!.reason, /data 31 s old/)
  b.server.cache.flush()
  t.equal((await ask(b, below('api'))).text, '10.1.1.20')
  ageMs = 0
  t.ok(await until(() => health() === 'up', 15_000))
})

test('the age of answers is that of the data of who gave them, too', async (t) => {
  const a = await startInProcess(t, 'cluster: {name: a, source: {manifests: ["{manifests}"]}}\nforward: []\n', {
    objects: service('api.backend', '172.30.1.0')
  })
  const { parts } = a.server.dataPlane
  a.server.dataPlane.use({ ...parts, own: { ...parts.own, signOfLifeAgeMs: () => 7_000 } })
  const b = await startInProcess(
    t,
    clusterB(
      `peers: {a: {servers: ["${a.text}"]}}\npolicies:\n${policy('p', 'backend.svc.cluster.local', '[a]')}forward: []\n`
    )
  )
  const seconds = (): number => b.server.dataPlane.stats.answerAgeSeconds.sum
  await ask(b, below('api'))
  t.ok(seconds() >= 7, 'just asked')
  await ask(b, below('api'))
  t.ok(seconds() >= 14, 'from the cache')
  await ask(b, below('api'))
  t.ok(seconds() >= 21, 'from the cache, ready')
})
