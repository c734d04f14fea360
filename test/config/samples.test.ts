/** The samples in config/ load and tell the story they are there for; the reference and the JSON Schema are current. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { parseAllDocuments } from 'yaml'
import { systemClock } from '../../src/base/clock.ts'
import { ClusterZones } from '../../src/cluster/cluster-zones.ts'
import { eventForReduced, type ObjectEvent } from '../../src/cluster/object-event.ts'
import { reduceObject } from '../../src/cluster/objects.ts'
import type { Config } from '../../src/config/config.ts'
import { jsonSchema, type JsonSchema } from '../../src/config/json-schema.ts'
import { loadConfig } from '../../src/config/load.ts'
import { referenceText } from '../../src/config/reference.ts'
import { RRTYPE } from '../../src/wire/iana.ts'
import { nameToText, parseName } from '../../src/wire/name.ts'
import { rdataToText } from '../../src/wire/record-text.ts'

const folder = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const samples = ['cluster-a', 'cluster-b', 'cluster-c'].map((name) =>
  loadConfig(join(folder, 'config', `${name}.yaml`), { home: '/home/user' })
)

/** What the manifests beside a sample give; each object must be whole. */
function eventsOf({ cluster }: Config): (ObjectEvent | null)[] {
  const folders = cluster.source.kind === 'manifests' ? cluster.source.paths : []
  return folders
    .flatMap((path) => readdirSync(path).map((name) => readFileSync(join(path, name), 'utf8')))
    .flatMap((text) => parseAllDocuments(text).map((document) => reduceObject(document.toJS())))
    .map((reduced) => ('ok' in reduced && reduced.warning === null ? eventForReduced(reduced) : null))
}

function zonesOf(config: Config): ClusterZones {
  const { cluster } = config
  const { name: clusterName, zone, clustersetZone, ttlSeconds, pods, reverse, importsInZone } = cluster
  const zones = new ClusterZones(
    {
      clusterName,
      zone,
      clustersetZone,
      ttlSeconds,
      pods,
      reverse,
      importsInZone,
      records: [],
      nsAddresses: ['127.0.0.1']
    },
    systemClock
  )
  zones.apply(eventsOf(config).filter((event) => event !== null), 0) // prettier-ignore
  zones.markSynced()
  return zones
}

void test('samples: each loads and needs no network', async (t) => {
  const files = readdirSync(join(folder, 'config')).filter((name) => name.endsWith('.yaml'))
  t.same(files, samples.map(({ cluster }) => `${cluster.name}.yaml`)) // prettier-ignore
  for (const [index, config] of samples.entries()) {
    const { name } = config.cluster
    t.same(config.forward, [], name)
    t.same(config.listen, [{ address: '127.0.0.1', port: 5_301 + index }], name)
    t.same(config.admin, { address: '127.0.0.1', port: 9_301 + index }, name)
    t.notOk(eventsOf(config).includes(null), `${name}: every object is whole`)
  }
  t.same(samples.map(({ cluster }) => cluster.region), ['us-central', 'us-west', 'eu-west']) // prettier-ignore
})

void test('samples: each cluster has what the story says of it', async (t) => {
  const rows: [sample: number, type: keyof typeof RRTYPE, name: string, want: string[] | string][] = [
    [0, 'A', 'api.backend.svc.cluster.local', ['172.30.1.0']],
    [0, 'A', 'web.backend.svc.cluster.local', ['172.30.2.0']],
    [0, 'A', 'api.backend.svc.clusterset.local', ['172.30.1.0']],
    [0, 'A', 'api-headless.backend.svc.cluster.local', ['10.0.1.20', '10.0.1.21', '10.0.1.22']],
    [0, 'SRV', '_http._tcp.api.backend.svc.cluster.local', ['0 100 8080 api.backend.svc.cluster.local.']],
    [0, 'SRV', '_http._tcp.web.backend.svc.cluster.local', ['0 100 80 web.backend.svc.cluster.local.']],
    [0, 'PTR', '21.1.0.10.in-addr.arpa', ['10-0-1-21.api-headless.backend.svc.cluster.local.']],
    [0, 'A', 'kubernetes.default.svc.cluster.local', ['10.0.32.1']],
    [0, 'A', 'kube-dns.kube-system.svc.cluster.local', ['10.0.32.10']],
    [1, 'A', 'api.backend.svc.cluster.local', ['10.1.1.20']],
    [1, 'A', 'web.backend.svc.cluster.local', ['10.1.2.20']],
    [1, 'A', 'api-headless.backend.svc.cluster.local', 'nxdomain'],
    [1, 'A', 'payments.shop.svc.cluster.local', ['10.1.3.20']],
    [1, 'A', 'kube-dns.kube-system.svc.cluster.local', ['10.1.0.10']],
    [2, 'A', 'cart.shop.svc.cluster-c.local', ['10.2.1.20']],
    [2, 'A', 'payments.shop.svc.cluster-c.local', 'nxdomain'],
    [2, 'A', 'kubernetes.default.svc.cluster-c.local', ['10.2.0.1']]
  ]
  const zones = samples.map(zonesOf)
  for (const [sample, type, name, want] of rows) {
    const qname = parseName(name)
    const found = zones[sample]?.zones.find(qname)?.lookup(qname, RRTYPE[type])
    const answer =
      found?.kind === 'answer' ? found.rrset.rdata.map((rdata) => rdataToText(RRTYPE[type], rdata)).sort() : found?.kind
    t.same(answer, want, `${samples[sample]?.cluster.name} ${name} ${type}`)
  }
})

void test('samples: the policies are those of the story', async (t) => {
  const [a, b, c] = samples.map(({ policies }) =>
    policies.map(({ dnsNames, targets }) => [
      dnsNames.map(nameToText).join(' '),
      targets.map(({ id, zone }) => (zone === null ? id : `${id} as ${nameToText(zone)}`)).join(', ')
    ])
  )
  t.same(a, [])
  t.same(b, [['backend.svc.cluster.local.', 'peer:cluster-a, local']])
  t.same(c, [
    ['backend.svc.cluster-c.local.', 'peer:cluster-a as cluster.local.'],
    ['shop.svc.cluster-c.local.', 'local, peer:cluster-b as cluster.local.'],
    ['cluster-a.local.', 'peer:cluster-a as cluster.local.']
  ])
})

void test('docs/configuration.md and config/peerdns.schema.json are what the schema gives', async (t) => {
  t.equal(readFileSync(join(folder, 'docs/configuration.md'), 'utf8'), referenceText())
  const written = JSON.parse(readFileSync(join(folder, 'config/peerdns.schema.json'), 'utf8')) as unknown
  t.strictSame(written, JSON.parse(JSON.stringify(jsonSchema())))
  const withoutSentence: string[] = []
  const visit = (schema: JsonSchema, path: string): void => {
    for (const [key, option] of Object.entries(schema.properties ?? {})) {
      if (option.description === undefined) withoutSentence.push(`${path}.${key}`)
      visit(option, `${path}.${key}`)
    }
    for (const inner of [schema.items, schema.additionalProperties, ...(schema.anyOf ?? [])]) {
      if (typeof inner === 'object') visit(inner, path)
    }
  }
  visit(jsonSchema(), '')
  t.same(withoutSentence, [], 'every option has its sentence')
})
