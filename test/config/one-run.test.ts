/** Mistakes do not hide one another: whoever mends all that `check` tells of in one run is done. */
import { test } from 'tap'
import { parseConfig } from '../../src/config/load.ts'
import { ConfigError, problemToText, type ConfigProblem } from '../../src/config/problem.ts'

/** Right as it is; every mistake has a policy of its own to spoil. */
const policies = Array.from({ length: 8 }, (_, index) => ({
  name: `p${index}`,
  dnsName: `n${index}.svc.cluster.local`,
  targets: ['a', 'local']
}))
const right = {
  cluster: { name: 'north', source: { manifests: ['m'] }, reverse: ['10.0.0.0/8'], records: [] as string[] },
  listen: ['192.0.2.53:53'],
  peers: { a: { servers: ['192.0.2.1:53'] } },
  policies,
  transfer: { allow: ['private'], keys: [], notify: [] as string[] },
  forward: ['192.0.2.2:53'],
  allow: ['private'],
  cache: {}
}

// Shapes are what the rows spoil.
// oxlint-disable-next-line typescript/no-explicit-any
type Spoil = (file: any) => unknown
// prettier-ignore
const mistakes: Record<string, Spoil> = {
  'an unknown key': (file) => (file.policys = []),
  'an unknown key of the cluster': (file) => (file.cluster.ragion = 'west'),
  'an unknown key of a policy': (file) => (file.policies[0].max_ttl = '5s'),
  'no name': (file) => delete file.cluster.name,
  'no unit': (file) => (file.lameDuck = 5),
  'no unit, in a section': (file) => (file.cache.maxTtl = 5),
  'a wrong word': (file) => (file.cluster.pods = 'insecur'),
  'no number': (file) => (file.threads = 'two'),
  'no network': (file) => file.allow.push('10.0.0.0/33'),
  'a wrong server': (file) => (file.peers.b = { servers: ['192.0.2.1:99999'] }),
  'no servers': (file) => (file.peers.c = { servers: [] }),
  'a second source': (file) => (file.cluster.source.mirror = ['192.0.2.7:53']),
  'a wrong record': (file) => file.cluster.records.push('x.svc.cluster.local. 5 A nowhere'),
  'a peer called local': (file) => (file.peers.local = { servers: ['192.0.2.9:53'] }),
  'a probe that waits too long': (file) => (file.peers.d = { servers: ['192.0.2.4:53'], probe: { every: '1s', timeout: '30s' } }),
  'an unknown peer': (file) => (file.policies[1].targets = ['nobody']),
  'a target twice': (file) => (file.policies[2].targets = ['a', 'a']),
  'a dnsName twice': (file) => (file.policies[3].dnsName = file.policies[4].dnsName),
  'a name twice': (file) => (file.policies[5].name = file.policies[4].name),
  'a reserved name': (file) => (file.policies[6].dnsName = 'kube-system.svc.cluster.local'),
  'local elsewhere': (file) => (file.policies[7].dnsName = 'example.org'),
  'ourselves': (file) => file.forward.push('192.0.2.53:53'),
  'an address twice': (file) => (file.admin = '192.0.2.53:53'),
  'leases without an API server': (file) => (file.cluster.leases = 'on'),
  'an unknown key of a peer': (file) => (file.peers.e = { servers: ['192.0.2.5:53'], key: 'nokey.' }),
  'a ConfigMap without an API server': (file) => (file.overrides = { configMap: 'default/state' })
}

function problemsOf(spoils: readonly Spoil[]): readonly ConfigProblem[] {
  const file = structuredClone(right)
  for (const spoil of spoils) spoil(file)
  try {
    parseConfig({ text: JSON.stringify(file), hash: '' }, 'peerdns.yaml', { home: '/home/user' })
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

/** Without where it stands, and without names that another mistake makes. */
const told = ({ path, message }: ConfigProblem): string =>
  `${path}: ${message}`.replaceAll(/ \(line \d+\)|line \d+/g, '')

test('each two mistakes are told in one run, and all of them', async (t) => {
  t.same(problemsOf([]).map(problemToText), [], 'what they spoil is right')
  const rows = Object.entries(mistakes)
  const alone = new Map(rows.map(([name, spoil]) => [name, problemsOf([spoil]).map(told)]))
  for (const [name, texts] of alone) t.not(texts.length, 0, name)
  const hidden = rows.flatMap(([one, spoilOne], index) =>
    rows.slice(index + 1).flatMap(([other, spoilOther]) => {
      const both = new Set(problemsOf([spoilOne, spoilOther]).map(told))
      return [one, other].flatMap((name) => alone.get(name)!.filter((text) => !both.has(text)).map((text) => `${one} + ${other}: ${text}`)) // prettier-ignore
    })
  )
  t.same(hidden, [])
  const all = new Set(problemsOf(rows.map(([, spoil]) => spoil)).map(told))
  t.same([...alone.values()].flat().filter((text) => !all.has(text)), []) // prettier-ignore
})
