/** The operator's commands against a running server, and after its restart. */
import { test } from 'tap'
import { silentLog } from '../../src/base/log.ts'
import { RunningServer } from '../../src/main.ts'
import { startAdmin } from '../../src/admin/http-server.ts'
import { command } from '../support/command.ts'
import { ask, clusterB, startInProcess, until } from '../support/in-process.ts'
import { loopClock } from '../support/loop-clock.ts'
import { service } from '../support/objects.ts'
import { startTwoClusters } from '../support/two-clusters.ts'

const api = 'api.backend.svc.cluster.local'

test('peers drain and undrain: the next target answers, also after a restart, until the time is over', async (t) => {
  const { b, adminUrl, dns } = await startTwoClusters(t)
  const [address = '', port = ''] = dns.split(':')
  const where = { address, port: Number(port) }
  const env = { PEERDNS_ADMIN: adminUrl, USER: 'alice' }
  t.equal((await ask(where, api)).text, '172.30.1.0')
  // The first probe's success is a change too: it must not come after the drain.
  t.ok(await until(async () => / up /.test((await command('peers list', env)).out)))
  t.match(await command('peers drain cluster-a --for 10m --reason upgrade', env), { code: 0, err: '', out: /^peer cluster-a is drained for (10m0s|9m\d+s), until \S+; kept in the file / }) // prettier-ignore
  t.equal((await ask(where, api)).text, '10.1.1.20', 'at once, though the answer is cached')
  t.match((await command('peers list', env)).out, /cluster-a .* drained for 9m\d+s by alice: upgrade\n/)
  const described = (await command('policies describe backend-from-a', env)).out
  t.match(
    described,
    /order now +local\n[^]*last change [^\n]* drain: peer cluster-a drained for (10m|9m\d+s) by alice: upgrade\n/
  )
  t.match(described, /left out +peer:cluster-a [^\n]* drained for 9m\d+s by alice: upgrade\n/)
  t.match(await command('peers drain nope', env), { code: 1, err: 'peerdns: no peer is called `nope`; there are cluster-a\n' }) // prettier-ignore
  const again = new RunningServer(b.config, loopClock, silentLog)
  t.teardown(() => again.stop({ force: true }))
  await b.stop({ force: true })
  await again.start(false)
  const bound = again.dnsAddresses[0]!
  t.equal((await ask(bound, api)).text, '10.1.1.20', 'after a restart')
  const drains = (server: RunningServer): string[] =>
    server.operator.events.since(0).flatMap(({ kind, atEpochMs, text }) => (kind === 'drain' ? `${atEpochMs} ${text}` : [])) // prettier-ignore
  t.match(drains(b), [/^\d+ peer cluster-a drained for 10m by alice: upgrade$/])
  t.same(drains(again), drains(b), 'with the time that it has')
  t.equal(again.operator.events.since(0)[0]?.kind, 'drain', 'which is before the start')
  const url = `http://127.0.0.1:${again.adminAddress!.port}`
  t.match(await command('peers undrain cluster-a', { PEERDNS_ADMIN: url }), { code: 0, out: /^peer cluster-a is not drained any more; / }) // prettier-ignore
  t.equal((await ask(bound, api)).text, '172.30.1.0')
  t.match(await command('peers undrain cluster-a', { PEERDNS_ADMIN: url }), { code: 1, err: 'peerdns: peer `cluster-a` is not drained\n' }) // prettier-ignore
  t.match(await command('peers drain cluster-a --reason upgrade', { PEERDNS_ADMIN: url }), { code: 0, out: /config-b\.state\n$/ }) // prettier-ignore
  t.match(await command('peers drain cluster-a --for 10m', { PEERDNS_ADMIN: url }), { code: 0, out: /config-b\.state; before, it was drained until it is taken back: upgrade\n$/ }) // prettier-ignore
  const shorter = await command('peers drain cluster-a --for 4s', { PEERDNS_ADMIN: url })
  t.match(shorter, { code: 0, out: /; before, it was drained for (10m0s|9m\d+s)\n$/ })
  t.equal((await ask(bound, api)).text, '10.1.1.20')
  t.ok(await until(async () => (await ask(bound, api)).text === '172.30.1.0'), 'when its time is over')
})

test('policies disable and enable: answered as if the policy were not there', async (t) => {
  const { b, adminUrl, dns } = await startTwoClusters(t)
  const [address = '', port = ''] = dns.split(':')
  const where = { address, port: Number(port) }
  const env = { PEERDNS_ADMIN: adminUrl, USER: 'alice' }
  const answer = async (): Promise<string> => (await ask(where, api)).text
  t.equal(await answer(), '172.30.1.0')
  // The first probe is a change of health too, and must not be the last change.
  t.ok(await until(() => b.peers.status().every(({ health }) => health === 'up')))
  const done = await command('policies disable backend-from-a --for 30m --reason upgrade', env)
  t.match(done, { code: 0, err: '', out: /^policy backend-from-a is disabled for (30m0s|29m\d+s), until [^;]+; kept in the file .*config-b\.state\n$/ }) // prettier-ignore
  t.equal(await answer(), '10.1.1.20', 'our own zone answers')
  t.match((await command('policies list', env)).out, /backend-from-a .* disabled for 29m\d+s by alice: upgrade/)
  const described = await command('policies describe backend-from-a', env)
  t.match(described.out, /order now +disabled for [^\n]*\n[^]*last change +[^\n]* disable: policy backend-from-a disabled for (30m|29m\d+s) by alice: upgrade\n/) // prettier-ignore
  t.match(await command('policies enable backend-from-a', env), { code: 0, out: /^policy backend-from-a is in force again; kept in/ }) // prettier-ignore
  t.equal(await answer(), '172.30.1.0')
  t.match(await command('policies enable backend-from-a', env), { code: 1, err: 'peerdns: policy `backend-from-a` is not disabled\n' }) // prettier-ignore
  t.match(await command('policies disable nope', env), { code: 1, err: 'peerdns: no policy is called `nope`; there are backend-from-a, fixed\n' }) // prettier-ignore
  t.match(await command('policies disable fixed --for 5', env), { code: 2, err: /^peerdns: for: a bare number has no unit/ }) // prettier-ignore
  t.match(await command('policies disable fixed --for 0s', env), { code: 2, err: /out of bounds/ })

  t.match(await command('policies disable --all', env), { code: 0, out: /^all policies are disabled until it is taken back; / }) // prettier-ignore
  t.equal(await answer(), '10.1.1.20')
  t.equal((await ask(where, 'fixed.example')).rcode, 'REFUSED')
  t.match(await command('policies enable nope', env), { code: 1, err: /no policy is called `nope`/ })
  t.match(await command('policies enable fixed', env), { code: 0, out: /^policy fixed is in force again; / })
  t.equal((await ask(where, 'fixed.example')).text, '10.9.0.7', 'one alone')
  t.equal(await answer(), '10.1.1.20', 'and only that one')
  t.match(
    (await command('policies list', env)).out,
    /backend-from-a .* disabled by alice [^]*fixed +\S+ +addresses:10\.9\.0\.7 /
  )
  t.match(await command('policies enable fixed', env), { code: 1, err: 'peerdns: policy `fixed` is not disabled\n' })
  t.equal((await command('policies disable --all', env)).code, 0)
  t.equal((await ask(where, 'fixed.example')).rcode, 'REFUSED', 'all of them again')
  t.equal((await command('policies enable --all', env)).code, 0)
  t.match(await command('policies enable --all', env), { code: 1, err: 'peerdns: no policy is disabled\n' })
  t.equal(await answer(), '172.30.1.0')
  t.equal(b.operator.holding.allPolicies, null)
})

test('policies simulate: order, shares and answers if a peer were down, and nothing changes', async (t) => {
  const { adminUrl, dns } = await startTwoClusters(t)
  const [address = '', port = ''] = dns.split(':')
  const where = { address, port: Number(port) }
  const env = { PEERDNS_ADMIN: adminUrl }
  t.match(await command('policies simulate backend-from-a --down cluster-a', env), { code: 0, out: /^policy +backend-from-a\ndown +cluster-a\nclient +127\.0\.0\.0\nregion +region-b\norder now +peer:cluster-a, local\norder then +local \(left out: peer:cluster-a\)\nfirst now +peer:cluster-a 100%\nfirst then +local 100%\n\nno name of its targets is cached/ }) // prettier-ignore
  await ask(where, api)
  await ask(where, 'web.backend.svc.cluster.local')
  const { out } = await command('policies simulate backend-from-a --down cluster-a', env)
  t.match(out, /\napi\.backend\S+ +A +A 172\.30\.1\.0 from peer:cluster-a +A 10\.1\.1\.20 from local\n/)
  t.match(out, /\nweb\.backend\S+ +A +A 172\.30\.2\.0 from peer:cluster-a +A 172\.30\.2\.0 from peer:cluster-a \(its last answer, going stale\)\n/) // prettier-ignore
  t.equal((await ask(where, api)).text, '172.30.1.0', 'clients notice nothing')
  t.match(await command(`policies simulate backend-from-a --down cluster-a --name own.default.svc.cluster.local ${api} -o json`, env), { code: 0, out: /"ifDown": "A 10\.1\.1\.20 from local"/ }) // prettier-ignore
  t.match(await command('policies simulate fixed --down cluster-a', env), { code: 0, out: /order then +addresses:10\.9\.0\.7\n/ }) // prettier-ignore
  t.match(out, /\nExamples: names that are cached of its targets\.\nNAME +TYPE +NOW +THEN\n/)
  const present = await command('policies simulate backend-from-a', env)
  t.match(present, { code: 0, out: /^policy +backend-from-a\nclient +127\.0\.0\.0\nregion +region-b\norder now +peer:cluster-a, local\nfirst now +peer:cluster-a 100%\n\nExamples: [^\n]*\nNAME +TYPE +NOW\n[^]*api\.backend\S+ +A +A 172\.30\.1\.0 from peer:cluster-a\n/ }) // prettier-ignore
  const asked = await command(`policies simulate backend-from-a --name ${api}`, env)
  t.match(asked, { code: 0, out: /100%\n\nNAME +TYPE +NOW\n/ }, 'names that were asked for are no examples')
  t.match(await command('policies simulate nope', env), { code: 1, err: /no policy is called `nope`/ })
  t.match(await command('policies simulate nope --down nobody --name ..', env), { code: 1, err: /no policy is called `nope`/ }) // prettier-ignore
  t.match(await command('policies simulate backend-from-a --down nope', env), { code: 1, err: /no peer is called `nope`/ }) // prettier-ignore
  t.match(await command('policies simulate nope --down cluster-a', env), { code: 1, err: /no policy is called `nope`/ })
  await command('policies disable backend-from-a', env)
  t.match((await command('policies simulate backend-from-a --down cluster-a', env)).out, /10\.1\.1\.20 from local/, 'also while it is disabled') // prettier-ignore
})

test('policies list, describe and simulate: addresses that are down, reserves, and nobody', async (t) => {
  const fixed = '{addresses: [10.9.0.7, 10.9.0.8], probe: "tcp:80", weight: 70}'
  const { server } = await startInProcess(
    t,
    clusterB(
      `forward: []
policies:
  - {name: next, dnsName: next.example, select: weighted, targets: [${fixed}, {addresses: [10.9.0.9], weight: 30}]}
  - {name: open, dnsName: open.example, allDown: open, targets: [${fixed}, {addresses: [10.9.0.9]}]}
  - {name: alone, dnsName: alone.example, targets: [${fixed}]}
  - {name: reserve, dnsName: reserve.example, select: weighted, targets: [{addresses: [10.9.0.9], weight: 1}, {addresses: [10.9.0.10], weight: 0}]}
  - {name: backed, dnsName: backed.example, select: weighted, targets: [${fixed}, {addresses: [10.9.0.9], weight: 0}]}
  - {name: peered, dnsName: backend.svc.cluster.local, targets: [a]}
  - {name: ours, dnsName: shop.svc.cluster.local, targets: [local, a]}
peers: {a: {servers: ["127.0.0.1:1"]}}`,
      ', probes: on'
    ),
    { objects: service('api.backend', '10.1.1.20') }
  )
  const admin = await startAdmin({ observe: null, admin: { address: '127.0.0.1', port: 0 }, inspect: { ...server.inspect, endpoints: () => ({ ...server.inspect.endpoints(), servicesDown: ['cart.shop', 'cart.shop', 'api.backend'] }) }, clock: loopClock, log: silentLog }) // prettier-ignore
  t.teardown(() => admin.close())
  const run = async (line: string): Promise<string> =>
    (await command(`policies ${line} --admin 127.0.0.1:${admin.adminAddress!.port}`)).out
  const { parts } = server.dataPlane
  const use = (down: readonly string[]): void =>
    server.dataPlane.use({
      ...parts,
      isDownEndpoint: (address) => down.includes(address),
      standings: { ...parts.standings, of: ({ peer }) => (peer === 'a' ? 'drained' : 'up') }
    })
  const both = 'addresses:10.9.0.7,10.9.0.8'
  use(['10.9.0.8'])
  t.match(await run('describe next'), new RegExp(`\\n1 +${both} .* tcp:80: 1 of 2 down: 10\\.9\\.0\\.8\\n`))
  use(['10.9.0.7', '10.9.0.8'])
  server.operator.events.add({
    kind: 'health',
    endpoint: { address: '10.9.0.8', check: 'tcp:80', of: 'next,open,alone' },
    text: '10.9.0.8 (tcp:80) up -> down: timeout'
  })
  const described = await run('describe next')
  t.match(described, /\norder now +addresses:10\.9\.0\.9\n/)
  t.match(described, new RegExp(`\\nleft out +${both} +${both.slice(10)} +down .* tcp:80: down, all 2\\n`))
  t.match(described, /\nlast change +\S+ health: 10\.9\.0\.8 \(tcp:80\) up -> down: timeout\n/)
  const simulated = await run('simulate next --name x.next.example')
  t.match(simulated, /order now +addresses:10\.9\.0\.9 \(left out: addresses:10\.9\.0\.7,10\.9\.0\.8\)\nfirst now +addresses:10\.9\.0\.9 100%\n/) // prettier-ignore
  t.match(simulated, /A 10\.9\.0\.9/)
  const list = await run('list')
  t.match(list, new RegExp(`\\nopen +open\\.example\\. +${both},addresses:10\\.9\\.0\\.9 `), 'its answer is final')
  t.match(list, new RegExp(`\\nalone +alone\\.example\\. +${both} `), 'nobody has better')
  t.match(list, new RegExp(`\\nbacked +backed\\.example\\. +${both},addresses:10\\.9\\.0\\.9 \\(reserve\\) `))
  t.match(await run('simulate backed'), new RegExp(`\\norder now +${both}, addresses:10\\.9\\.0\\.9 \\(reserve\\)\\n`))
  t.match(await run('simulate reserve'), /\norder now +addresses:10\.9\.0\.9, addresses:10\.9\.0\.10 \(reserve\)\n/)
  t.match(await run('simulate backed --name x.backed.example'), / A 10\.9\.0\.7, A 10\.9\.0\.8 from /, 'so it answers')
  t.match(list, /\nreserve +\S+ +addresses:10\.9\.0\.9,addresses:10\.9\.0\.10 \(reserve\) /)
  t.match(list, /\npeered +\S+ +nobody +first /)
  t.match(await run('describe ours'), /\n1 +local .* 2 addresses of Services down: cart\.shop\n/)
  const { out } = await command(`events --admin 127.0.0.1:${admin.adminAddress!.port}`)
  t.match(out, / health +next,open,alone +10\.9\.0\.8 \(tcp:80\) up -> down: timeout\n/)
})

test('policies simulate: for a client or a region', async (t) => {
  const { server } = await startInProcess(
    t,
    `cluster: {name: b, region: us-west, source: {manifests: ["{manifests}"]}}
forward: []
regions: {192.0.2.0/24: eu-west}
policies:
  - name: near
    dnsName: backend.svc.cluster.local
    select: geo
    targets: [local, {addresses: [10.9.0.7], region: eu-west}, {addresses: [10.9.0.8], region: us-central}]
  - {name: some, dnsName: shop.svc.cluster.local, targets: [local], clients: [10.8.0.0/14]}
peers: {a: {servers: ["127.0.0.1:1"]}}`,
    { objects: service('api.backend', '10.1.1.20') }
  )
  const admin = await startAdmin({ observe: null, admin: { address: '127.0.0.1', port: 0 }, inspect: server.inspect, clock: loopClock, log: silentLog }) // prettier-ignore
  t.teardown(() => admin.close())
  const simulate = async (line: string) =>
    command(`policies simulate ${line} --down a --admin 127.0.0.1:${admin.adminAddress!.port}`)
  const rows: [string, RegExp][] = [
    [`near --name ${api}`, /client +127\.0\.0\.1\nregion +us-west\norder now +local, .*first now +local 100%.* A 10\.1\.1\.20 from local/s],
    [`near --name ${api} --client 192.0.2.9`, /client +192\.0\.2\.9\nregion +eu-west\norder now +addresses:10\.9\.0\.7, local, .*first now +addresses:10\.9\.0\.7 100%.* A 10\.9\.0\.7/s],
    [`near --name ${api} --region us-central`, /client +any in this region\nregion +us-central\norder now +addresses:10\.9\.0\.8, local, .*first now +addresses:10\.9\.0\.8 100%.* A 10\.9\.0\.8/s],
    [`near --name ${api} --client 192.0.2.9 --region us-west -o json`, /"client": \{\s+"address": "192\.0\.2\.9",\s+"region": "us-west"/],
    ['some', /client +10\.8\.0\.0\n/]
  ] // prettier-ignore
  for (const [line, out] of rows) t.match(await simulate(line), { code: 0, out }, line)
  t.match(await simulate('near --region eu'), { code: 1, err: /no region is called `eu`; there are us-west, eu-west, us-central/ }) // prettier-ignore
  t.match(await simulate('near --client nobody'), { code: 2, err: /client/ })
  t.match(await simulate('some --client 192.0.2.9'), { code: 2, err: /policy `some` is not for 192\.0\.2\.9/ })
})

test('policies simulate: with nobody left, stale answers and then SERVFAIL', async (t) => {
  const a = await startInProcess(t, clusterB(''), { objects: service('api.backend', '10.1.1.20') })
  const { server, ...where } = await startInProcess(
    t,
    clusterB(`forward: []
peers: {a: {servers: ["${a.text}"]}}
policies: [{name: p, dnsName: backend.svc.cluster.local, targets: [a]}]`)
  )
  const admin = await startAdmin({ observe: null, admin: { address: '127.0.0.1', port: 0 }, inspect: server.inspect, clock: loopClock, log: silentLog }) // prettier-ignore
  t.teardown(() => admin.close())
  t.equal((await ask(where, api)).text, '10.1.1.20')
  const { out } = await command(`policies simulate p --down a --admin 127.0.0.1:${admin.adminAddress!.port}`)
  t.match(
    out,
    /order then +nobody: stale answers for up to 1h0m, then SERVFAIL\n[^]*first then +nobody\n[^]*stale, then SERVFAIL\n/
  )
})

test('events: what happened, since when, and as JSON', async (t) => {
  const { adminUrl } = await startTwoClusters(t)
  const env = { PEERDNS_ADMIN: adminUrl }
  await command('policies disable fixed', env)
  const { code, out } = await command('events --since 1h', env)
  t.equal(code, 0)
  t.match(out, /^TIME +KIND +ABOUT +WHAT\n[^]*\d{4}-\d\d-\d\dT\S+Z +start +- +version [^\n]*\n[^]*disable +fixed +policy fixed disabled until it is taken back\n/) // prettier-ignore
  const { events } = JSON.parse((await command('events -o json', env)).out) as { events: { kind: string }[] }
  t.ok(events.some(({ kind }) => kind === 'start'))
  t.match(await command('events --since yesterday', env), { code: 2, err: /^peerdns: since: `yesterday` is not a dur/ })
  t.match(await command('events --since 1ms', env), { code: 0, out: /^(no events in the last 1ms\n|TIME)/ })
})

test('events: reloads with what they changed, refused ones with why; what is not bound is said each time', async (t) => {
  const config = (rest: string): string => clusterB(`forward: []\n${rest}`)
  const { server, writeConfig } = await startInProcess(t, config(''), { watchConfig: true })
  const texts = (): string[] => server.operator.events.since(0).map(({ kind, text }) => `${kind}: ${text}`)
  writeConfig(config('policies: [{name: p, dnsName: x.example, targets: [{addresses: [10.9.0.7]}]}]'))
  t.ok(await until(() => texts().includes('reload: policy p added')))
  writeConfig(config('policies: 5'))
  t.ok(await until(() => texts().some((text) => text.startsWith('reload-refused: '))))
  const warnings = (): number => texts().filter((text) => text.includes('take effect with the next start only')).length
  writeConfig(config('observe: "127.0.0.1:1"'))
  t.ok(await until(() => warnings() === 1))
  t.ok(texts().includes('reload: policy p removed'))
  writeConfig(config('observe: "127.0.0.1:1"\nlameDuck: 1s'))
  t.ok(await until(() => warnings() === 2), 'the file before is not what is bound')
  const taken = server.reloads.taken
  writeConfig(config('lameDuck: 2s'))
  t.ok(await until(() => server.reloads.taken === taken + 1))
  t.equal(warnings(), 2, 'back at what is bound')
})

test('health: alive, ready, and neither', async (t) => {
  const { b, adminUrl, observeUrl } = await startTwoClusters(t)
  t.match(await command('health', { PEERDNS_ADMIN: adminUrl }), { code: 0, out: 'ok\n', err: '' })
  t.match(await command(`health --url ${observeUrl}`), { code: 0, out: 'ok\n' })
  t.match(await command(`health --ready --url ${observeUrl}`), { code: 0, out: 'ready\n' })
  t.match(await command(`health --ready --admin ${adminUrl}`, { PEERDNS_ADMIN: 'http://127.0.0.1:1' }), { code: 0, out: 'ready\n' }) // prettier-ignore
  t.match(await command(`health --admin ${adminUrl} --url ${observeUrl}`), { code: 2, err: /not both/ })
  t.match(await command(`health --url ${adminUrl}/nothing`), { code: 1, err: /^peerdns: \/healthz says 404: / })
  await b.stop({ force: true })
  t.match(await command(`health --url ${observeUrl}`), { code: 1, err: /^peerdns: no answer from http:/ })
})
