/** What must be true of the repository as a whole, whatever its code does: documents, packages and samples agree. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, extname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { parseAllDocuments } from 'yaml'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const notOurs = new Set(['node_modules', '.git', 'dist', '.tap', '.cache', 'coverage'])
const octetsOfText =
  /\.(ts|mjs|js|json|ya?ml|md|txt|tsv|py|zone|hex|scenario)$|(^|\/)\.[a-z]+rc$|^\.ci\/|(^|\/)[A-Z][A-Za-z]+$/

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (notOurs.has(entry.name) || entry.name.startsWith('.dist-')) return []
    if (entry.isDirectory()) return filesBelow(path)
    return entry.isFile() && !entry.name.endsWith('.log') ? [relative(root, path)] : []
  })
}

type Package = {
  name: string
  version: string
  engines: Record<string, string>
  bin: Record<string, string>
  files: string[]
  scripts: Record<string, string>
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
  optionalDependencies?: Record<string, string>
}
type Lock = { version: string; packages: Record<string, Partial<Package> & { resolved?: string }> }

const files = filesBelow(root)
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const texts = files.filter((path) => octetsOfText.test(path)).map((path) => ({ path, text: read(path) }))
const manifest = JSON.parse(read('package.json')) as Package
const lock = JSON.parse(read('package-lock.json')) as Lock
const documents = texts.filter(({ path }) => path.endsWith('.md'))

/** Each place where the pattern stands, as `path:line text`. */
function placesOf(pattern: RegExp, among: readonly { path: string; text: string }[] = texts): string[] {
  return among.flatMap(({ path, text }) =>
    text
      .split('\n')
      .map((line, index) => ({ line, where: `${path}:${index + 1}` }))
      .filter(({ line }) => pattern.test(line))
      .map(({ line, where }) => `${where} ${line.trim().slice(0, 120)}`)
  )
}

test('texts: nothing of the machine they were written on', async (t) => {
  // The patterns are put together here, so that this file does not find itself.
  const folders = ['work', 'root', 'farm', ['tmp', 'peerdns'].join('/')].map((folder) => `/${folder}/`)
  t.same(placesOf(new RegExp(`(^|[^A-Za-z0-9_.~-])(${folders.join('|')})`)), [], 'no path of a machine')
  t.same(placesOf(new RegExp(['registry', 'npmjs'].join('\\.'))), [], 'no registry host')
  const npmSettings = texts.filter(({ path }) => path === '.npmrc')
  t.same(placesOf(/^\s*(@[^:]+:)?registry\s*=|^\/\/|_auth/, npmSettings), [], 'no registry, no credentials')
})

test('texts: nothing left to do without an owner, and no test that runs alone', async (t) => {
  const marks = [['TO', 'DO'], ['FIX', 'ME'], ['X', 'XX'], ['HA', 'CK']].map((halves) => halves.join('')) // prettier-ignore
  const ours = texts.filter(({ path }) => /^(src|test|bench|k8s|config|scripts|bin)\//.test(path))
  t.same(placesOf(new RegExp(`\\b(${marks.join('|')})\\b`), ours), [])
  t.same(placesOf(/\btest\.only\(|\bonly: true/, ours.filter(({ path }) => path !== 'test/repository.test.ts')), []) // prettier-ignore
})

test('samples: every JSON and YAML file parses', async (t) => {
  // A sample that is broken on purpose says so in its name.
  const samples = texts.filter(({ path }) => /\.(json|ya?ml)$|rc$/.test(path) && !/broken|malformed/.test(path))
  for (const { path, text } of samples) {
    if (path.endsWith('.json')) t.doesNotThrow(() => void JSON.parse(text), path)
    else if (path !== '.npmrc') t.same(parseAllDocuments(text).flatMap(({ errors }) => errors.map(String)), [], path) // prettier-ignore
  }
})

test('package: exact versions, and a lock file in step', async (t) => {
  const groups = ['dependencies', 'devDependencies', 'optionalDependencies'] as const
  for (const group of groups) {
    t.same(lock.packages['']?.[group], manifest[group], `${group} stand in the lock file as here`)
    for (const [name, version] of Object.entries(manifest[group] ?? {})) {
      t.match(version, /^\d+\.\d+\.\d+(-[\w.]+)?$/, `${name} has an exact version`)
      t.equal(lock.packages[`node_modules/${name}`]?.version, version, `${name} is locked at it`)
    }
  }
  t.equal(lock.version, manifest.version)
  t.equal(manifest.engines.node, '>=22.19')
  t.same(lock.packages['']?.engines, manifest.engines)
  t.same(Object.entries(lock.packages).filter(([, { resolved }]) => resolved !== undefined), [], 'no host in the lock') // prettier-ignore
})

test('package: what it names exists', async (t) => {
  for (const [name, path] of Object.entries(manifest.bin)) {
    t.ok(existsSync(join(root, path)), `bin ${name}`)
    t.ok((statSync(join(root, path)).mode & 0o111) !== 0, `bin ${name} may be executed`)
  }
  // dist is built.
  for (const path of manifest.files.filter((it) => it !== 'dist')) t.ok(existsSync(join(root, path)), path)
  const tasks = /const tasks = \{([^]*?)\n\}/.exec(read('scripts/run.mjs'))?.[1] ?? ''
  for (const [name, command] of Object.entries(manifest.scripts)) {
    const task = /^node scripts\/run\.mjs ([a-z0-9]+)$/.exec(command)?.[1]
    t.match(tasks, new RegExp(`^ {2}${task}\\b`, 'm'), `npm run ${name} has its task`)
  }
})

test('documents: commands, links and versions in them are real', async (t) => {
  const builtIn = new Set(['ci', 'install', 'test', 'run', 'ls', 'pack'])
  for (const { path, text } of documents.filter((it) => !it.path.startsWith('test/cases/'))) {
    // Commands stand in backquotes or at the start of a line of code; "npm" in a sentence is none.
    const commands = [...text.matchAll(/(?:`|^ *(?:\$ )?)npm (?:run ([a-z][a-z0-9:]*)|([a-z]+))/gm)]
    const unknown = commands.filter(([, script, word]) =>
      script === undefined ? !builtIn.has(word ?? '') : !Object.hasOwn(manifest.scripts, script)
    )
    t.same(unknown.map(([command]) => command), [], `${path}: npm commands`) // prettier-ignore
    const links = [...text.matchAll(/\]\(([^)#\s]+)(#[^)]*)?\)/g)].map((match) => match[1] ?? '')
    const dead = links.filter((link) => !/^[a-z]+:/.test(link) && !existsSync(join(root, dirname(path), link)))
    t.same(dead, [], `${path}: links`)
  }
  const readme = read('README.md')
  for (const command of ['npm test', 'npm run demo']) t.match(readme, command, `README names \`${command}\``)
  t.match(read('CHANGELOG.md'), new RegExp(`^## .*\\b${manifest.version.replaceAll('.', '\\.')}\\b`, 'm'))
})

test('documents: every decision has its four sections', async (t) => {
  const decisions = documents.filter(({ path }) => path.startsWith('docs/decisions/'))
  t.ok(decisions.length > 0, 'there are decisions')
  const numbers = decisions.map(({ path }) => /^docs\/decisions\/(\d{4})-[a-z0-9-]+\.md$/.exec(path)?.[1] ?? path)
  t.same(numbers.filter((number, index) => numbers.indexOf(number) !== index), [], 'no number twice') // prettier-ignore
  for (const { path, text } of decisions) {
    const sections = [...text.matchAll(/^## (.+)$/gm)].map((match) => match[1])
    t.strictSame(sections.slice(0, 4), ['Context', 'Decision', 'Consequences', 'Alternatives'], path)
    t.match(path, /\/\d{4}-[a-z0-9-]+\.md$/)
  }
})

test('documents: every code of an error is explained', { skip: noErrorsDocument() }, async (t) => {
  const codes = [...read('src/base/errors.ts').matchAll(/^ {2}\| '([A-Z_]+)'/gm)].map((match) => match[1] ?? '')
  const errors = read('docs/errors.md')
  t.ok(codes.length > 0)
  for (const code of codes) t.match(errors, new RegExp(`\`${code}\``), code)
})

/** False, or the reason why the codes cannot be compared. */
function noErrorsDocument(): string | false {
  return existsSync(join(root, 'docs', 'errors.md')) ? false : 'docs/errors.md is not written yet'
}

test('files: kinds that the checks above know', async (t) => {
  const kinds = new Set(texts.map(({ path }) => extname(path)))
  for (const kind of ['.ts', '.mjs', '.json', '.md']) t.ok(kinds.has(kind), kind)
})
