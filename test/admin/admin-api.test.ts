/** Health, metrics and the status API of a real server, over HTTP. */
import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import { test } from 'tap'
import type { CacheJson, FlushJson, PeersJson, PoliciesJson, PolicyJson, RecordsJson, StatusJson, TraceJson, ZonesJson } from '../../src/admin/api-types.ts' // prettier-ignore
import { healthRoutes } from '../../src/admin/health.ts'
import { startAdmin } from '../../src/admin/http-server.ts'
import { silentLog } from '../../src/base/log.ts'
import { askOnce } from '../../src/peer/one-shot.ts'
import { parseType } from '../../src/wire/iana.ts'
import { decodeMessage } from '../../src/wire/message.ts'
import { parseName } from '../../src/wire/name.ts'
import { serialStepMs } from '../../src/zone/serial.ts'
import { startTwoClusters } from '../support/two-clusters.ts'
import { parseExposition } from './strict-exposition.ts'
import { loopClock, sleep } from '../support/loop-clock.ts'

const api = 'api.backend.svc.cluster.local'

/** Asks over DNS and gives the RCODE. */
async function ask(dns: string, name: string, type = 'A'): Promise<number> {
  const [host, port] = dns.split(':')
  const answer = await askOnce({
    server: { host: host!, port: Number(port) },
    question: { name: parseName(name), type: parseType(type)!, dnssecOk: false, checkingDisabled: false, options: [] },
    recursion: true,
    withEdns: true,
    transport: 'auto',
    timeoutMs: 5_000,
    clock: loopClock
  })
  if (answer.kind === 'failed') throw new Error(answer.detail)
  return decodeMessage(answer.octets).rcode
}

async function json<Answer>(url: string, request: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, request)
  if (response.status !== 200) throw new Error(`${url}: ${response.status} ${await response.text()}`)
  return (await response.json()) as Answer
}

const post = (body: unknown): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body)
})

test('the two listeners, and health', async (t) => {
  const { b, adminUrl, observeUrl } = await startTwoClusters(t)
  const rows: { path: string; observe: number; admin: number }[] = [
    { path: '/healthz', observe: 200, admin: 200 },
    { path: '/readyz', observe: 200, admin: 200 },
    { path: '/metrics', observe: 200, admin: 200 },
    { path: '/api/v1/status', observe: 404, admin: 200 },
    { path: '/api/v1/config', observe: 404, admin: 200 },
    { path: '/api/v1/cache/flush', observe: 404, admin: 405 },
    { path: '/', observe: 404, admin: 404 }
  ]
  for (const { path, observe, admin } of rows) {
    t.equal((await fetch(observeUrl + path)).status, observe, `observe ${path}`)
    t.equal((await fetch(adminUrl + path)).status, admin, `admin ${path}`)
  }
  for (const [base, want] of [
    [observeUrl, 200],
    [adminUrl, 403]
  ] as const) {
    const status = new Promise<number | undefined>((done) => {
      const headers = { host: 'rebound.example' }
      get(`${base}/healthz`, { headers }, (response) => done(response.resume().statusCode))
    })
    t.equal(await status, want, `a name of another: ${want}`)
  }
  const text = async (path: string): Promise<string> => (await fetch(observeUrl + path)).text()
  t.equal(await text('/readyz'), 'ready\n')
  t.match(await text('/readyz?verbose'), /^\[\+\] sockets: [^\n]+\n\[\+\] zone: cluster\.local\.[^\n]*\n[^]*ready\n$/)
  const conditions = [
    { name: 'sockets', isMet: true, detail: '' },
    { name: 'serving', isMet: false, detail: 'the server is being stopped' }
  ]
  const routes = healthRoutes({ ...b.inspect, readiness: () => ({ isReady: false, conditions }) })
  const reply = async (path: string, query = ''): Promise<unknown> =>
    routes
      .find((route) => route.path === path)!
      .handler({ params: {}, query: new URLSearchParams(query), body: null, clientAddress: '127.0.0.1' })
  t.match(await reply('/readyz'), { status: 503, body: 'not ready: serving\n' })
  t.match(await reply('/readyz', 'verbose'), {
    status: 503,
    body: '[+] sockets\n[-] serving: the server is being stopped\nnot ready: serving\n'
  })
  t.match(await reply('/healthz'), { status: 200 }, 'alive all the same')
})

test('startAdmin opens both listeners or none', async (t) => {
  const { a, b } = await startTwoClusters(t)
  const free = { address: '127.0.0.1', port: 0 }
  const parts = { inspect: b.inspect, clock: loopClock, log: silentLog }
  const openServers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPServerWrap').length
  const before = openServers()
  await t.rejects(startAdmin({ observe: free, admin: a.adminAddress, ...parts }), { code: 'EADDRINUSE' })
  // A handle is gone a turn after its close.
  for (let turns = 0; turns < 5_000 && openServers() > before; turns++) await sleep(1)
  t.equal(openServers(), before, 'the first one is closed again')
  const off = await startAdmin({ observe: null, admin: null, ...parts })
  t.match(off, { observeAddress: null, adminAddress: null })
  await off.close()
})

/** A metric's type and labels as one text. */
const formOf = (type: string, labels: string[]): string => `${type} {${labels.toSorted().join()}}`

/** The tables of docs/metrics.md: metric to type and labels. */
function documentedMetrics(text: string): Map<string, string> {
  const rows = text.matchAll(/^\| `(peerdns_\w+)` +\| (\w+) +\| ([^|]*)\| ([^|]*)\|$/gm)
  const wordsOf = (labels: string): string[] => Array.from(labels.matchAll(/`(\w+)`/g), ([, label]) => label!)
  return new Map(Array.from(rows, ([, name, type, labels]) => [name!, formOf(type!, wordsOf(labels!))]))
}

/**
 * Without an API server there are no resources and no Leases of source clusters, without a copy of a peer's zone nobody
 * tells of changes; test/e2e looks at these. And every policy here is enforced.
 */
const hasNoSample = /^peerdns_(watch_|mirror_|source_cluster_|policy_unenforced_|stale)/

test('/metrics is what docs/metrics.md says, and a strict reader takes it', async (t) => {
  const { observeUrl, dns, adminUrl } = await startTwoClusters(t)
  for (const name of [
    api,
    api,
    'nope.default.svc.cluster.local',
    'own.default.svc.cluster.local',
    'any.fixed.example'
  ]) {
    await ask(dns, name)
  }
  await fetch(`${adminUrl}/nowhere`)
  const response = await fetch(`${observeUrl}/metrics`)
  t.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  const metrics = parseExposition(await response.text())
  const document = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8')
  const documented = documentedMetrics(document)
  const scraped = new Map(
    Array.from(metrics, ([name, { type, samples }]) => {
      const labels = Object.keys(samples[0]?.labels ?? {}).filter((label) => label !== 'le')
      return [name, formOf(type, labels)]
    })
  )
  t.ok(documented.size > 40)
  for (const [name, form] of documented) {
    const expected = hasNoSample.test(name)
      ? form.replace(
          /\{(resource|source_cluster|policy,result|peer,policy|peer,zone|kind,peer,zone|peer,why,zone)\}/,
          '{}'
        )
      : form
    t.equal(scraped.get(name), expected, `${name} is scraped as documented`)
  }
  for (const name of scraped.keys()) t.ok(documented.has(name), `${name} is documented`)
  const events = metrics.get('peerdns_listener_events_total')!.samples.map(({ labels }) => labels['event']!)
  for (const event of new Set(events)) t.match(document, `\`${event}\``, `event ${event} is documented`)
  for (const [name, { samples }] of metrics) {
    if (!hasNoSample.test(name)) t.not(samples.length, 0, `${name} has a sample`)
    for (const { labels } of samples) t.notMatch(JSON.stringify(labels), /nope|own\.default/, 'no label holds a qname')
  }
  const value = (name: string, wanted: Record<string, string> = {}): number | undefined =>
    metrics.get(name)?.samples.find(({ labels }) => Object.entries(wanted).every(([key, it]) => labels[key] === it))
      ?.value
  t.equal(value('peerdns_queries_total', { transport: 'udp' }), 5)
  t.equal(value('peerdns_responses_total', { rcode: 'NXDOMAIN' }), 1)
  t.equal(value('peerdns_answers_total', { source: 'zone' }), 2)
  t.equal(value('peerdns_policy_answers_total', { policy: 'backend-from-a', target: 'peer:cluster-a' }), 2)
  t.equal(value('peerdns_answers_total', { source: 'cache' }), 1)
  t.equal(value('peerdns_query_misses_total'), 1)
  t.equal(value('peerdns_ready'), 1)
  t.equal(value('peerdns_http_failures_total', { listener: 'admin', reason: 'refused' }), 1)
  t.ok(value('peerdns_process_resident_memory_bytes')! > 1e6)
  t.ok(value('peerdns_source_problems')! >= 1)
})

test('/api/v1 tells what the server knows', async (t) => {
  const { a, b, adminUrl, dns } = await startTwoClusters(t)
  const url = `${adminUrl}/api/v1`
  await ask(dns, api)

  const status = await json<StatusJson>(`${url}/status`)
  t.match(status, {
    cluster: 'cluster-b',
    region: 'region-b',
    zone: 'cluster.local.',
    isReady: true,
    dnsAddresses: [dns],
    config: { reloadsTaken: 0, problems: [] },
    source: { kind: 'manifests', hasSynced: true, objects: { Service: 2 } },
    queries: { udp: 1, misses: 1, byRcode: { NOERROR: 1 }, bySource: { peer: 1 } },
    cache: { limitOctets: 64 * 1024 * 1024 },
    policies: 2
  })
  t.match(JSON.stringify(status.source.problems), /b\.yaml:\d+:\d+"[^}]*not-an-address/, 'what was left out is told')
  t.equal(status.startedAt, new Date(b.startedAtEpochMs).toISOString())

  const { zones } = await json<ZonesJson>(`${url}/zones`)
  t.same(zones.map(({ zone }) => zone), ['cluster.local.', 'clusterset.local.', '10.in-addr.arpa.']) // prettier-ignore

  const { peers } = await json<PeersJson>(`${url}/peers`)
  t.match(peers, [{ name: 'cluster-a', region: 'region-a', policies: ['backend-from-a'], servers: [{ server: `127.0.0.1:${a.dnsAddresses[0]!.port}` }] }]) // prettier-ignore

  const { policies } = await json<PoliciesJson>(`${url}/policies`)
  t.same(policies.map(({ name }) => name), ['backend-from-a', 'fixed']) // prettier-ignore
  const policy = await json<PolicyJson>(`${url}/policies/backend-from-a`)
  t.equal(policy.name, 'backend-from-a')
  t.match(policy, {
    dnsNames: ['backend.svc.cluster.local.'],
    clients: ['127.0.0.0/8', '10.8.0.0/14'],
    select: 'first',
    nextOn: ['unreachable', 'absent', 'empty'],
    maxTtlSeconds: null,
    maxNegativeTtlSeconds: 5,
    transit: false,
    effectiveOrder: ['peer:cluster-a', 'local'],
    isAllDown: false,
    answers: 1,
    madeHereAnswers: 0,
    targets: [
      {
        id: 'peer:cluster-a',
        kind: 'peer',
        place: 1,
        region: 'region-a',
        zone: 'cluster.local.',
        answers: 1,
        answerShare: 1
      },
      {
        id: 'local',
        kind: 'local',
        place: 2,
        region: 'region-b',
        health: 'up',
        servers: [],
        answers: 0,
        answerShare: 0
      }
    ]
  })
  t.match(policies[1], { maxTtlSeconds: 7, clients: null, targets: [{ addresses: ['10.9.0.7'], answerShare: null }] })

  const config = await json<object>(`${url}/config`)
  t.match(config, {
    cluster: { name: 'cluster-b', zone: 'cluster.local.', reverse: ['10.0.0.0/8'] },
    listen: ['127.0.0.1:0'],
    peers: [{ probe: { type: 'SOA', name: null } }],
    policies: [{ nextOn: ['unreachable', 'absent', 'empty'], clients: ['127.0.0.0/8', '10.8.0.0/14'] }, {}]
  })
  t.notMatch(JSON.stringify(config), /position|\\u0000/, 'no place in the file, no name in wire form')
})

test('/api/v1/records lists, filters and pages', async (t) => {
  const { adminUrl } = await startTwoClusters(t)
  const list = (query: string): Promise<RecordsJson> => json(`${adminUrl}/api/v1/records${query}`)
  // The serial, and the SOA with it, follows what was read last by a batch.
  await sleep(4 * serialStepMs)
  const all = await list('')
  t.equal(all.zone, 'cluster.local.')
  t.match(all.records[0], { name: 'cluster.local.', type: 'SOA', ttlSeconds: 5 })
  const filters: { filter: string; want: string[] }[] = [
    { filter: 'filter=name=OWN.default.svc.cluster.local&filter=type=A', want: ['own.default.svc.cluster.local. A 10.1.1.40'] },
    { filter: 'filter=suffix=own.default.svc.cluster.local&filter=type=SRV', want: ['_http._tcp.own.default.svc.cluster.local. SRV 0 100 8080 own.default.svc.cluster.local.', 'own.default.svc.cluster.local. SRV 0 100 8080 own.default.svc.cluster.local.'] },
    { filter: 'filter=name=nope.default.svc.cluster.local', want: [] },
    { filter: 'zone=10.in-addr.arpa&filter=type=PTR', want: ['20.1.1.10.in-addr.arpa. PTR api.backend.svc.cluster.local.', '40.1.1.10.in-addr.arpa. PTR own.default.svc.cluster.local.'] }
  ] // prettier-ignore
  for (const { filter, want } of filters) {
    const { records } = await list(`?${filter}`)
    t.same(records.map(({ name, type, data }) => `${name} ${type} ${data}`).sort(), want, filter) // prettier-ignore
  }
  const pages = async (): Promise<RecordsJson['records'][number][]> => {
    const paged = []
    for (let offset = 0, isComplete = false; !isComplete; offset += 3) {
      const page = await list(`?limit=3&offset=${offset}`)
      t.ok(page.records.length <= 3)
      paged.push(...page.records)
      isComplete = page.isComplete
    }
    return paged
  }
  let [whole, paged] = [all.records, await pages()]
  // What the zone was made of at the start gets its serial up to 50 ms later, once.
  if (paged[0]?.data !== whole[0]?.data) [whole, paged] = [(await list('')).records, await pages()]
  t.same(paged, whole, 'pages make the whole')
})

test('/api/v1/cache and trace', async (t) => {
  const { a, adminUrl, dns } = await startTwoClusters(t)
  const url = `${adminUrl}/api/v1`
  const server = `127.0.0.1:${a.dnsAddresses[0]!.port}`
  const trace = (query: string): Promise<TraceJson> => json(`${url}/trace?${query}`)
  const first = await trace(`name=${api}`)
  t.match(first, {
    cluster: 'cluster-b',
    name: `${api}.`,
    type: 'A',
    client: '127.0.0.1',
    rcode: 'NOERROR',
    policy: 'backend-from-a',
    source: { from: 'peer', target: 'peer:cluster-a', server, ageMs: 0, staleForMs: 0 },
    answer: [{ name: `${api}.`, type: 'A', ttlSeconds: 5, data: '172.30.1.0' }],
    extendedErrors: []
  })
  const asked = first.steps.find(({ step }) => step === 'peer')
  t.match(asked, { cluster: 'cluster-a', server, tookMs: Number }, 'the hop to the peer')
  t.ok(first.steps.every(({ cluster }) => /^cluster-[ab]$/.test(cluster)))
  t.match(await trace(`name=${api}`), { source: { from: 'cache', target: 'peer:cluster-a', server } })
  t.match(await trace(`name=${api}&client=10.99.0.1`), { policy: null, source: { from: 'zone', zone: 'cluster.local.' }, answer: [{ data: '10.1.1.20' }], isAuthoritative: true }) // prettier-ignore
  t.match(await trace(`name=${api}&rd=0`), { policy: null, source: { from: 'zone' } }, 'RD=0: no transit')
  t.match(await trace('name=x.fixed.example'), { policy: 'fixed', source: { from: 'policy', ageMs: null }, answer: [{ data: '10.9.0.7', ttlSeconds: 7 }] }) // prettier-ignore
  t.match(await trace('name=nope.default.svc.cluster.local&type=AAAA'), { rcode: 'NXDOMAIN', answer: [], authority: [{ type: 'SOA' }] }) // prettier-ignore

  await ask(dns, 'web.backend.svc.cluster.local')
  const cached = (query = ''): Promise<CacheJson> => json(`${url}/cache${query}`)
  const { entries } = await cached(`?name=${api}`)
  t.match(entries, [{ name: `${api}.`, type: 'A', target: 'peer:cluster-a', server, kind: 'positive', rcode: 'NOERROR', staleForMs: 0, records: [{ data: '172.30.1.0' }] }]) // prettier-ignore
  t.ok(entries[0]!.ageMs >= 0 && entries[0]!.ttlSeconds <= 5 && entries[0]!.sizeOctets > 0)
  t.same((await cached('?suffix=web.backend.svc.cluster.local')).entries.map(({ name }) => name), ['web.backend.svc.cluster.local.']) // prettier-ignore
  t.match(await cached('?limit=1'), { entries: { length: 1 }, isComplete: false })
  t.match(await cached('?suffix=elsewhere.example'), { entries: [], isComplete: true })

  const flush = (body: unknown): Promise<FlushJson> => json(`${url}/cache/flush`, post(body))
  t.same(await flush({ name: api }), { flushedEntries: 1 })
  t.same((await cached(`?name=${api}`)).entries, [])
  t.same(await flush({ suffix: 'svc.cluster.local' }), { flushedEntries: 1 })
  t.same(await flush({ all: true }), { flushedEntries: 0 })
})

test('/api/v1 refuses what it does not understand', async (t) => {
  const { adminUrl } = await startTwoClusters(t)
  const rows: { name: string; path: string; request?: RequestInit; status: number; error: RegExp }[] = [
    { name: 'unknown policy', path: '/policies/nope', status: 404, error: /no policy is called `nope`/ },
    { name: 'unknown zone', path: '/records?zone=example.org', status: 404, error: /no zone is called `example\.org\.`; there are cluster\.local\./ },
    { name: 'unknown parameter', path: '/records?name=x', status: 400, error: /unknown parameter `name`; known here: zone, peer, filter, offset, limit/ },
    { name: 'unknown filter', path: '/records?filter=data=1', status: 400, error: /none of name=NAME/ },
    { name: 'bad name in a filter', path: '/records?filter=name=a..b', status: 400, error: /filter name: `a\.\.b`/ },
    { name: 'bad type in a filter', path: '/records?filter=type=X', status: 400, error: /`X` is not a record type/ },
    { name: 'limit 0', path: '/cache?limit=0', status: 400, error: /limit: `0` is not a number from 1 to/ },
    { name: 'limit without bounds', path: '/records?limit=9999999', status: 400, error: /limit/ },
    { name: 'bad offset', path: '/records?offset=-1', status: 400, error: /offset/ },
    { name: 'name and suffix', path: '/cache?name=a&suffix=b', status: 400, error: /not both/ },
    { name: 'trace without a name', path: '/trace', status: 400, error: /name is missing/ },
    { name: 'trace of a bad name', path: `/trace?name=${'a'.repeat(64)}`, status: 400, error: /not a domain name/ },
    { name: 'trace of a bad type', path: '/trace?name=a&type=NOPE', status: 400, error: /`NOPE` is not a record type/ },
    { name: 'trace of a transfer', path: '/trace?name=a&type=AXFR', status: 400, error: /cannot be traced/ },
    { name: 'trace for no client', path: '/trace?name=a&client=10.1', status: 400, error: /`10\.1` is not an IP address/ },
    { name: 'trace with a bad rd', path: '/trace?name=a&rd=maybe', status: 400, error: /neither 1 nor 0/ },
    { name: 'flush without a body', path: '/cache/flush', request: post(null), status: 400, error: /must be one of/ },
    { name: 'flush of two things', path: '/cache/flush', request: post({ name: 'a', all: true }), status: 400, error: /must be one of/ },
    { name: 'flush all: false', path: '/cache/flush', request: post({ all: false }), status: 400, error: /must be one of/ },
    { name: 'flush of a list', path: '/cache/flush', request: post(['a']), status: 400, error: /must be one of/ },
    { name: 'flush of a bad name', path: '/cache/flush', request: post({ name: 'a b' }), status: 400, error: /not a domain name/ }
  ] // prettier-ignore
  for (const { name, path, request = {}, status, error } of rows) {
    const response = await fetch(`${adminUrl}/api/v1${path}`, request)
    t.equal(response.status, status, `${name}: status`)
    t.match(((await response.json()) as { error: string }).error, error, name)
  }
})
