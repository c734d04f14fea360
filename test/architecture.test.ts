/**
 * What may import what, and which powers (sockets, time, environment) each part has. ARCHITECTURE.md explains the
 * rules; this test holds them, by reading the syntax tree of every file below src/.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import ts from 'typescript'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const maxLines = 400
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, Record<string, string>>
const dependencies = new Set(Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }))

/** Path below src/ with `/`, and its text. */
type Source = { path: string; text: string }
type Import = { from: string; to: string; typeOnly: boolean; names: string[]; line: number }

const everyPart = [
  'base', 'wire', 'server', 'policy', 'zone', 'cache', 'peer', 'health', 'operator', 'cluster', 'transfer', 'pipeline', 'config', 'admin', 'cli', 'main'
] as const // prettier-ignore
type Part = (typeof everyPart)[number]

/** Parts that know nothing of one another: they meet in the pipeline, or are built together by main. */
const leaf: Part[] = ['base', 'wire']
const mayImport: Record<Part, readonly Part[]> = {
  base: [],
  wire: ['base'],
  server: leaf,
  policy: leaf,
  zone: leaf,
  cache: leaf,
  peer: leaf,
  health: leaf,
  operator: leaf,
  config: leaf,
  cluster: [...leaf, 'zone'],
  transfer: [...leaf, 'zone'],
  pipeline: [...leaf, 'server', 'policy', 'zone', 'cache', 'peer', 'health', 'cluster', 'transfer'],
  admin: leaf,
  cli: everyPart,
  main: everyPart.filter((part) => part !== 'cli')
}
/** The admin side reads what the others count: their types, never their code. */
const mayImportTypesOfAll: ReadonlySet<Part> = new Set(['admin'])

/** Names of node:net that open nothing. */
const harmlessNetNames = new Set(['isIP', 'isIPv4', 'isIPv6'])
/** Which folders may use which of Node's modules; modules that are not named here are free. */
const nodeModules: Record<string, (path: string) => boolean> = {
  'node:dgram': (path) => /^(server|peer)\//.test(path),
  'node:net': (path) => /^(server|peer)\//.test(path),
  'node:tls': (path) => /^(server|peer|cluster\/sources)\//.test(path),
  'node:http': (path) => /^(admin|cluster\/sources)\//.test(path),
  'node:https': (path) => /^(admin|cluster\/sources)\//.test(path),
  'node:http2': () => false,
  'node:child_process': () => false,
  'node:timers': () => false,
  'node:timers/promises': () => false,
  'node:perf_hooks': (path) => path === 'base/clock.ts'
}
const mayTouchProcess = (path: string) => path.startsWith('cli/') || path === 'main.ts' || path.startsWith('main/')

const partOf = (path: string) => (path === 'main.ts' ? 'main' : path.slice(0, path.indexOf('/'))) as Part

const parse = (source: Source) => ts.createSourceFile(source.path, source.text, ts.ScriptTarget.Latest, true)

function eachNode(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node)
  node.forEachChild((child) => eachNode(child, visit))
}

const lineOf = (file: ts.SourceFile, node: ts.Node) => file.getLineAndCharacterOfPosition(node.getStart()).line + 1

function importedNames(node: ts.ImportDeclaration): { names: string[]; typeOnly: boolean } {
  const clause = node.importClause
  const bindings = clause?.namedBindings
  if (bindings === undefined || !ts.isNamedImports(bindings) || clause?.name !== undefined) {
    return { names: ['*'], typeOnly: clause?.isTypeOnly ?? false }
  }
  return {
    names: bindings.elements.map((element) => (element.propertyName ?? element.name).text),
    typeOnly: clause?.isTypeOnly === true || bindings.elements.every((element) => element.isTypeOnly)
  }
}

/**
 * Every way in which one file names another: import, export from, import(), getBuiltinModule, and the URL of a worker's
 * file.
 */
function importsOf(source: Source): Import[] {
  const file = parse(source)
  const found: Import[] = []
  const add = (node: ts.Node, specifier: string, typeOnly: boolean, names: string[]) => {
    const to = specifier.startsWith('.') ? posix.join(posix.dirname(source.path), specifier) : specifier
    found.push({ from: source.path, to, typeOnly, names, line: lineOf(file, node) })
  }
  eachNode(file, (node) => {
    if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
      const { names, typeOnly } = importedNames(node)
      add(node, node.moduleSpecifier.text, typeOnly, names)
    } else if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) {
      if (ts.isStringLiteral(node.moduleSpecifier)) add(node, node.moduleSpecifier.text, node.isTypeOnly, ['*'])
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      if (ts.isStringLiteral(node.argument.literal)) add(node, node.argument.literal.text, true, ['*'])
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const argument = node.arguments[0]
      if (argument !== undefined && ts.isStringLiteralLike(argument)) add(node, argument.text, false, ['*'])
    } else if (ts.isCallExpression(node) && node.expression.getText().endsWith('.getBuiltinModule')) {
      const argument = node.arguments[0]
      if (argument !== undefined && ts.isStringLiteralLike(argument)) add(node, argument.text, false, ['*'])
    } else if (ts.isNewExpression(node) && node.expression.getText() === 'URL') {
      const argument = node.arguments?.[0]
      if (argument !== undefined && ts.isStringLiteralLike(argument) && argument.text.endsWith('.ts')) {
        add(node, argument.text, false, ['*'])
      }
    }
  })
  return found
}

function edgeProblem({ from, to, typeOnly, names, line }: Import): string | null {
  if (/^[a-z]/.test(to) && to.endsWith('.ts')) {
    const [one, other] = [partOf(from), partOf(to)]
    if (!everyPart.includes(other)) return `${from}:${line} imports ${to}, which is no part of the layout`
    if (one === other || mayImport[one].includes(other)) return null
    if (typeOnly && mayImportTypesOfAll.has(one)) return null
    return `${from}:${line} imports ${to}: ${one} may not import ${other}`
  }
  if (to.startsWith('.')) return `${from}:${line} imports ${to} from outside src/`
  if (to.startsWith('node:')) {
    const allowed = nodeModules[to]
    if (allowed === undefined || allowed(from)) return null
    if (to === 'node:net' && names.every((name) => harmlessNetNames.has(name))) return null
    return typeOnly ? null : `${from}:${line} imports ${to}`
  }
  const packageName = /^(@[^/]+\/)?[^/]+/.exec(to)?.[0] ?? to
  return dependencies.has(packageName) ? null : `${from}:${line} imports ${to}, which is no dependency of the package`
}

/** One cycle of code as a list of paths, or null. Imports of types alone are erased, and so make none. */
function findCycle(imports: readonly Import[]): string[] | null {
  const edges = new Map<string, string[]>()
  for (const { from, to, typeOnly } of imports) if (!typeOnly) edges.set(from, [...(edges.get(from) ?? []), to])
  const done = new Set<string>()
  const visit = (path: string, trail: string[]): string[] | null => {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path]
    if (done.has(path)) return null
    for (const to of edges.get(path) ?? []) {
      const cycle = visit(to, [...trail, path])
      if (cycle !== null) return cycle
    }
    done.add(path)
    return null
  }
  for (const path of edges.keys()) {
    const cycle = visit(path, [])
    if (cycle !== null) return cycle
  }
  return null
}

/** What a syntax node does that its file may not do, in words. */
function powerOf(node: ts.Node, path: string): string | null {
  if (ts.isPropertyAccessExpression(node)) {
    const text = `${node.expression.getText()}.${node.name.text}`
    if (/^(globalThis\.)?(Date\.now|performance\.now|process\.hrtime)$/.test(text)) {
      return path === 'base/clock.ts' ? null : `reads the time by ${text}`
    }
    if (/^process\.(env|exit|exitCode|argv)$/.test(text)) return mayTouchProcess(path) ? null : `touches ${text}`
  }
  if (ts.isNewExpression(node) && node.expression.getText() === 'Date' && (node.arguments?.length ?? 0) === 0) {
    return 'reads the time by new Date()'
  }
  if (ts.isCallExpression(node) && /^(globalThis\.)?(setTimeout|setInterval)$/.test(node.expression.getText())) {
    return path === 'base/clock.ts' ? null : `starts a timer by ${node.expression.getText()}`
  }
  if (ts.isCallExpression(node) && /^(globalThis\.)?fetch$/.test(node.expression.getText())) {
    return path.startsWith('cli/') ? null : 'asks over HTTP by fetch'
  }
  if (ts.isExportAssignment(node)) return 'has a default export'
  if (ts.canHaveModifiers(node) && ts.getModifiers(node)?.some((it) => it.kind === ts.SyntaxKind.DefaultKeyword)) {
    return 'has a default export'
  }
  return null
}

/** What needs a reason in a comment: on its line, or within three lines above it with no blank line between. */
function needsReason(node: ts.Node): string | null {
  if (node.kind === ts.SyntaxKind.AnyKeyword) return 'any'
  if (ts.isAsExpression(node) && ts.isAsExpression(node.expression) && node.expression.type.getText() === 'unknown') {
    return 'as unknown as'
  }
  return ts.isIdentifier(node) && node.text === 'setImmediate' ? 'setImmediate' : null
}

function hasReason(lines: readonly string[], line: number): boolean {
  const above = lines.slice(Math.max(0, line - 4), line)
  return above.slice(above.lastIndexOf('') + 1).some((text) => /\/\/|\/\*|^\s*\*/.test(text))
}

/** Every rule broken inside one file, as `path:line what`. */
function fileProblems(source: Source): string[] {
  const { path, text } = source
  const file = parse(source)
  const lines = text.split('\n')
  const problems: string[] = []
  if (posix.basename(path) === 'index.ts') problems.push(`${path}:1 is an index file: an import names the file to open`)
  if (lines.length - 1 > maxLines) problems.push(`${path}:${lines.length - 1} is longer than ${maxLines} lines`)
  if (!/^(#!.*\n)?\/(\*\*|\/)/.test(text)) problems.push(`${path}:1 does not begin with a comment on what it is for`)
  const suppression = lines.findIndex((line) => /@ts-(ignore|nocheck|expect-error)/.test(line))
  if (suppression >= 0) problems.push(`${path}:${suppression + 1} silences the compiler`)
  eachNode(file, (node) => {
    const power = powerOf(node, path)
    if (power !== null) problems.push(`${path}:${lineOf(file, node)} ${power}`)
    const bare = needsReason(node)
    const line = lineOf(file, node)
    if (bare !== null && !ts.isImportSpecifier(node.parent) && !hasReason(lines, line)) {
      problems.push(`${path}:${line} ${bare} without a reason beside it`)
    }
  })
  return problems
}

const sources: Source[] = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /\.[cm]?[jt]s$/.test(entry.name))
  .map((entry) => join(entry.parentPath, entry.name))
  .map((path) => ({ path: path.slice(join(root, 'src').length + 1), text: readFileSync(path, 'utf8') }))
const imports = sources.flatMap(importsOf)

test('imports: only those that the layout allows', async (t) => {
  t.ok(imports.length > 0, 'imports were read')
  for (const source of sources) {
    const problems = imports.filter(({ from }) => from === source.path).map(edgeProblem)
    t.same(problems.filter((it) => it !== null), [], source.path) // prettier-ignore
  }
})

test('imports: no cycle', async (t) => t.same(findCycle(imports), null))

test('files: powers, length and reasons', async (t) => {
  for (const source of sources) t.same(fileProblems(source), [], source.path)
})

test('the rules see what they forbid', async (t) => {
  const head = '// For the test.\n'
  const file = (path: string, body: string) => ({ path, text: head + body })
  const problemsOf = (source: Source) => [
    ...importsOf(source).map(edgeProblem).filter((it) => it !== null),
    ...fileProblems(source)
  ] // prettier-ignore
  const rows: { name: string; source: Source; want: RegExp | null }[] = [
    { name: 'sibling', source: file('cache/a.ts', "import { b } from '../zone/b.ts'"), want: /cache may not import zone/ },
    { name: 'sibling type', source: file('zone/a.ts', "import type { B } from '../peer/b.ts'"), want: /zone may not import peer/ },
    { name: 'upwards', source: file('wire/a.ts', "export { b } from '../server/b.ts'"), want: /wire may not import server/ },
    { name: 'dynamic', source: file('base/a.ts', "await import('../wire/b.ts')"), want: /base may not import wire/ },
    { name: 'worker', source: file('zone/a.ts', "new URL('../main.ts', import.meta.url)"), want: /zone may not import main/ },
    { name: 'cli from main', source: file('main.ts', "import { b } from './cli/b.ts'"), want: /main may not import cli/ },
    { name: 'code in admin', source: file('admin/a.ts', "import { b } from '../cache/b.ts'"), want: /admin may not import cache/ },
    { name: 'type in admin', source: file('admin/a.ts', "import type { B } from '../cache/b.ts'"), want: null },
    { name: 'zone in cluster', source: file('cluster/sources/a.ts', "import { b } from '../../zone/b.ts'"), want: null },
    { name: 'unknown part', source: file('base/a.ts', "import { b } from '../util/b.ts'"), want: /no part of the layout/ },
    { name: 'outside', source: file('base/a.ts', "import { b } from '../../test/b.ts'"), want: /outside src/ },
    { name: 'dgram', source: file('zone/a.ts', "import { createSocket } from 'node:dgram'"), want: /imports node:dgram/ },
    { name: 'net', source: file('zone/a.ts', "import { isIP, connect } from 'node:net'"), want: /imports node:net/ },
    { name: 'isIP', source: file('config/a.ts', "import { isIP } from 'node:net'"), want: null },
    { name: 'http', source: file('peer/a.ts', "import http from 'node:http'"), want: /imports node:http/ },
    { name: 'http in admin', source: file('admin/a.ts', "import { createServer } from 'node:http'"), want: null },
    { name: 'builtin', source: file('zone/a.ts', "process.getBuiltinModule('node:http')"), want: /imports node:http/ },
    { name: 'fetch', source: file('peer/a.ts', "await fetch('')"), want: /by fetch/ },
    { name: 'package', source: file('cache/a.ts', "import { LRUCache } from 'lru-cache'"), want: null },
    { name: 'development', source: file('wire/a.ts', "import packet from 'dns-packet'"), want: /no dependency/ },
    { name: 'Date.now', source: file('zone/a.ts', 'const a = Date.now()'), want: /a.ts:2 reads the time/ },
    { name: 'performance', source: file('zone/a.ts', 'const { now } = performance; performance.now()'), want: /reads the time/ },
    { name: 'new Date', source: file('zone/a.ts', 'const a = new Date()'), want: /reads the time/ },
    { name: 'new Date of a time', source: file('zone/a.ts', 'const a = new Date(5)'), want: null },
    { name: 'in words only', source: file('zone/a.ts', "// Date.now() is not used\nconst a = 'Date.now()'"), want: null },
    { name: 'timer', source: file('zone/a.ts', 'setTimeout(() => {}, 5)'), want: /starts a timer/ },
    { name: 'clock', source: file('base/clock.ts', 'setTimeout(() => Date.now(), 5)'), want: null },
    { name: 'immediate', source: file('zone/a.ts', '\nsetImmediate(() => {})'), want: /setImmediate without a reason/ },
    { name: 'reasoned', source: file('zone/a.ts', '\n// Lets queries in between.\nsetImmediate(() => {})'), want: null },
    { name: 'env', source: file('peer/a.ts', 'const a = process.env.HOME'), want: /touches process.env/ },
    { name: 'exit', source: file('server/a.ts', 'process.exit(1)'), want: /touches process.exit/ },
    { name: 'exit in cli', source: file('cli/a.ts', 'process.exit(1)'), want: null },
    { name: 'default', source: file('zone/a.ts', 'export default function a() {}'), want: /default export/ },
    { name: 'default value', source: file('zone/a.ts', 'export default 5'), want: /default export/ },
    { name: 'index', source: file('zone/index.ts', 'export const a = 1'), want: /index file/ },
    { name: 'long', source: file('zone/a.ts', 'const a = 1\n'.repeat(400)), want: /longer than 400/ },
    { name: 'any', source: file('zone/a.ts', '\nlet a: any'), want: /a.ts:3 any without a reason/ },
    { name: 'double cast', source: file('zone/a.ts', '\nconst a = b as unknown as C'), want: /as unknown as without/ },
    { name: 'cast with a reason', source: file('zone/a.ts', '\nconst a = b as unknown as C // the types lag behind'), want: null },
    { name: 'a reason too far up', source: file('zone/a.ts', '// why\n\nlet a: any'), want: /any without a reason/ },
    { name: 'silenced', source: file('zone/a.ts', '// @ts-expect-error because\nconst a: string = 1'), want: /silences/ },
    { name: 'no word at the top', source: { path: 'zone/a.ts', text: 'export const a = 1\n' }, want: /does not begin/ }
  ] // prettier-ignore
  for (const { name, source, want } of rows) {
    const problems = problemsOf(source)
    if (want === null) t.same(problems, [], name)
    else t.match(problems.join('\n'), want, name)
  }
  const edge = (from: string, to: string): Import => ({ from, to, typeOnly: false, names: [], line: 1 })
  t.same(findCycle([edge('a.ts', 'b.ts'), edge('b.ts', 'c.ts'), edge('c.ts', 'b.ts')]), ['b.ts', 'c.ts', 'b.ts'])
  t.equal(findCycle([edge('a.ts', 'b.ts'), edge('a.ts', 'c.ts'), edge('b.ts', 'c.ts')]), null)
  t.equal(findCycle([edge('a.ts', 'b.ts'), { ...edge('b.ts', 'a.ts'), typeOnly: true }]), null, 'types alone')
})
