/** Each command line with its exit code and words, against two real servers in this process. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import { elapsed, printable, table } from '../../src/cli/table.ts'
import { command, type Result } from '../support/command.ts'
import { freePort } from '../support/free-port.ts'
import { startStubPeer, type StubFault, type StubRecord } from '../support/stub-peer.ts'
import { startTwoClusters } from '../support/two-clusters.ts'

/** `out` and `err` are looked for in the command's output; without `err` nothing may be on standard error. */
type Row = Readonly<{ line: string; code: number; out?: RegExp; err?: RegExp }>

/** Begins every control sequence of a terminal. */
const escape = '\u001b'

const api = 'api.backend.svc.cluster.local'

test('run: wrong use is one line and exit code 2; help and version are 0', async (t) => {
  const rows: Row[] = [
    { line: '', code: 2, err: /Usage: peerdns/ },
    { line: '--version', code: 0, out: /^\d+\.\d+\.\d+\n$/ },
    { line: '--help', code: 0, out: /Exit codes: 0 done[^]*Examples:\n {2}\$ peerdns serve/ },
    { line: 'polices', code: 2, err: /^peerdns: unknown command 'polices' \(Did you mean policies\?\)\n$/ },
    { line: 'peers', code: 2, err: /Usage: peerdns peers/ },
    { line: 'peers lst', code: 2, err: /^peerdns: unknown command 'lst' \(Did you mean list\?\)\n$/ },
    { line: 'peers list --frmat json', code: 2, err: /^peerdns: unknown option '--frmat'[^\n]*\n$/ },
    { line: 'peers list -o yaml', code: 2, err: /^peerdns: option '-o, --output <format>' argument 'yaml' is invalid\. Allowed choices are table, json\.\n$/ },
    { line: 'peers list extra', code: 2, err: /^peerdns: too many arguments/ },
    { line: 'policies describe', code: 2, err: /^peerdns: missing required argument 'name'\n$/ },
    { line: 'serve', code: 2, err: /^peerdns: required option '--config <file>' not specified\n$/ },
    { line: 'check', code: 2, err: /^peerdns: required option '--config <file>' not specified\n$/ },
    { line: 'query', code: 2, err: /^peerdns: missing required argument 'name'\n$/ },
    { line: 'query a..b', code: 2, err: /^peerdns: `a\.\.b` is not a domain name: [^\n]*\n$/ },
    { line: 'query a NOPE', code: 2, err: /^peerdns: `NOPE` is not a record type/ },
    { line: 'query a AXFR', code: 2, err: /^peerdns: AXFR is not asked like this\n$/ },
    { line: 'query a --server 127.0.0.1:0', code: 2, err: /^peerdns: --server: `127\.0\.0\.1:0`: a port is a number/ },
    { line: 'query a --timeout 5', code: 2, err: /^peerdns: --timeout: a bare number has no unit/ },
    { line: 'query a --timeout 0s', code: 2, err: /^peerdns: --timeout: wait for some time\n$/ },
    { line: 'cache show a --suffix b', code: 2, err: /^peerdns: a name or --suffix, not both\n$/ },
    { line: 'cache flush a --suffix b', code: 2, err: /^peerdns: a name or --suffix, not both\n$/ },
    { line: 'policies disable', code: 2, err: /^peerdns: the name of a policy or --all: one of them\n$/ },
    { line: 'policies disable x --all', code: 2, err: /^peerdns: the name of a policy or --all: one of them\n$/ },
    { line: 'policies enable', code: 2, err: /^peerdns: the name of a policy or --all: one of them\n$/ },
    { line: 'peers drain', code: 2, err: /^peerdns: missing required argument 'name'\n$/ },
    { line: 'health --url ftp://x', code: 2, err: /^peerdns: --url: `ftp:\/\/x` is not a URL like http:\/\/127\.0\.0\.1:9154\n$/ },
    { line: 'status --admin ftp://x', code: 2, err: /^peerdns: --admin: `ftp:\/\/x` is not a URL like http:\/\/127\.0\.0\.1:9154\n$/ }
  ] // prettier-ignore
  for (const row of rows) {
    const { code, out, err } = await command(row.line)
    t.equal(code, row.code, `${row.line}: exit code`)
    t.match(out, row.out ?? /^$/, `${row.line}: output`)
    t.match(err, row.err ?? /^$/, `${row.line}: error`)
  }
  const { out } = await command('--help')
  const commands = [...out.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name!).filter((name) => name !== 'help')
  t.same(commands, [
    'serve',
    'check',
    'demo',
    'query',
    'trace',
    'status',
    'records',
    'policies',
    'peers',
    'propagation',
    'cache',
    'events',
    'health'
  ])
  const leaves = commands.flatMap((name) => ({ records: ['records list'], policies: ['policies list', 'policies describe', 'policies simulate', 'policies disable', 'policies enable'], peers: ['peers list', 'peers drain', 'peers undrain'], cache: ['cache show', 'cache flush'] })[name] ?? [name]) // prettier-ignore
  for (const leaf of leaves) {
    const help = await command(`${leaf} --help`)
    t.equal(help.code, 0, `${leaf} --help`)
    t.match(help.out, new RegExp(`Examples:\n {2}\\$ peerdns ${leaf}`), `${leaf} has an example`)
  }
})

test('run: an admin API that does not answer is exit code 1 and one line', async (t) => {
  const odd = createServer((_request, response) => response.end('<html>not what you think</html>'))
  await new Promise<void>((done) => void odd.listen(0, '127.0.0.1', done))
  t.teardown(() => odd.close())
  const oddUrl = `http://127.0.0.1:${(odd.address() as AddressInfo).port}`
  const goneUrl = `127.0.0.1:${await freePort()}`
  for (const line of ['status', 'peers list', 'policies describe x', 'records list', 'cache flush', 'trace x']) {
    const gone = await command(`${line} --admin ${goneUrl}`)
    t.equal(gone.code, 1, line)
    t.match(gone.err, new RegExp(`^peerdns: cannot reach the admin API at http://${goneUrl}: ECONNREFUSED; is \`peerdns serve\` running\\? Another place is set by --admin URL or PEERDNS_ADMIN\n$`)) // prettier-ignore
    t.equal(gone.out, '')
  }
  t.match(await command('status', { PEERDNS_ADMIN: goneUrl }), { code: 1, err: new RegExp(goneUrl) }, 'the variable')
  t.match(await command('status', { PEERDNS_ADMIN: 'http://[' }), { code: 2, err: /^peerdns: PEERDNS_ADMIN: `http/ })
  t.match(await command(`status --admin ${oddUrl}`), {
    code: 1,
    err: `peerdns: what answers at ${oddUrl} (status 200) is not the admin API of a peerdns\n`
  })
})

test('commands against a running server', async (t) => {
  const { a, adminUrl, dns } = await startTwoClusters(t)
  const server = `127.0.0.1:${a.dnsAddresses[0]!.port}`
  const env = { PEERDNS_ADMIN: adminUrl }
  const rows: Row[] = [
    { line: 'status', code: 0, out: /^cluster +cluster-b in region-b\n[^]*ready +yes\n[^]*DNS +127[^]*\d problems\n[^]*ZONE +OF +SERIAL[^]*cluster\.local\./ },
    { line: 'peers list', code: 0, out: new RegExp(`^PEER +REGION +SERVER +HEALTH[^]*cluster-a +region-a +${server} +(up|unknown) .*backend-from-a`) },
    { line: 'policies list', code: 0, out: /^NAME +DNSNAMES +ORDER NOW[^]*backend-from-a +backend\.svc\.cluster\.local\. +peer:cluster-a,local +first +127\.0\.0\.0\/8,10\.8\.0\.0\/14 +0\nfixed +fixed\.example\. / },
    { line: 'policies describe backend-from-a', code: 0, out: new RegExp(`^name +backend-from-a\ndnsName +backend\\.svc\\.cluster\\.local\\.\n[^]*nextOn +unreachable, absent, empty\nmaxTtl +none\nmaxNegativeTtl +5s\ntransit +no\n[^]*order now +peer:cluster-a,local\n[^]*\n1 +peer:cluster-a +${server} [^]*\n2 +local +- +up `) },
    { line: 'policies describe fixed', code: 0, out: /maxTtl +7s\n[^]*1 +addresses:10\.9\.0\.7 +10\.9\.0\.7 +up/ },
    { line: 'policies describe nope', code: 1, err: /^peerdns: no policy is called `nope`\n$/ },
    { line: 'cache show', code: 0, out: /^the cache is empty\n$/ },
    { line: `cache show ${api}`, code: 1, err: /^peerdns: nothing is cached for api\.backend/ },
    { line: `query ${api} --server ${dns}`, code: 0, out: new RegExp(`^;; status: NOERROR, id: \\d+, flags: qr rd ra\n;; EDNS: version 0[^]*;; question: ${api}\\. IN A\n\n;; answer:\n${api}\\. +5 +IN +A +172\\.30\\.1\\.0\n\n;; source: cache of peer:cluster-a \\(${server}\\), age \\d[^\n]*, policy backend-from-a\n;; server: ${dns} over UDP\n;; time: [^\n]*, size: \\d+ octets\n$`) },
    { line: `query ${api}`, code: 0, out: new RegExp(`;; server: ${dns} over UDP\n`) },
    { line: `query ${api} --tcp`, code: 0, out: new RegExp(`;; server: ${dns} over TCP\n`) },
    { line: `query ${api} --no-edns --short`, code: 0, out: /^172\.30\.1\.0\n$/ },
    { line: `query ${api} --norecurse`, code: 0, out: /flags: qr aa ra\n[^]*10\.1\.1\.20\n[^]*;; source: our zone cluster\.local\., age \w+, changed / },
    { line: `query ${api} --dnssec`, code: 0, out: /;; EDNS: version 0, flags: do, udp \d+\n[^]*;; source: not told\n/ },
    { line: `query ${api} --server ${server}`, code: 0, out: /172\.30\.1\.0\n[^]*;; source: not told\n/ },
    { line: `query ${api} AAAA`, code: 1, out: /;; status: NOERROR,[^]*;; authority:\n[^]*SOA/, err: /^peerdns: no AAAA of api\.backend\.svc\.cluster\.local\.: NOERROR\n$/ },
    { line: 'query nope.default.svc.cluster.local', code: 1, out: /;; status: NXDOMAIN/, err: /: NXDOMAIN\n$/ },
    { line: 'query www.example.org', code: 1, out: /;; status: REFUSED[^]*;; EDE: 20 \(Not Authoritative\): no zone, policy or forward is for this name\n/, err: /: REFUSED\n$/ },
    { line: `trace ${api}`, code: 0, out: new RegExp(`^CLUSTER +STEP +SERVER +AT +TOOK +TTL +AGE +DETAIL\ncluster-b +route [^]*\n${api}\\. A: NOERROR in [^]*\nsource: cache of peer:cluster-a \\(${server}\\), age [^]*\npolicy: backend-from-a\n\nNAME [^]*172\\.30\\.1\\.0\n$`) },
    { line: 'trace web.backend.svc.cluster.local', code: 0, out: new RegExp(`\ncluster-a +peer +${server} [^]*source: peer:cluster-a \\(${server}\\), asked just now\n`) },
    { line: `trace ${api} --client 10.99.0.1`, code: 0, out: /source: our zone cluster\.local\.[^]*10\.1\.1\.20\n/ },
    { line: `trace ${api} --norecurse`, code: 0, out: /10\.1\.1\.20\n/ },
    { line: 'trace nope.default.svc.cluster.local AAAA', code: 1, out: /AAAA: NXDOMAIN/, err: /^peerdns: no AAAA of nope\.default\.svc\.cluster\.local\.: NXDOMAIN\n$/ },
    { line: 'trace a..b', code: 2, err: /^peerdns: name: `a\.\.b` is not a domain name/ },
    { line: `trace ${api} --client nobody`, code: 2, err: /^peerdns: client: `nobody` is not an IP address\n$/ },
    { line: 'records list --zone cluster.local --filter name=own.default.svc.cluster.local type=A', code: 0, out: /^NAME +TYPE +TTL +DATA\nown\.default\.svc\.cluster\.local\. +A +5 +10\.1\.1\.40\n$/ },
    { line: 'records list', code: 0, out: /^NAME +TYPE +TTL +DATA\ncluster\.local\. +SOA +5 / },
    { line: 'records list --zone 10.in-addr.arpa --filter type=PTR', code: 0, out: /20\.1\.1\.10\.in-addr\.arpa\. +PTR +5 +api\.backend/ },
    { line: 'records list --filter name=nope.cluster.local', code: 1, err: /^peerdns: no record of cluster\.local\. matches\n$/ },
    { line: 'records list --zone example.org', code: 1, err: /^peerdns: no zone is called `example\.org\.`; there are cluster\.local\., / },
    { line: 'records list --filter data=1', code: 2, err: /^peerdns: filter: `data=1` is none of/ },
    { line: 'cache show', code: 0, out: new RegExp(`^NAME +TYPE +TARGET +SERVER +AGE +TTL +HITS +DATA\n[^]*web\\.backend[^]* A +peer:cluster-a +${server} [^]* 172\\.30\\.2\\.0\n`) },
    { line: `cache show ${api}`, code: 0, out: /172\.30\.1\.0\n/ },
    { line: 'cache show --limit 1', code: 0, out: /^NAME[^\n]*\n[^\n]*\n$/, err: /^only the first 1 are shown: --limit shows more\n$/ },
    { line: 'cache show --limit many', code: 2, err: /^peerdns: limit: `many`/ },
    { line: 'cache flush web.backend.svc.cluster.local', code: 0, out: /^1 cached answer flushed\n$/ },
    { line: 'cache flush --suffix backend.svc.cluster.local', code: 0, out: /^\d cached answers? flushed\n$/ },
    { line: 'cache flush', code: 0, out: /^0 cached answers flushed\n$/ }
  ] // prettier-ignore
  for (const row of rows) {
    const { code, out, err } = await command(row.line, env)
    t.equal(code, row.code, `${row.line}: exit code`)
    t.match(out, row.out ?? /^$/, `${row.line}: output`)
    t.match(err, row.err ?? /^$/, `${row.line}: error`)
    t.notOk((out + err).includes(escape), `${row.line}: no colors`)
  }
  t.match(
    (await command('peers list', env, true)).out,
    new RegExp(`${escape}\\[3\\dm(up|unknown)${escape}\\[39m`),
    'colors where they are wanted'
  )

  const json = async (line: string): Promise<unknown> => JSON.parse((await command(`${line} -o json`, env)).out)
  t.match(await json('status'), { cluster: 'cluster-b', isReady: true, zones: [{ zone: 'cluster.local.' }] })
  t.match(await json('peers list'), { peers: [{ name: 'cluster-a' }] })
  t.match(await json('policies list'), { policies: [{ name: 'backend-from-a' }, { name: 'fixed' }] })
  t.match(await json('policies describe fixed'), { name: 'fixed', maxTtlSeconds: 7 })
  t.match(await json('records list --filter name=own.default.svc.cluster.local type=A'), { zone: 'cluster.local.', isComplete: true, isSnapshot: true, records: [{ data: '10.1.1.40' }] }) // prettier-ignore
  t.match(await json(`query ${api}`), { server: dns, transport: 'udp', rcode: 'NOERROR', flags: ['qr', 'rd', 'ra'], answer: [{ ttlSeconds: 5, data: '172.30.1.0' }], source: { target: 'peer:cluster-a', policy: 'backend-from-a' } }) // prettier-ignore
  t.match(await json(`trace ${api}`), { rcode: 'NOERROR', policy: 'backend-from-a', steps: [{ cluster: 'cluster-b', step: 'route' }] }) // prettier-ignore
  t.match(await json('cache show'), { entries: [{ name: `${api}.` }], isComplete: true })
  t.same(await json('cache flush'), { flushedEntries: 1 })
})

test('query shows what a server gives, and says so where it gives nothing', async (t) => {
  const records: StubRecord[] = [
    { type: 'A', name: 'host.south.example', ttl: 30, data: '192.0.2.1' },
    { type: 'TXT', name: 'host.south.example', ttl: 30, data: ['a "quoted" \u001b[31mred'] }
  ]
  const stub = await startStubPeer({ zone: 'south.example', records })
  t.teardown(() => stub.stop())
  const nobody = { PEERDNS_ADMIN: 'http://127.0.0.1:1' }
  const where = `127.0.0.1:${stub.port}`
  const ask = (fault: StubFault, options = ''): Promise<Result> => {
    stub.fault = fault
    return command(`query host.south.example --server ${where} --timeout 1s${options}`, nobody)
  }
  const rows: (Omit<Row, 'line'> & Readonly<{ fault: StubFault; options?: string }>)[] = [
    { fault: 'none', code: 0, out: /\s192\.0\.2\.1\n[^]*;; source: not told\n;; server: [^]* over UDP\n/ },
    { fault: 'none', options: ' --short', code: 0, out: /^192\.0\.2\.1\n$/ },
    { fault: 'lossy', code: 0, out: /192\.0\.2\.1/ },
    { fault: 'truncated', code: 0, out: /192\.0\.2\.1[^]*;; server: [^]* over TCP \(truncated over UDP\)\n/ },
    { fault: 'always-truncated', code: 0, out: /flags: qr[a-z ]* tc/ },
    { fault: 'silent', code: 1, err: /^peerdns: 127\.0\.0\.1:\d+ gave no answer over UDP: no answer within 1 s\n$/ },
    { fault: 'wrong-id', code: 1, err: /no answer within 1 s/ },
    { fault: 'tcp-close', options: ' --tcp', code: 1, err: /gave no answer over TCP: / },
    { fault: 'tcp-hang', options: ' --tcp', code: 1, err: /gave no answer over TCP: no answer within 1 s/ },
    { fault: 'servfail', code: 1, out: /;; status: SERVFAIL/, err: /: SERVFAIL\n$/ },
    { fault: 'broken-rdata', code: 1, err: /^peerdns: the answer of 127\.0\.0\.1:\d+ is no DNS message: / }
  ] // prettier-ignore
  for (const { fault, options = '', code, out, err } of rows) {
    const title = `${fault}${options}`
    const result = await ask(fault, options)
    t.equal(result.code, code, `${title}: exit code`)
    t.match(result.out, out ?? /^$/, `${title}: output`)
    t.match(result.err, err ?? /^$/, `${title}: error`)
  }
  stub.fault = 'none'
  const text = await command(`query host.south.example TXT --server localhost:${stub.port}`, nobody)
  t.match(text.out, /TXT +"a \\"quoted\\" \\027\[31mred"\n/, 'a host name is resolved; control characters are escaped')
  const unknown = await command('query a --server nobody.invalid', nobody)
  t.match(unknown, { code: 1, err: /^peerdns: no address is known for nobody\.invalid: E[A-Z_]+\n$/ })
})

test('records list asks page by page', async (t) => {
  const records = Array.from({ length: 25_000 }, (_, at) => ({
    name: `r${at}.`,
    type: 'A',
    ttlSeconds: 5,
    data: '10.0.0.1'
  }))
  let serial = 7
  const server = createServer((request, response) => {
    const query = new URL(request.url!, 'http://x').searchParams
    const [offset, limit] = [Number(query.get('offset')), Number(query.get('limit'))]
    const page = records.slice(offset, offset + limit)
    response.end(JSON.stringify({ zone: 'z.', serial, records: page, isComplete: offset + limit >= records.length }))
  })
  // Comparing what came keeps this process busy for longer than a connection is kept: it would close as it is used
  // again.
  server.keepAliveTimeout = 0
  await new Promise<void>((done) => void server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  const env = { PEERDNS_ADMIN: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  const list = async (): Promise<{ records: unknown[]; isSnapshot: boolean }> =>
    JSON.parse((await command('records list -o json', env)).out) as { records: unknown[]; isSnapshot: boolean }
  const whole = await list()
  t.same(whole.records, records)
  t.equal(whole.isSnapshot, true)
  server.prependListener('request', () => serial++)
  t.equal((await list()).isSnapshot, false, 'the zone changed on the way')
})

test('table, elapsed and printable', async (t) => {
  t.equal(table(['A', 'LONG'], [['value', null], ['', '\u001b[32mup\u001b[39m']]), 'A      LONG\nvalue  -\n       \u001b[32mup\u001b[39m\n') // prettier-ignore
  t.equal(table(['A', 'B'], [['\u001b[32mup\u001b[39m', 'x'], ['down', 'y']]), 'A     B\n\u001b[32mup\u001b[39m    x\ndown  y\n') // prettier-ignore
  const times: [number, string][] = [
    [0, '0ms'], [0.04, '0ms'], [0.44, '0.4ms'], [9.96, '10ms'], [12.6, '13ms'], [999.4, '999ms'], [1000, '1s'],
    [4210, '4.2s'], [59_940, '59.9s'], [60_000, '1m0s'], [200_000, '3m20s'], [7_500_000, '2h5m'], [273_600_000, '3d4h']
  ] // prettier-ignore
  for (const [ms, text] of times) t.equal(elapsed(ms), text, text)
  t.equal(elapsed(null), null)
  t.equal(printable('a\u001b[31mb\r\nc\u009b\u202ed é'), 'a [31mb c d é')
})
