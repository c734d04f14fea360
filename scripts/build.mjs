// Builds dist/, if it is not what the sources would give anyway.
//
// Several tasks of one clone may build at once, and may run what is built: each compiles into a folder of its own, and
// puts that in place by a rename. Like run.mjs, this needs nothing that Node 18 lacks.
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'

/** What the output depends on. */
const inputs = [
  'src',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'scripts/bundle.mjs',
  'node_modules/esbuild/package.json'
]
const stampName = '.built-from'
/**
 * Folders beside dist/, so that source maps say the same; one that is older than this was left by a build that was
 * killed.
 */
const ownFolder = /^\.dist-/
const abandonedAfterMs = 600_000

function filesBelow(path) {
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path)
    .sort()
    .flatMap((name) => filesBelow(join(path, name)))
}

function digestOf(root, paths) {
  const hash = createHash('sha256')
  for (const file of paths
    .filter((path) => existsSync(join(root, path)))
    .flatMap((path) => filesBelow(join(root, path)))) {
    if (file.endsWith(stampName)) continue
    const content = readFileSync(file)
    hash.update(`${relative(root, file)}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex')
}

/** What a folder says it was built from, or null where it is not there, or its files are not as they were written. */
function builtFrom(folder) {
  try {
    const [from, files] = readFileSync(join(folder, stampName), 'utf8').split('\n')
    return files === digestOf(folder, ['.']) ? from : null
  } catch {
    return null
  }
}

/** @param compile Compiles into the folder it is given, or ends the process. */
export function build(root, compile) {
  const dist = join(root, 'dist')
  const from = digestOf(root, inputs)
  if (builtFrom(dist) === from) return
  for (const name of readdirSync(root).filter((name) => ownFolder.test(name))) {
    const isAbandoned = Date.now() - statSync(join(root, name)).mtimeMs > abandonedAfterMs
    if (isAbandoned) rmSync(join(root, name), { recursive: true, force: true })
  }
  const own = (what) => join(root, `.dist-${what}-${process.pid}-${randomBytes(4).toString('hex')}`)
  const made = own('new')
  mkdirSync(made)
  process.once('exit', () => rmSync(made, { recursive: true, force: true }))
  compile(made)
  writeFileSync(join(made, stampName), `${from}\n${digestOf(made, ['.'])}\n`)
  // Another build may take the old one away, or put its own in place, between any two lines.
  for (let isInPlace = false; !isInPlace && builtFrom(dist) !== from;) {
    const old = own('old')
    unless('ENOENT', () => renameSync(dist, old))
    isInPlace = unless('ENOTEMPTY', () => renameSync(made, dist))
    rmSync(old, { recursive: true, force: true })
  }
}

/** False: it failed with this code. @throws Error where it failed otherwise. */
function unless(code, attempt) {
  try {
    attempt()
    return true
  } catch (error) {
    if (error.code !== code) throw error
    return false
  }
}
