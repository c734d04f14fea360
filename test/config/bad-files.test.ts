/**
 * Every kind of mistake in a configuration file: where it is told, in which words, and with which hint.
 *
 * In the rows, `»` stands before the place of each mistake; it is taken out before the file is read.
 */
import * as fc from 'fast-check'
import { test } from 'tap'
import { readKeySecret } from '../../src/config/key-secret.ts'
import { parseConfig } from '../../src/config/load.ts'
import { ConfigError, problemToText, type ConfigProblem } from '../../src/config/problem.ts'

const options = { home: '/home/user', localAddresses: ['192.0.2.53'] }

function problemsOf(text: string): readonly ConfigProblem[] {
  try {
    parseConfig({ text, hash: '' }, 'peerdns.yaml', options)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

type Row = Readonly<{ name: string; text: string; path: string; says: RegExp; nearest?: string; expects?: RegExp }>

const cluster = 'cluster: {name: b, source: {manifests: [./m/]}}'
const peerA = 'peers: {cluster-a: {servers: ["192.0.2.1:53"]}}'
const backend = 'dnsName: backend.svc.cluster.local'

/** A right `cluster` on the first line, and what follows. */
const file = (...lines: string[]): string => [cluster, ...lines].join('\n')
/** A file with one policy, one peer, and other policies behind. */
const policy = (inner: string, ...others: string[]): string =>
  file(peerA, 'policies:', `- {name: p, ${inner}}`, ...others.map((other) => `- {${other}}`))
/** A file with these lines in `cluster`. */
const inCluster = (...lines: string[]): string =>
  ['cluster:', '  name: b', '  source: {manifests: [m]}', ...lines.map((line) => `  ${line}`)].join('\n')

// prettier-ignore
const yamlRows: Row[] = [
  { name: 'empty file', text: '»', path: '', says: /nothing is written/, expects: /cluster, listen/ },
  { name: 'comments only', text: '»# peerdns\n', path: '', says: /nothing is written/ },
  { name: 'a list', text: '»- cluster', path: '', says: /a list stands here/, expects: /a mapping with cluster/ },
  { name: 'text', text: '»peerdns', path: '', says: /`peerdns` is text/ },
  { name: 'no cluster', text: '»listen: ["127.0.0.1:53"]', path: '', says: /`cluster` is missing/ },
  { name: 'unclosed list', text: file('listen: [»'), path: '', says: /end with a \]/ },
  { name: 'tab', text: 'cluster:\n»\tname: b', path: '', says: /not by tabs/ },
  { name: 'key twice', text: file('threads: 1', '»threads: 1'), path: '', says: /stands in the mapping twice/ },
  { name: 'two documents', text: file('»---', cluster), path: '', says: /a second document/ },
  { name: 'list as key', text: file('? »[a]', ': 1'), path: '', says: /a key is text/ },
  { name: 'unknown tag', text: file('threads: »!count 1'), path: '', says: /tag/ },
  { name: 'unknown alias', text: file('listen: »*nowhere'), path: '', says: /no `&nowhere` before it/ },
  { name: 'many aliases', text: `a: &a x\nb: [${'*a, '.repeat(100)}»*a]`, path: '', says: /more than 100 aliases/ },
  { name: 'aliases that multiply', text: `»a: &a [x, x]\n${['ab', 'bc', 'cd', 'de', 'ef'].map(([of, to]) => `${to}: &${to} [*${of}, *${of}, *${of}]`).join('\n')}`, path: '', says: /alias count/ },
  { name: 'a huge file', text: `»# ${'x'.repeat(1024 * 1024)}`, path: '', says: /larger than/ }
]

// prettier-ignore
const schemaRows: Row[] = [
  { name: 'unknown key', text: file('»lisen: ["127.0.0.1:53"]'), path: 'lisen', says: /unknown key `lisen`/, nearest: 'listen', expects: /one of the keys cluster, listen/ },
  { name: 'other spelling', text: policy(`${backend}, targets: [local], »max_ttl: 5s`), path: 'policies[0].max_ttl', says: /unknown key `max_ttl`/, nearest: 'maxTtl' },
  { name: 'key without value', text: file('»cache:'), path: 'cache', says: /nothing is written here/ },
  { name: 'key of the prototype', text: file('»constructor: 1'), path: 'constructor', says: /unknown key/ },
  { name: '__proto__', text: file('»__proto__: {threads: 2}'), path: '__proto__', says: /unknown key/ },
  { name: 'missing name', text: '»cluster:\n  source: {manifests: [m]}', path: 'cluster', says: /`name` is missing/, expects: /DNS label/ },
  { name: 'missing in a list', text: file('policies:', `- »${backend}`, '  targets: [local]'), path: 'policies[0]', says: /`name` is missing/ },
  { name: 'cluster name', text: 'cluster: {name: »Cluster_B, source: {manifests: [m]}}', path: 'cluster.name', says: /`Cluster_B` does not fit/, expects: /DNS label/ },
  { name: 'number for text', text: 'cluster: {name: »7, source: {manifests: [m]}}', path: 'cluster.name', says: /`7` is a number: write it in quotes/ },
  { name: 'bare duration', text: file('lameDuck: »5'), path: 'lameDuck', says: /bare number has no unit: write 5s/, expects: /0s to 10m/ },
  { name: 'bare duration in quotes', text: file('lameDuck: »"5"'), path: 'lameDuck', says: /bare number has no unit/ },
  { name: 'bare zero', text: file('cache: {serveStale: »0}'), path: 'cache.serveStale', says: /bare number has no unit/ },
  { name: 'bare size', text: file('cache: {maxBytes: »64}'), path: 'cache.maxBytes', says: /bare number has no unit: write 64MiB/ },
  { name: 'decimal size', text: file('cache: {maxBytes: »64MB}'), path: 'cache.maxBytes', says: /no unit of size: use B, KiB/ },
  { name: 'part of a second', text: file('cache: {maxTtl: »1500ms}'), path: 'cache.maxTtl', says: /not a whole number of seconds.*write 2s/ },
  { name: 'duration too long', text: file('cache: {serveStale: »4d}'), path: 'cache.serveStale', says: /out of bounds: 0s to 3d/ },
  { name: 'number out of bounds', text: file('threads: »65'), path: 'threads', says: /65 is out of bounds/, expects: /0 to 64/ },
  { name: 'not whole', text: file('threads: »1.5'), path: 'threads', says: /1.5 is not a whole number/ },
  { name: 'infinity', text: file('threads: ».inf'), path: 'threads', says: /not a whole number/ },
  { name: 'text for a number', text: file('threads: »two'), path: 'threads', says: /`two` is text/ },
  { name: 'misspelt word', text: inCluster('pods: »insecur'), path: 'cluster.pods', says: /`insecur` is not known/, nearest: 'insecure', expects: /disabled, insecure or verified/ },
  { name: 'yes for true', text: policy(`${backend}, targets: [local], transit: »yes`), path: 'policies[0].transit', says: /`yes` is text/, expects: /true or false/ },
  { name: 'listening on a name', text: file('listen: [»"localhost:53"]'), path: 'listen[0]', says: /needs an IP address/, expects: /an address and a port/ },
  { name: 'listening without port', text: file('listen: [»127.0.0.1]'), path: 'listen[0]', says: /has no port/ },
  { name: 'listening nowhere', text: file('listen: »[]'), path: 'listen', says: /the list is empty/ },
  { name: 'text for a list', text: file('listen: »127.0.0.1:53'), path: 'listen', says: /is text/, expects: /a list, each entry an address/ },
  { name: 'network', text: file('allow:', '- private', '- »010.0.0.0/8'), path: 'allow[1]', says: /not a network/ },
  { name: 'host bits', text: file('allow: [»10.1.0.0/8]'), path: 'allow[0]', says: /write 10\.0\.0\.0\/8/ },
  { name: 'word for reverse', text: inCluster('reverse: [»private]'), path: 'cluster.reverse[0]', says: /more than one network/ },
  { name: 'forward', text: file('forward: [»"10.1:53"]'), path: 'forward[0]', says: /not an address or host name/ },
  { name: 'zone', text: inCluster('zone: »cluster..local'), path: 'cluster.zone', says: /an empty label/ },
  { name: 'Lease of nobody', text: inCluster('leases: »peerdns/alive'), path: 'cluster.leases', says: /does not fit/, expects: /with `\{cluster\}`/ },
  { name: 'Lease of two', text: inCluster('leases: »"{cluster}/{cluster}"'), path: 'cluster.leases', says: /does not fit/ },
  { name: 'Lease in a path', text: inCluster('leases: »"a/b/{cluster}"'), path: 'cluster.leases', says: /does not fit/ },
  { name: 'root as zone', text: inCluster('zone: ».'), path: 'cluster.zone', says: /the root is not/ },
  { name: 'wildcard', text: policy('dnsName: »"*.svc.cluster.local", targets: [cluster-a]'), path: 'policies[0].dnsName', says: /without `\*`/ },
  { name: 'space in a name', text: policy('dnsName: »"back end.svc", targets: [cluster-a]'), path: 'policies[0].dnsName', says: /space or control character/ },
  { name: 'odd character in a name', text: policy('dnsName: [»back!end.svc], targets: [cluster-a]'), path: 'policies[0].dnsName[0]', says: /no host name has/ },
  { name: 'record', text: inCluster('records: ["db.cluster.local. 10 A »172.30.9.999"]'), path: 'cluster.records[0]', says: /172\.30\.9\.999/, expects: /zone-file line/ },
  { name: 'record in plain style', text: inCluster('records:', '- db.cluster.local. 10 »Z 1'), path: 'cluster.records[0]', says: /Z/ },
  { name: 'record with escapes', text: inCluster('records: [»"db.cluster.local.\\t10 A x"]'), path: 'cluster.records[0]', says: /x/ },
  { name: 'peer without servers', text: file('peers:', '  »cluster-a: {region: x}'), path: 'peers.cluster-a', says: /`servers` is missing/ },
  { name: 'address family', text: file('peers: {a: {servers: [192.0.2.1], families: [»5]}}'), path: 'peers.a.families[0]', says: /`5` is no address family/, expects: /4 or 6/ },
  { name: 'probe type', text: file('peers: {a: {servers: [192.0.2.1], probe: {type: »SOAP}}}'), path: 'peers.a.probe.type', says: /not a record type/ },
  { name: 'peer name', text: file('peers: {»" a": {servers: [192.0.2.1]}}'), path: 'peers. a', says: /does not fit/ },
  { name: 'weight', text: policy(`${backend}, targets: [{peer: cluster-a, weight: »101}]`), path: 'policies[0].targets[0].weight', says: /101 is out of bounds/, expects: /0 to 100/ },
  { name: 'trickle', text: policy(`${backend}, targets: [local], trickle: »-1`), path: 'policies[0].trickle', says: /-1 is out of bounds/ },
  { name: 'nobody as clients', text: policy(`${backend}, targets: [local], clients: »[]`), path: 'policies[0].clients', says: /the list is empty/ },
  { name: 'word for clients', text: policy(`${backend}, targets: [local], clients: »everyon`), path: 'policies[0].clients', says: /not known/, nearest: 'everyone' },
  { name: 'log sample', text: file('log: {queries: {sample: »0}}'), path: 'log.queries.sample', says: /0 is out of bounds/ },
  { name: 'local: false', text: policy(`${backend}, targets: [{local: »false}]`), path: 'policies[0].targets[0].local', says: /`false` makes nobody of it/, expects: /true/ },
  { name: 'list as target', text: policy(`${backend}, targets: [»[a]]`), path: 'policies[0].targets[0]', says: /a list stands here/, expects: /a mapping with peer/ },
  { name: 'target address', text: policy(`${backend}, targets: [{addresses: [»10.9.0.0/24]}]`), path: 'policies[0].targets[0].addresses[0]', says: /not an IP address/ },
  { name: 'region table', text: file('regions: {»10.1/16: x}'), path: 'regions.10.1/16', says: /not a network/ }
]

const manyNetworks = Array.from({ length: 40 }, (_, at) => `10.${at}.128.0/17`).join(', ')

// prettier-ignore
const crossRows: Row[] = [
  { name: 'no source', text: 'cluster:\n  name: b\n  »source: {}', path: 'cluster.source', says: /no source/, expects: /exactly one of manifests, kubernetes or mirror/ },
  { name: 'two sources', text: 'cluster:\n  name: b\n  source:\n    manifests: [m]\n    »kubernetes: {}', path: 'cluster.source.kubernetes', says: /second source beside `manifests`/ },
  { name: 'Leases in files', text: inCluster('leases: »"peerdns/{cluster}-alive"'), path: 'cluster.leases', says: /renewed in an API server, and the source is `manifests`/, expects: /the source `kubernetes`/ },
  { name: 'misspelt source', text: 'cluster:\n  name: b\n  source: {»miror: ["192.0.2.9:53"]}', path: 'cluster.source.miror', says: /unknown key/, nearest: 'mirror' },
  { name: 'misspelt required key', text: 'cluster:\n  »nam: b\n  source: {manifests: [m]}', path: 'cluster.nam', says: /unknown key/, nearest: 'name' },
  { name: 'two places of overrides', text: file('overrides: {file: x, »configMap: y}'), path: 'overrides.configMap', says: /second place beside `file`/ },
  { name: 'misspelt place of overrides', text: file('overrides: {»fiel: x}'), path: 'overrides.fiel', says: /unknown key/, nearest: 'file' },
  { name: 'misspelt target', text: policy(`${backend}, targets: [{»per: cluster-a}]`), path: 'policies[0].targets[0].per', says: /unknown key/, nearest: 'peer' },
  { name: 'a target that is not local', text: policy(`${backend}, targets: [{local: »false}]`), path: 'policies[0].targets[0].local', says: /`false` makes nobody of it/ },
  { name: 'equal keys', text: file('transfer:', '  allow: [private]', '  keys:', '  - {name: One.example, file: k}', '  - {name: »one.example., file: l}'), path: 'transfer.keys[1].name', says: /one\.example\. already, on line 5/ },
  { name: 'NOTIFY to ourselves', text: file('listen: ["127.0.0.1:5302"]', 'transfer: {allow: [private], notify: [192.0.2.1, »"127.0.0.1:5302"]}'), path: 'transfer.notify[1]', says: /this server itself: we listen on 127\.0\.0\.1:5302/ },
  { name: 'equal zones', text: inCluster('clustersetZone: »Cluster.Local.'), path: 'cluster.clustersetZone', says: /the same one/ },
  { name: 'CNAME beside another type', text: inCluster('records:', '- a.cluster.local. A 192.0.2.1', '- »A.cluster.local. CNAME b.example.'), path: 'cluster.records[1]', says: /stands alone.*line 5/ },
  { name: 'wildcard record', text: inCluster('records: [»"*.backend.svc.cluster.local. 10 A 192.0.2.1"]'), path: 'cluster.records[0]', says: /\*\.backend\.svc\.cluster\.local\. is answered for nothing but a literal `\*`/, expects: /a record for each name/ },
  { name: 'wildcard record, inner', text: inCluster('records: [»"a.*.cluster.local. 10 A 192.0.2.1"]'), path: 'cluster.records[0]', says: /literal `\*`/ },
  { name: 'delegation', text: inCluster('records: [»"sub.svc.cluster.local. 10 NS ns.example."]'), path: 'cluster.records[0]', says: /NS at sub\.svc\.cluster\.local\. delegates nothing/, expects: /a policy with a peer/ },
  { name: 'delegation within hand-written names', text: inCluster('records:', '- partner.example. A 192.0.2.1', '- »x.partner.example. NS ns.example.'), path: 'cluster.records[1]', says: /delegates nothing/ },
  { name: 'delegation of a foreign name', text: inCluster('records: [»"partner.example. NS ns.example."]'), path: 'cluster.records[0]', says: /delegates nothing/ },
  { name: 'delegation in a reverse zone', text: inCluster('reverse: [10.0.0.0/8]', 'records: [»"3.10.in-addr.arpa. NS ns.example."]'), path: 'cluster.records[0]', says: /delegates nothing/ },
  { name: 'record without its zone', text: inCluster('records: [»"x 10 A 192.0.2.1"]'), path: 'cluster.records[0]', says: /`x\.` is a whole name, and would make this server authoritative for all of `x\.`/, expects: /`x\.cluster\.local\.`/ },
  { name: 'record of the root', text: inCluster('records: [»". 10 TXT a"]'), path: 'cluster.records[0]', says: /authoritative for all of `\.`/ },
  { name: 'too many reverse zones', text: inCluster(`reverse: »[${manyNetworks}]`), path: 'cluster.reverse', says: /5120 reverse zones/ },
  { name: 'unknown peer', text: policy(`${backend}, targets: [»cluster-b, local]`), path: 'policies[0].targets[0]', says: /no peer `cluster-b`/, nearest: 'cluster-a', expects: /local or one of the peers cluster-a/ },
  { name: 'unknown peer, long form', text: policy(`${backend}, targets: [{peer: »clustera}]`), path: 'policies[0].targets[0].peer', says: /no peer/, nearest: 'cluster-a' },
  { name: 'misspelt local', text: policy(`${backend}, targets: [»Local]`), path: 'policies[0].targets[0]', says: /no peer `Local`/, nearest: 'local' },
  { name: 'no peers at all', text: file('policies:', `- {name: p, ${backend}, targets: [»x]}`), path: 'policies[0].targets[0]', says: /no peer `x`/, expects: /there are no peers/ },
  { name: 'target of nobody', text: policy(`${backend}, targets: [»{weight: 1}]`), path: 'policies[0].targets[0]', says: /the target is nobody/ },
  { name: 'target of two', text: policy(`${backend}, targets: [»{peer: cluster-a, local: true}]`), path: 'policies[0].targets[0]', says: /peer and local at once/ },
  { name: 'target twice', text: policy(`${backend}, targets: [cluster-a, »{peer: cluster-a}]`), path: 'policies[0].targets[1]', says: /twice/ },
  { name: 'trickle of all together', text: policy(`${backend}, targets: [cluster-a, local], select: merge, trickle: »5`), path: 'policies[0].trickle', says: /together/ },
  { name: 'zone of local', text: policy(`${backend}, targets: [{local: true, »zone: x.example}]`), path: 'policies[0].targets[0].zone', says: /what a peer calls its zone/ },
  { name: 'peer called local', text: file('peers:', '  »local: {servers: [192.0.2.1]}'), path: 'peers.local', says: /this cluster itself/ },
  { name: 'probe waits too long', text: file('peers: {a: {servers: [192.0.2.1], probe: {every: 100ms, timeout: »2s}}}'), path: 'peers.a.probe.timeout', says: /more than 10 times/ },
  { name: 'local outside of our zones', text: policy('dnsName: partner.example, targets: [cluster-a, »local]'), path: 'policies[0].targets[1]', says: /outside of our zones/, expects: /cluster\.records/ },
  { name: 'local for foreign reverse names', text: policy('dnsName: 10.in-addr.arpa, targets: [»local]'), path: 'policies[0].targets[0]', says: /outside of our zones/ },
  { name: 'reserved: the API server', text: policy('dnsName: »kubernetes.default.svc.cluster.local, targets: [cluster-a]'), path: 'policies[0].dnsName', says: /reserved/, expects: /allowReserved: true/ },
  { name: 'reserved: a name inside', text: policy('dnsName: [x.svc.cluster.local, »kube-dns.kube-system.svc.cluster.local], targets: [cluster-a]'), path: 'policies[0].dnsName[1]', says: /kube-system\.svc\.cluster\.local\. is reserved/ },
  { name: 'reserved: pods', text: policy('dnsName: »kube-system.pod.cluster.local, targets: [local, cluster-a]'), path: 'policies[0].dnsName', says: /reserved/ },
  { name: 'equal names', text: policy(`${backend}, targets: [local]`, 'name: »p, dnsName: x.svc.cluster.local, targets: [local]'), path: 'policies[1].name', says: /called `p` already, on line 4/ },
  { name: 'equal dnsName', text: policy(`${backend}, targets: [local]`, 'name: q, dnsName: »Backend.svc.cluster.local., targets: [local]'), path: 'policies[1].dnsName', says: /line 4 is for backend\.svc\.cluster\.local\. already/ },
  { name: 'everyone and some clients', text: policy(`${backend}, targets: [local], clients: [10.8.0.0/14]`, `name: q, dnsName: »backend.svc.cluster.local, targets: [local]`), path: 'policies[1].dnsName', says: /overlapping clients/ },
  { name: 'overlapping clients', text: policy(`${backend}, targets: [local], clients: [10.8.0.0/14]`, 'name: q, dnsName: [x.svc.cluster.local, »backend.svc.cluster.local], targets: [local], clients: [192.0.2.0/24, 10.9.0.0/16]'), path: 'policies[1].dnsName[1]', says: /overlapping clients/ },
  { name: 'dnsName twice', text: policy('dnsName: [x.svc.cluster.local, »x.svc.cluster.local], targets: [local]'), path: 'policies[0].dnsName[1]', says: /this policy is for/ },
  { name: 'one address twice', text: file('listen: ["127.0.0.1:53", »"127.0.0.1:53"]'), path: 'listen[1]', says: /beside 127\.0\.0\.1:53 of line 2/ },
  { name: 'address beside its wildcard', text: file('listen: ["[::1]:53", »"[::]:53"]'), path: 'listen[1]', says: /beside \[::1\]:53/ },
  { name: 'admin on the port of DNS', text: file('listen: ["0.0.0.0:5300"]', 'admin: »127.0.0.1:5300'), path: 'admin', says: /beside 0\.0\.0\.0:5300 of line 2/ },
  { name: 'admin on the port of observe', text: file('observe: 127.0.0.1:9154', 'admin: »127.0.0.1:9154'), path: 'admin', says: /beside 127\.0\.0\.1:9154 of line 2/ },
  { name: 'forward to ourselves', text: file('listen: ["127.0.0.1:5302"]', 'forward: [»"127.0.0.1:5302"]'), path: 'forward[0]', says: /a forward to ourselves: we listen on 127\.0\.0\.1:5302/ },
  { name: 'forward to loopback below the wildcard', text: file('forward: [192.0.2.1, »127.0.0.53]'), path: 'forward[1]', says: /ourselves: we listen on 0\.0\.0\.0:53/ },
  { name: 'forward to loopback, IPv6', text: file('forward: [»"[::1]:53"]'), path: 'forward[0]', says: /ourselves: we listen on \[::\]:53/ },
  { name: 'forward to localhost', text: file('forward: [»localhost]'), path: 'forward[0]', says: /ourselves/ },
  { name: 'forward to the wildcard itself', text: file('forward: [»0.0.0.0]'), path: 'forward[0]', says: /ourselves/ },
  { name: 'forward to an interface of this machine', text: file('forward: [»192.0.2.53]'), path: 'forward[0]', says: /ourselves/ },
  { name: 'a peer that is ourselves', text: file('peers: {a: {servers: [192.0.2.1, »127.0.0.1]}}'), path: 'peers.a.servers[1]', says: /ourselves/ },
  { name: 'a mirror that is ourselves', text: 'cluster:\n  name: b\n  source: {mirror: [»127.0.0.1]}', path: 'cluster.source.mirror[0]', says: /ourselves/ }
]

void test('parseConfig tells each mistake with line, column, words and the nearest right key', async (t) => {
  for (const { name, text, path, says, nearest, expects } of [...yamlRows, ...schemaRows, ...crossRows]) {
    const before = text.slice(0, text.indexOf('»')).split('\n')
    const place = { line: before.length, column: before.at(-1)!.length + 1, path }
    const [problem, ...others] = problemsOf(text.replace('»', ''))
    t.match(problem, { ...place, message: says }, name)
    t.equal(problem?.nearest, nearest, `${name}: nearest`)
    if (expects !== undefined) t.match(problem?.expected, expects, `${name}: expected`)
    t.same(others, [], `${name}: nothing else`)
  }
  const manyKeys = Array.from({ length: 30_000 }, (_, at) => `x${at}:`).join('\n')
  t.equal(problemsOf(manyKeys).length, 200, 'a file of nothing but mistakes ends after some')
  t.match(problemsOf('['.repeat(50_000)), [{ line: 1, message: /nested too deep/ }])
})

void test('parseConfig accepts what only looks like a mistake', async (t) => {
  const rows: [name: string, text: string][] = [
    ['clients that do not overlap', policy(`${backend}, targets: [local], clients: [10.8.0.0/14]`, `name: q, ${backend}, targets: [local], clients: [10.12.0.0/14, "fd00::/8"]`)],
    ['local above our zone', policy('dnsName: local, targets: [local]')],
    ['local below the clusterset zone', policy('dnsName: x.svc.clusterset.local, targets: [cluster-a, local]')],
    ['local only, reserved', policy('dnsName: kube-system.svc.cluster.local, targets: [local]')],
    ['reserved, allowed', policy('dnsName: kube-system.svc.cluster.local, allowReserved: true, targets: [cluster-a]')],
    ['reserved names of another zone', policy('dnsName: kube-system.svc.cluster-a.local, targets: [cluster-a]')],
    ['one peer with two zones', policy(`${backend}, targets: [{peer: cluster-a, zone: a.example}, {peer: cluster-a, zone: b.example}]`)],
    ['port 0 twice', file('listen: ["127.0.0.1:0", "127.0.0.1:0"]', 'admin: 127.0.0.1:0')],
    ['loopback on another port', file('forward: ["127.0.0.1:5353"]')],
    ['loopback without a wildcard', file('listen: ["192.0.2.53:53"]', 'forward: [127.0.0.53]')],
    ['one port for both families', file('listen: ["0.0.0.0:53", "[::]:53", "[fe80::1%eth0]:5300"]')],
    ['single quotes, folded text', file("forward: ['192.0.2.1']", 'admin: >-', '  off')]
  ] // prettier-ignore
  for (const [name, text] of rows) t.same(problemsOf(text), [], name)
  const withRecord = policy('dnsName: partner.example, targets: [local]').replace(
    'name: b,',
    'name: b, records: ["x.partner.example. A 192.0.2.1"],'
  )
  t.same(problemsOf(withRecord), [], 'local outside of our zones, with records')
  const right = [
    'cluster.local. NS ns.example.',
    'clusterset.local. NS ns.example.',
    '10.in-addr.arpa. NS ns.example.',
    '17.172.in-addr.arpa. NS ns.example.',
    'partner.example. NS ns.partner.example.',
    'ns.partner.example. A 192.0.2.1',
    'a*.backend.svc.cluster.local. A 192.0.2.1',
    'backend.svc.cluster.local. TXT x'
  ]
  const reverse = 'reverse: [10.0.0.0/8, 172.16.0.0/12]'
  t.same(problemsOf(inCluster(reverse, `records: [${right.map((line) => `"${line}"`).join(', ')}]`)), [], 'records')
  t.same(
    problemsOf(
      'cluster: {name: b, source: {manifests: [m]}, records: ["x.corp. A 192.0.2.1", "corp. NS ns.example."]}\npolicies: [{name: p, dnsName: corp, targets: [local]}]'
    ),
    [],
    'at the name of a policy for local'
  )
  const withReverse = policy('dnsName: 1.10.in-addr.arpa, targets: [local]').replace(
    'name: b,',
    'name: b, reverse: [10.0.0.0/8],'
  )
  t.same(problemsOf(withReverse), [], 'local for our reverse names')
})

void test('parseConfig tells all mistakes at once, in the order of the file', async (t) => {
  const text = [
    'cluster:',
    '  name: b',
    '  ttl: 5',
    '  zoen: cluster.local',
    '  source: {manifests: [m], mirror: ["127.0.0.1:5302"]}',
    'listen: ["127.0.0.1:5302", x]',
    'forward: ["127.0.0.1:5302"]',
    'peers: {a: {servers: [192.0.2.1], probe: {evry: 1s}}}',
    'policies:',
    '- {name: p, dnsName: x.svc.cluster.local, targets: [b], maxTtll: 1s}',
    '- {name: p, dnsName: x.svc.cluster.local, targets: [{}, a], clients: [10.1.0.0/8]}'
  ].join('\n')
  const places = problemsOf(text).map(({ line, path }) => `${line} ${path}`)
  t.strictSame(places, [
    '3 cluster.ttl',
    '4 cluster.zoen',
    '5 cluster.source.mirror',
    '5 cluster.source.mirror[0]',
    '6 listen[1]',
    '7 forward[0]',
    '8 peers.a.probe.evry',
    '10 policies[0].targets[0]',
    '10 policies[0].maxTtll',
    '11 policies[1].name',
    '11 policies[1].dnsName',
    '11 policies[1].targets[0]',
    '11 policies[1].clients[0]'
  ])
  const error = new ConfigError(problemsOf(text))
  t.match(
    error.message,
    /^peerdns\.yaml:4:3: cluster\.zoen: unknown key `zoen` \(did you mean `zone`\?\); expected one of/m
  )
  t.equal(error.message.split('\n').length, error.problems.length)
  t.equal(problemToText({ file: 'f', line: 1, column: 2, path: '', message: 'm' }), 'f:1:2: m')
})

void test('positions are right behind anchors and aliases, and in block text', async (t) => {
  const text = [
    cluster,
    'x: &servers [192.0.2.1]',
    'peers:',
    '  a: {servers: *servers, regoin: x}',
    '  b: {servers: *servers}'
  ].join('\n')
  t.strictSame(
    problemsOf(text).map(({ line, column, path }) => `${line}:${column} ${path}`),
    ['2:1 x', '4:26 peers.a.regoin']
  )
  const block = [
    'cluster:',
    '  name: b',
    '  source: {manifests: [m]}',
    '  records:',
    '  - |',
    '    a. 1 A',
    '    x'
  ].join('\n')
  t.match(problemsOf(block)[0], { line: 5, column: 5, path: 'cluster.records[0]' })
  const cyclic = problemsOf('cluster: &c\n  name: b\n  source: *c\n')
  t.ok(cyclic.length > 0, 'a mapping that holds itself')
})

void test('any text gives a Config or a ConfigError, in bounded time', async (t) => {
  const key = fc.constantFrom(
    'cluster',
    'name',
    'source',
    'manifests',
    'listen',
    'peers',
    'policies',
    'targets',
    'dnsName',
    'ttl',
    'cache'
  )
  const leaf = fc.oneof(
    fc.constantFrom(
      'local',
      'a',
      '5s',
      '5',
      '10.0.0.0/8',
      '127.0.0.1:53',
      'cluster.local',
      '~',
      'true',
      '*a',
      '&a x',
      '!!binary x',
      '[',
      '{',
      '|',
      '"',
      '...'
    ),
    fc.string()
  )
  const { tree } = fc.letrec<{ tree: unknown; node: unknown }>((tie) => ({
    node: fc.oneof(
      { depthSize: 'small' },
      leaf,
      fc.array(tie('node'), { maxLength: 3 }),
      fc.dictionary(key, tie('node'), { maxKeys: 4 })
    ),
    tree: fc.dictionary(key, tie('node'), { maxKeys: 6 })
  }))
  const asYaml = (node: unknown): string =>
    typeof node === 'string'
      ? node
      : Array.isArray(node)
        ? `[${node.map(asYaml).join(', ')}]`
        : `{${Object.entries(node as object)
            .map(([name, value]) => `${name}: ${asYaml(value)}`)
            .join(', ')}}`
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.stringMatching(/^[a-z:\-[\]{}&*!|>'"#%@ \n\t]{0,80}$/),
    tree.map(asYaml),
    fc.tuple(fc.nat(200), fc.string({ maxLength: 4 })).map(([at, inserted]) => {
      const right = `${cluster}\n${peerA}\npolicies:\n- {name: p, ${backend}, targets: [cluster-a, local]}\n`
      return right.slice(0, at) + inserted + right.slice(at)
    })
  )
  const property = fc.property(text, (content) => {
    for (const { line, column, message } of problemsOf(content)) {
      if (!(line >= 1 && column >= 1 && message !== '')) return false
    }
    return true
  })
  t.doesNotThrow(() => fc.assert(property, { seed: 20261130, numRuns: 3_000, interruptAfterTimeLimit: 20_000 }))
})

void test('parseConfig warns of settings that change nothing, with their place', async (t) => {
  const rows: [name: string, text: string, path: string, says: RegExp][] = [
    ['node asks a peer', file('peers: {a: {servers: [»"192.0.2.1:53"]}}').replace(/source: \{[^}]*\}/, 'source: {mirror: ["10.96.0.53:53"]}'), 'peers.a.servers[0]', /each node asks this peer itself/],
    ['lease without mirror', file('peers: {a: {servers: ["192.0.2.1:53"], »lease: 2s}}'), 'peers.a.lease', /without `mirror`/],
    ['trickle of one', policy(`${backend}, targets: [cluster-a], »trickle: 5`), 'policies[0].trickle', /no second target/],
    ['trickle beside weights', policy(`${backend}, targets: [cluster-a, local], select: weighted, »trickle: 5`), 'policies[0].trickle', /by weight already/],
    ['weight without weighted', policy(`${backend}, targets: [{peer: cluster-a, »weight: 70}, local]`), 'policies[0].targets[0].weight', /shares nothing/],
    ['all weights 0', policy(`${backend}, select: weighted, »targets: [{peer: cluster-a, weight: 0}, {local: true, weight: 0}]`), 'policies[0].targets', /every target has weight 0/],
    ['no next', policy(`${backend}, targets: [cluster-a, local], »nextOn: []`), 'policies[0].nextOn', /no target but the first/]
  ] // prettier-ignore
  for (const [name, text, path, says] of rows) {
    const before = text.slice(0, text.indexOf('»')).split('\n')
    const place = { line: before.length, column: before.at(-1)!.length + 1, path }
    const { warnings } = parseConfig({ text: text.replace('»', ''), hash: '' }, 'peerdns.yaml', options)
    t.match(warnings, [{ ...place, message: says }], name)
    t.equal(warnings.length, 1, `${name}: nothing else`)
  }
  const well = [
    policy(`${backend}, targets: [cluster-a, local], trickle: 5`),
    policy(`${backend}, targets: [{peer: cluster-a, weight: 70}, local], select: weighted`),
    policy(`${backend}, targets: [cluster-a, {local: true, weight: 0}]`),
    policy(`${backend}, targets: [cluster-a], nextOn: []`)
  ]
  for (const text of well) t.same(parseConfig({ text, hash: '' }, 'peerdns.yaml', options).warnings, [], text)
})

void test('parseConfig looks at the secrets of keys', async (t) => {
  const folder = t.testdir({
    good: 'YSBzZWNyZXQgb2Ygc2V2ZW50ZWVuIQ==\n',
    short: 'c2VjcmV0',
    empty: ' \n',
    hex: 'not base64!',
    cut: 'YSBzZWNyZXQgb2Y',
    large: 'A'.repeat(5_000),
    dir: {}
  })
  const parse = (name: string) =>
    parseConfig(
      { text: file(`transfer: {allow: [private], keys: [{name: k, file: ${name}}]}`), hash: '' },
      `${folder}/peerdns.yaml`,
      { ...options, readSecret: readKeySecret }
    )
  t.same(parse('good').warnings, [])
  const place = { path: 'transfer.keys[0].file', line: 2, column: 53 }
  t.match(parse('short').warnings, [{ ...place, message: /6 octets: fewer than 16/ }])
  const rows: [name: string, says: RegExp][] = [
    ['away', /`away`: there is no such file/],
    ['empty', /it is empty/],
    ['hex', /not base64/],
    ['cut', /not base64/],
    ['large', /larger than 4096 octets/],
    ['dir', /cannot be read/]
  ]
  for (const [name, says] of rows) {
    const problems = (() => {
      try {
        return parse(name).warnings
      } catch (error) {
        return (error as ConfigError).problems
      }
    })()
    t.match(problems, [{ ...place, message: says, expected: /base64/ }], name)
    t.equal(problems.length, 1, name)
  }
})
