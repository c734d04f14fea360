/** The source `manifests`, on real files: what it reads, what it tells, what it keeps, and how soon. */
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import type { Test } from 'tap'
import { manifestFileOctets, manifestListDepth, objectEventsPerBatch } from '../../src/base/limits.ts'
import type { ObjectEvent } from '../../src/cluster/object-event.ts'
import { ManifestsSource } from '../../src/cluster/sources/manifests.ts'
import type { ManifestProblem, ManifestsSourceOptions } from '../../src/cluster/sources/manifests.ts'
import { loopClock, sleep } from '../support/loop-clock.ts'

const namespace = (name: string) => `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}}\n`
const service = (name: string, address: string) =>
  `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}, namespace: shop}\nspec: {clusterIP: ${address}, ports: [{port: 80}]}\n`

/** An event in few words: `put Service/shop/api 10.0.0.1`. */
function inWords(event: ObjectEvent): string {
  if (event.type === 'put') {
    const { kind, namespace, name } = event.object
    const addresses = event.object.kind === 'Service' ? ` ${event.object.clusterIPs.join(' ')}` : ''
    return `put ${kind}/${namespace}/${name}${addresses}`
  }
  const { kind, namespace, name } = event.type === 'delete' ? event : event.identity
  return `${event.type} ${kind}/${namespace}/${name}`
}

const problemInWords = ({ file, line, column, reason }: ManifestProblem) =>
  `${file.slice(file.lastIndexOf('/') + 1)}:${line}:${column} ${reason}`

type Heard = { events: string[]; raw: ObjectEvent[]; batches: number[]; origins: number[]; source: ManifestsSource }

function listen(t: Test, options: Partial<ManifestsSourceOptions> & { paths: readonly string[] }): Heard {
  const heard: Omit<Heard, 'source'> = { events: [], raw: [], batches: [], origins: [] }
  const source = new ManifestsSource({
    clock: loopClock,
    onEvents: (events, originAtMs) => {
      heard.events.push(...events.map(inWords))
      heard.raw.push(...events)
      heard.batches.push(events.length)
      heard.origins.push(originAtMs)
    },
    ...options
  })
  t.teardown(() => source.close())
  return Object.assign(heard, { source })
}

/** Reads one text as the only file, and gives the events and the problems in words. */
async function readText(t: Test, text: string | Buffer, name = 'a.yaml') {
  const folder = t.testdir({ [name]: text })
  const heard = listen(t, { paths: [folder] })
  await heard.source.start()
  heard.source.close()
  return { events: heard.events, problems: heard.source.problems.map(problemInWords), raw: heard.raw }
}

/** Waits until the condition holds; the milliseconds that took by `loopClock`. Infinity after 30 seconds. */
async function until(condition: () => boolean): Promise<number> {
  const startMs = loopClock.nowMs()
  while (!condition()) {
    if (loopClock.nowMs() - startMs > 30_000) return Infinity
    await sleep(2)
  }
  return loopClock.nowMs() - startMs
}

/** The promise is 200 ms; one look may come just before the change, but not as a rule. */
function within200Ms(t: Test, delaysMs: readonly number[]): void {
  const median = delaysMs.toSorted((a, b) => a - b)[delaysMs.length >> 1] ?? Infinity
  t.ok(median < 200 && Math.max(...delaysMs) < 1_000, `after ${delaysMs.map((it) => it.toFixed()).join(', ')} ms`)
}

test('ManifestsSource reads every form in which Kubernetes objects are written', async (t) => {
  const json = (value: unknown) => JSON.stringify(value)
  const ns = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  const two = ['put Namespace//a', 'put Namespace//b']
  const listOf = (depth: number): unknown => ({
    apiVersion: 'v1',
    kind: 'List',
    items: depth === 0 ? [ns('a')] : [listOf(depth - 1)]
  })
  const indented = (text: string, by: string) => text.replaceAll(/^(?=.)/gm, by)
  const item = (text: string, by = '') => `${by}- ${indented(text, `${by}  `).trimStart()}`
  const rows: { name: string; text: string; want: string[]; file?: string }[] = [
    { name: 'one document', text: namespace('a'), want: ['put Namespace//a'] },
    { name: 'several', text: `${namespace('a')}---\n${namespace('b')}`, want: two },
    { name: 'leading and trailing markers', text: `---\n${namespace('a')}---\n${namespace('b')}---\n`, want: two },
    { name: 'empty documents and comments', text: `# hello\n---\n---\n# more\n---\n${namespace('a')}...\n---\n${namespace('b')}`, want: two },
    { name: 'a directive', text: `%YAML 1.2\n---\n${namespace('a')}---\n${namespace('b')}`, want: two },
    { name: 'a marker with a comment, and CRLF', text: `${namespace('a')}--- # next\n${namespace('b')}`.replaceAll('\n', '\r\n'), want: two },
    { name: 'a byte order mark', text: `\uFEFF${namespace('a')}---\n${namespace('b')}`, want: two },
    { name: 'three dashes that are no marker', text: `${namespace('a')}  \n---\n${namespace('b')}data: {x: "\n  ---- ---"}\n`, want: two },
    { name: 'a List, its items not indented', text: `apiVersion: v1\nitems:\n${item(namespace('a'))}${item(namespace('b'))}kind: List\nmetadata: {}\n`, want: two },
    { name: 'a List, indented, with comments', text: `kind: List\napiVersion: v1\nitems: # all\n  # one\n${item(namespace('a'), '  ')}\n# two\n${item(namespace('b'), '  ')}`, want: two },
    { name: 'a List, a dash alone on its line', text: `apiVersion: v1\nkind: List\nitems:\n-\n${indented(namespace('a'), '  ')}-\n${indented(namespace('b'), '  ')}`, want: two },
    { name: 'a List in flow style', text: `apiVersion: v1\nkind: List\nitems: [${json(ns('a'))}, ${json(ns('b'))}]\n`, want: two },
    { name: 'a List with a dash in a text', text: `apiVersion: v1\nkind: List\nitems:\n${item(`${namespace('a')}note: |\n  - no item\n  -\n`)}${item(namespace('b'))}`, want: two },
    { name: 'a List with an anchor', text: `apiVersion: v1\nkind: List\nitems:\n- &a {apiVersion: v1, kind: Namespace, metadata: {name: a}}\n- {<<: *a, metadata: {name: b}}\n`, want: two },
    { name: 'a List after a document', text: `${namespace('a')}---\napiVersion: v1\nkind: List\nitems:\n${item(namespace('b'))}`, want: two },
    { name: 'an empty List', text: 'apiVersion: v1\nkind: List\nitems: []\n---\napiVersion: v1\nkind: List\nitems:\n---\napiVersion: v1\nkind: List\n', want: [] },
    { name: 'a typed list, whose items have no kind', text: `apiVersion: v1\nkind: NamespaceList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n`, want: two },
    { name: 'Lists inside Lists', text: json(listOf(manifestListDepth - 1)), want: ['put Namespace//a'] },
    { name: 'JSON', text: json(ns('a')), file: 'a.json', want: ['put Namespace//a'] },
    { name: 'JSON values one after the other', text: `${json(ns('a'))}\n${json(ns('b'))}`, file: 'a.json', want: two },
    { name: 'a JSON List, kind last', text: json({ apiVersion: 'v1', items: [ns('a'), ns('b')], kind: 'List' }), file: 'a.json', want: two },
    { name: 'a JSON List with brackets in texts', text: json({ kind: 'NamespaceList', apiVersion: 'v1', items: [{ metadata: { name: 'a', labels: { x: '}]"\\' } } }, { ...ns('b'), items: [[1]] }] }), file: 'a.json', want: two },
    { name: 'JSON in a .yaml file', text: JSON.stringify({ kind: 'List', items: [ns('a'), ns('b')] }, null, '\t'), want: two },
    { name: 'nearly JSON', text: '{"apiVersion": "v1", "kind": Namespace, "metadata": {"name": "a",},}', file: 'a.json', want: ['put Namespace//a'] },
    { name: 'kinds that DNS has no use for', text: 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n', want: [] },
    { name: 'a kind of another group', text: 'apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: x}\n', want: [] },
    { name: 'nothing', text: '', want: [] }
  ] // prettier-ignore
  for (const { name, text, want, file } of rows) {
    const { events, problems } = await readText(t, text, file)
    t.strictSame({ events, problems }, { events: want, problems: [] }, name)
  }
})

test('ManifestsSource reads what API servers gave', async (t) => {
  // All but three Nodes each.
  for (const [file, objects] of [
    ['cluster-a.yaml', 81],
    ['cluster-b.yaml', 61]
  ] as const) {
    const heard = listen(t, { paths: [join(import.meta.dirname, '..', 'data', file)] })
    await heard.source.start()
    t.strictSame(heard.source.problems, [], file)
    t.equal(heard.events.length, objects, `${file}: objects`)
  }
})

test('ManifestsSource says file, line and column of what it leaves out', async (t) => {
  const rows: { name: string; text: string | Buffer; want: string[]; events?: string[]; file?: string }[] = [
    { name: 'bad indentation', text: `${namespace('a')}---\nkind: Service\n  bad: 1\n`, want: ['a.yaml:5:7'], events: ['put Namespace//a'] },
    { name: 'a missing bracket', text: 'kind: [a\n', want: ['a.yaml:2:1'] },
    { name: 'a key given twice', text: 'kind: Pod\nmetadata:\n  name: a\n  name: b\n', want: ['a.yaml:4:3 a key is given twice'] },
    { name: 'an unknown alias', text: 'kind: *x\n', want: ['a.yaml:1:1 Unresolved alias'] },
    { name: 'JSON that ends early', text: '{"kind":\n "List", "items": [', file: 'a.json', want: ['a.json:2:'] },
    { name: 'JSON with a bad item', text: '{"kind": "List", "items": [\n{"a": 1},\n{"kind" 1 2}]}', file: 'a.json', want: ['a.json:2:1 left out: kind', 'a.json:3:'] },
    { name: 'a field of an object', text: `# one\n${service('api', '10.0.0.300')}`, want: ['a.yaml:5:19 left out: spec.clusterIP'], events: ['reject Service/shop/api'] },
    { name: 'a field of an item', text: `apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Namespace\n  metadata:\n    name: -a\n`, want: ['a.yaml:7:11 left out: metadata.name'], events: ['reject Namespace//-a'] },
    { name: 'a field of a JSON item', text: '{"kind":"List","items":[\n  {"apiVersion":"v1","kind":"Namespace",\n   "metadata":{"name":"-a"}}]}', file: 'a.json', want: ['a.json:3:23 left out: metadata.name'], events: ['reject Namespace//-a'] },
    { name: 'a field in a nested List', text: 'apiVersion: v1\nkind: List\nitems: [{kind: List, items: [\n  {apiVersion: v1, kind: Namespace, metadata: {name: 5}}]}]\n', want: ['a.yaml:4:54 left out: metadata.name'], events: ['reject Namespace//'] },
    { name: 'no object', text: '- 1\n', want: ['a.yaml:1:1 left out: expected an object'], events: ['reject //'] },
    { name: 'the same object twice', text: `${service('api', '10.0.0.1')}---\n${service('api', '10.0.0.2')}`, want: ['a.yaml:6:1 the same object stands in line 1'], events: ['put Service/shop/api 10.0.0.2'] },
    { name: 'Lists too deep', text: '{kind: List, items: ['.repeat(manifestListDepth + 1) + ']}'.repeat(manifestListDepth + 1), want: ['a.yaml:1:85 Lists inside Lists'] },
    { name: 'brackets without end', text: '['.repeat(100_000), want: ['a.yaml:1:'] },
    { name: 'not UTF-8', text: Buffer.from([0x61, 0xff, 0xfe]), want: ['a.yaml:0:0 not UTF-8'] },
    { name: 'billion laughs', text: 'a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c]\n', want: ['a.yaml:1:1 Excessive alias'] }
  ] // prettier-ignore
  for (const { name, text, want, events, file } of rows) {
    const read = await readText(t, text, file)
    t.equal(read.problems.length, want.length, `${name}: ${read.problems.join(' | ')}`)
    for (const [index, start] of want.entries()) t.equal(read.problems[index]?.slice(0, start.length), start, name)
    if (events !== undefined) t.strictSame(read.events, events, `${name}: events`)
  }
})

test('ManifestsSource says of what is nested too deeply just that', async (t) => {
  const rows: { name: string; text: string; file?: string }[] = [
    { name: 'brackets', text: `x: ${'['.repeat(20_000)}${']'.repeat(20_000)}\n` },
    { name: 'brackets without end', text: '['.repeat(20_000) },
    { name: 'JSON without end', text: `[${'{"a":'.repeat(20_000)}`, file: 'a.json' }
  ]
  for (const { name, text, file } of rows) {
    const { problems } = await readText(t, text, file)
    t.equal(problems.length, 1, name)
    t.match(problems[0], /^a\.\w+:1:\d+ nested too deeply$/, name)
  }
})

test('ManifestsSource finds files as folders of ConfigMaps and kustomize have them', async (t) => {
  const folder = t.testdir({
    'b.yml': namespace('b'),
    'a.yaml': namespace('a'),
    'c.json': JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'c' } }),
    'README.md': namespace('readme'),
    'notes.yaml.bak': namespace('backup'),
    '.hidden.yaml': namespace('hidden'),
    '..data': { 'a.yaml': namespace('data') },
    sub: { deeper: { 'd.yaml': namespace('d') } },
    elsewhere: t.fixture('symlink', 'sub'),
    'up.yaml': t.fixture('symlink', '.'),
    'linked.yaml': t.fixture('symlink', 'README.md'),
    'same.yaml': t.fixture('symlink', 'a.yaml'),
    'dangling.yaml': t.fixture('symlink', 'nowhere'),
    'self.yaml': t.fixture('symlink', 'self.yaml'),
    'pipe.yaml': t.fixture('symlink', '/dev/zero')
  })
  const heard = listen(t, { paths: [folder, join(folder, 'README.md')] })
  await heard.source.start()
  t.strictSame(heard.events, ['a', 'b', 'c', 'd', 'readme'].map((name) => `put Namespace//${name}`)) // prettier-ignore
  t.strictSame(heard.source.problems.map(problemInWords), [
    'pipe.yaml:0:0 neither a file nor a folder',
    'self.yaml:0:0 a symlink that leads to itself'
  ])
})

test('ManifestsSource is complete when every configured path has been there', async (t) => {
  const folder = t.testdir({ there: { 'a.yaml': namespace('a') }, 'bad.yaml': Buffer.from([0xff]) })
  const at = (name: string) => join(folder, name)
  let completions = 0
  const heard = listen(t, {
    paths: [at('there'), at('folder/'), at('file.yaml'), at('bad.yaml')],
    onComplete: () => void completions++
  })
  await heard.source.start()
  t.strictSame(heard.events.splice(0), ['put Namespace//a'], 'what is there is told')
  t.strictSame(heard.source.problems.map(problemInWords), [
    'bad.yaml:0:0 not UTF-8 text',
    'file.yaml:0:0 no such file or folder; nothing is complete until it is there',
    'folder:0:0 no such file or folder; nothing is complete until it is there'
  ])
  t.strictSame(heard.source.unread, [at('folder'), at('file.yaml'), at('bad.yaml')])
  t.equal(heard.source.seenWholeAgoMs, null)
  mkdirSync(at('folder'))
  await until(() => heard.source.unread.length === 2)
  writeFileSync(at('file.yaml'), namespace('f'))
  t.ok((await until(() => heard.events.includes('put Namespace//f'))) < 500, 'what appears later is read')
  await until(() => heard.source.unread.length === 1)
  t.equal(completions, 0, 'a file that cannot be read has not been read')
  writeFileSync(at('bad.yaml'), '')
  await until(() => completions > 0)
  t.equal(completions, 1, 'a folder without files and an empty file hold an empty cluster')
  t.strictSame(heard.source.problems, [])
  t.equal(heard.source.seenWholeAgoMs, 0)
  rmSync(at('folder'), { recursive: true })
  await until(() => heard.source.problems.length > 0)
  mkdirSync(at('folder'))
  await until(() => heard.source.problems.length === 0)
  t.equal(completions, 1, 'told once')
})

test('ManifestsSource keeps what a configured path gave while that is gone', async (t) => {
  const folder = t.testdir({
    one: { 'a.yaml': service('a', '10.0.0.1'), sub: { 'b.yaml': service('b', '10.0.0.2') } },
    'file.yaml': service('c', '10.0.0.3')
  })
  const at = (name: string) => join(folder, name)
  for (const paths of [
    [at('one'), at('file.yaml')],
    [`${at('one')}/`, at('file.yaml')]
  ]) {
    const heard = listen(t, { paths })
    await heard.source.start()
    t.equal(heard.events.splice(0).length, 3)
    const isNoted = () => heard.source.problems.length > 0
    renameSync(at('one'), at('away'))
    t.ok((await until(isNoted)) < 1_500)
    await sleep(200)
    t.strictSame(heard.events, [], 'a folder that was moved away')
    t.match(heard.source.problems, [
      { file: at('one'), reason: /^no such file or folder any more; what it held stays/ }
    ])
    t.ok((heard.source.seenWholeAgoMs ?? 0) >= 200)
    renameSync(at('away'), at('one'))
    await until(() => !isNoted())
    t.strictSame(heard.events, [], 'and came back')
    t.equal(heard.source.seenWholeAgoMs, 0)
    rmSync(at('file.yaml'))
    await until(isNoted)
    await sleep(200)
    t.strictSame(heard.events, [], 'a file')
    writeFileSync(at('file.yaml'), service('c', '10.0.0.3'))
    await until(() => !isNoted())
    t.strictSame(heard.events, [])
    heard.source.close()
  }
  const heard = listen(t, { paths: [at('one'), at('file.yaml')] })
  await heard.source.start()
  heard.events.length = 0
  // As slowly as a folder with thousands of files.
  rmSync(at('one/sub'), { recursive: true })
  await sleep(40)
  rmSync(at('one'), { recursive: true })
  await until(() => heard.source.problems.length > 0)
  await sleep(200)
  t.strictSame(heard.events, [], 'a folder whose files are removed one by one first')
  mkdirSync(at('one'))
  writeFileSync(at('one/a.yaml'), service('a', '10.0.0.9'))
  await until(() => heard.events.length > 1)
  t.strictSame(heard.events.splice(0).sort(), ['delete Service/shop/b', 'put Service/shop/a 10.0.0.9'], 'made anew')
  rmSync(at('one/a.yaml'))
  await until(() => heard.events.length > 0)
  t.strictSame(heard.events, ['delete Service/shop/a'], 'a folder that is there and empty is an empty cluster')
})

test('ManifestsSource: of two files with the same object the later path wins, and that is reported', async (t) => {
  const folder = t.testdir({ 'a.yaml': service('api', '10.0.0.1'), 'b.yaml': service('api', '10.0.0.2') })
  const heard = listen(t, { paths: [folder] })
  await heard.source.start()
  t.strictSame(heard.events.splice(0), ['put Service/shop/api 10.0.0.2'])
  t.match(heard.source.problems, [
    { file: /a\.yaml$/, line: 1, reason: /stands in .*b\.yaml:1/, object: { name: 'api' } }
  ])
  writeFileSync(join(folder, 'a.yaml'), service('api', '10.0.0.9'))
  await until(() => heard.source.stats.filesParsed >= 3)
  await until(() => heard.source.stats.looks >= 2)
  t.strictSame(heard.events, [], 'the one that does not hold may change')
  unlinkSync(join(folder, 'b.yaml'))
  await until(() => heard.events.length > 0)
  t.strictSame(heard.events.splice(0), ['put Service/shop/api 10.0.0.9'], 'it holds once the other is gone')
  await until(() => heard.source.problems.length === 0)
  t.strictSame(heard.source.problems, [])
  // A renamed file is no change of its objects.
  renameSync(join(folder, 'a.yaml'), join(folder, 'z.yaml'))
  const looks = heard.source.stats.looks
  await until(() => heard.source.stats.looks > looks)
  t.strictSame(heard.events, [])
  rmSync(join(folder, 'z.yaml'))
  await until(() => heard.events.length > 0)
  t.strictSame(heard.events, ['delete Service/shop/api'])
})

test('ManifestsSource gives the exact difference, within 200 ms', async (t) => {
  const first = [namespace('shop'), service('api', '10.0.0.1'), service('web', '10.0.0.2')].join('---\n')
  const folder = t.testdir({ 'a.yaml': first, 'b.yaml': namespace('other') })
  const path = join(folder, 'a.yaml')
  const heard = listen(t, { paths: [folder] })
  await heard.source.start()
  t.equal(heard.events.splice(0).length, 4)
  const changes: { name: string; act: () => void; want: string[] }[] = [
    { name: 'one object changes', act: () => writeFileSync(path, first.replace('10.0.0.2', '10.0.0.3')), want: ['put Service/shop/web 10.0.0.3'] },
    { name: 'one goes, one comes', act: () => writeFileSync(path, first.replace('name: web', 'name: www')), want: ['delete Service/shop/web', 'put Service/shop/www 10.0.0.2'] },
    { name: 'a new file over the old one', act: () => (writeFileSync(`${path}.new`, first), renameSync(`${path}.new`, path)), want: ['put Service/shop/web 10.0.0.2', 'delete Service/shop/www'] },
    { name: 'one is malformed', act: () => writeFileSync(path, first.replace('10.0.0.2', '10.0.0')), want: ['reject Service/shop/web'] },
    { name: 'and whole again', act: () => writeFileSync(path, first), want: ['put Service/shop/web 10.0.0.2'] },
    { name: 'a file goes', act: () => rmSync(join(folder, 'b.yaml')), want: ['delete Namespace//other'] },
    { name: 'without an object left', act: () => writeFileSync(path, '# nothing\n'), want: ['delete Namespace//shop', 'delete Service/shop/api', 'delete Service/shop/web'] }
  ] // prettier-ignore
  const delaysMs: number[] = []
  for (const { name, act, want } of changes) {
    const beforeMs = loopClock.epochMs()
    act()
    delaysMs.push(await until(() => heard.events.length > 0))
    t.strictSame(heard.events.splice(0).sort(), want.toSorted(), name)
    const originAtMs = heard.origins.at(-1) ?? 0
    t.ok(originAtMs >= beforeMs - 50 && originAtMs <= loopClock.epochMs(), `${name}: origin time`)
  }
  within200Ms(t, delaysMs)
})

test('ManifestsSource parses only what changed', async (t) => {
  const folder = t.testdir({ 'a.yaml': namespace('a'), 'b.yaml': namespace('b') })
  const heard = listen(t, { paths: [folder] })
  await heard.source.start()
  t.equal(heard.source.stats.filesParsed, 2)
  const later = new Date(Math.floor(loopClock.epochMs() / 1000) * 1000 + 60_000)
  utimesSync(join(folder, 'a.yaml'), later, later)
  await until(() => heard.source.stats.looks >= 2)
  t.equal(heard.source.stats.filesParsed, 2, 'a file with another time and the same content')
  writeFileSync(join(folder, 'b.yaml'), `# said again\n${namespace('b')}`)
  await until(() => heard.source.stats.filesParsed >= 3)
  await until(() => heard.source.stats.looks >= 3)
  t.equal(heard.source.stats.filesParsed, 3, 'one file with other content')
  t.equal(heard.events.length, 2, 'whose object is the same')
})

test('ManifestsSource keeps what a file last gave while it cannot be read', async (t) => {
  const good = service('api', '10.0.0.1')
  const folder = t.testdir({ 'a.yaml': good, 'b.yaml': namespace('b') })
  const path = join(folder, 'a.yaml')
  const lists: (readonly ManifestProblem[])[] = []
  const heard = listen(t, { paths: [folder], onProblems: (problems) => lists.push(problems) })
  await heard.source.start()
  heard.events.length = 0
  const bad: { name: string; act: () => void; want: RegExp }[] = [
    { name: 'it does not parse', act: () => writeFileSync(path, `${good}  x: [\n`), want: /a\.yaml:0:0 cannot be read as it is now; what it held before stays in use\na\.yaml:5:/ },
    { name: 'it is not text', act: () => writeFileSync(path, Buffer.from([0xff])), want: /not UTF-8/ },
    { name: 'it is too large', act: () => writeFileSync(path, Buffer.alloc(manifestFileOctets + 1, 0x20)), want: /larger than/ }
  ] // prettier-ignore
  for (const { name, act, want } of bad) {
    const before = lists.length
    act()
    await until(() => lists.length > before)
    t.match(heard.source.problems.map(problemInWords).join('\n'), want, name)
    t.strictSame(heard.events, [], `${name}: no event`)
  }
  writeFileSync(path, service('api', '10.0.0.2'))
  await until(() => heard.events.length > 0)
  t.strictSame(heard.events, ['put Service/shop/api 10.0.0.2'])
  await until(() => heard.source.problems.length === 0)
  t.strictSame(heard.source.problems, [])
  t.strictSame(lists.at(-1), [], 'the end of the problems is told')
})

test('ManifestsSource follows each exchange of a mounted ConfigMap', async (t) => {
  const folder = t.testdir({ '..1': { 'a.yaml': service('api', '10.0.0.1') }, '..data': t.fixture('symlink', '..1') })
  symlinkSync('..data/a.yaml', join(folder, 'a.yaml'))
  const heard = listen(t, { paths: [folder] })
  await heard.source.start()
  heard.events.length = 0
  const delaysMs: number[] = []
  for (let version = 2; version <= 5; version++) {
    mkdirSync(join(folder, `..${version}`))
    writeFileSync(join(folder, `..${version}`, 'a.yaml'), service('api', `10.0.0.${version}`))
    symlinkSync(`..${version}`, join(folder, '..data_tmp'))
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
    rmSync(join(folder, `..${version - 1}`), { recursive: true })
    delaysMs.push(await until(() => heard.events.length > 0))
    t.strictSame(heard.events.splice(0), [`put Service/shop/api 10.0.0.${version}`])
  }
  within200Ms(t, delaysMs)
})

test('ManifestsSource does not take a file for empty that is being written anew', async (t) => {
  const folder = t.testdir({ 'a.yaml': service('api', '10.0.0.1') })
  const path = join(folder, 'a.yaml')
  const emptied: unknown[] = []
  let problems: readonly string[] = []
  const heard = listen(t, {
    paths: [folder],
    onEmptied: (path, objects) => emptied.push([path, objects]),
    onProblems: (all) => (problems = all.map(({ file, reason }) => `${file}: ${reason}`))
  })
  await heard.source.start()
  heard.events.length = 0
  const says = `${path}: the file is empty; what it held before stays in use until it has been empty for 2 s`
  const rows: { name: string; empty: () => void }[] = [
    { name: 'emptied in place', empty: () => writeFileSync(path, '') },
    { name: 'removed and made anew', empty: () => (rmSync(path), writeFileSync(path, '')) },
    { name: 'an empty one over it', empty: () => (writeFileSync(`${path}.new`, ''), renameSync(`${path}.new`, path)) }
  ]
  for (const [index, { name, empty }] of rows.entries()) {
    empty()
    await sleep(1_200)
    t.strictSame(heard.events, [], `${name}: empty for a moment`)
    t.strictSame(problems, [says], `${name}: and that is said meanwhile`)
    writeFileSync(path, service('api', `10.0.1.${index}`))
    t.ok((await until(() => heard.events.length > 0)) < 1_000)
    t.strictSame(heard.events.splice(0), [`put Service/shop/api 10.0.1.${index}`], name)
    t.ok((await until(() => problems.length === 0)) < 1_000, `${name}: all is well again`)
    t.strictSame(emptied, [], name)
  }
  const emptiedAtMs = loopClock.nowMs()
  writeFileSync(path, '')
  await sleep(1_500)
  t.strictSame(heard.events, [], 'the time begins anew')
  await until(() => heard.events.length > 0)
  t.strictSame(heard.events, ['delete Service/shop/api'], 'empty for good')
  const tookMs = loopClock.nowMs() - emptiedAtMs
  t.ok(tookMs >= 2_000 && tookMs < 3_000, `after ${tookMs.toFixed()} ms`)
  t.ok((await until(() => problems.length === 0)) < 1_000, 'which is no problem')
  t.strictSame(emptied.splice(0), [[path, 1]], 'but is said')
  writeFileSync(path, service('api', '10.0.2.1'))
  await until(() => heard.events.length > 1)
  writeFileSync(path, '# nothing\n')
  await until(() => heard.events.length > 2)
  t.strictSame(emptied, [[path, 1]], 'comments alone too, at once')
})

test('ManifestsSource lets others run after each object, and tells many in slices', async (t) => {
  const count = objectEventsPerBatch * 3
  const items = Array.from({ length: count }, (_, index) => `- metadata: {name: n${index}}\n`)
  const folder = t.testdir({
    'a.yaml': `apiVersion: v1\nkind: NamespaceList\nitems:\n${items.join('')}`,
    'b.json': JSON.stringify({ kind: 'NamespaceList', apiVersion: 'v1', items: Array.from({ length: 500 }, (_, index) => ({ metadata: { name: `j${index}` } })) })
  }) // prettier-ignore
  let pauses = 0
  const heard = listen(t, { paths: [folder], pause: async () => void pauses++ })
  await heard.source.start()
  t.equal(heard.events.length, count + 500)
  t.ok(pauses >= count + 500, `${pauses} pauses`)
  t.strictSame(heard.batches, [500, 500, 500, 500])
})

test('ManifestsSource holds the thread for a few ms at a time, however large the file', async (t) => {
  const slice = (index: number) =>
    `- addressType: IPv4\n  apiVersion: discovery.k8s.io/v1\n  kind: EndpointSlice\n  metadata:\n    name: s-${index}\n    namespace: shop\n    labels: {kubernetes.io/service-name: s-${index}}\n  endpoints:\n  - addresses: [10.1.${index >> 8}.${index & 255}]\n    conditions: {ready: true}\n  ports:\n  - {name: http, port: 8080, protocol: TCP}\n`
  const folder = t.testdir({
    'big.yaml': `apiVersion: v1\nitems:\n${Array.from({ length: 3_000 }, (_, index) => slice(index)).join('')}kind: List\n`
  })
  const heard = listen(t, { paths: [folder] })
  // CPU time of this thread: a machine that is busy with others stretches the wall clock, not this.
  const cpuMs = () => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1000
  }
  const turnsMs: number[] = []
  let lastMs = cpuMs()
  let isRunning = true
  const tick = () => {
    const nowMs = cpuMs()
    turnsMs.push(nowMs - lastMs)
    lastMs = nowMs
    if (isRunning) setImmediate(tick)
  }
  setImmediate(tick)
  await heard.source.start()
  isRunning = false
  t.equal(heard.events.length, 3_000)
  t.ok(turnsMs.length > 3_000, `${turnsMs.length} turns`)
  const longestMs = Math.max(...turnsMs)
  t.ok(longestMs < 20, `the longest turn took ${longestMs.toFixed(1)} ms`)
})

test('ManifestsSource: nothing is told after close', async (t) => {
  const folder = t.testdir({ 'a.yaml': namespace('a') })
  const heard = listen(t, { paths: [folder] })
  await heard.source.start()
  heard.source.close()
  writeFileSync(join(folder, 'a.yaml'), namespace('b'))
  await sleep(100)
  t.strictSame(heard.events, ['put Namespace//a'])
})
