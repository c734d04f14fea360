/**
 * Finds and reads the manifest files at and below the configured paths.
 *
 * Below a folder these are `*.yaml`, `*.yml` and `*.json`; names that begin with a dot are skipped (so is the `..data`
 * of a mounted ConfigMap, whose files are reached through their symlinks). Symlinks are followed. A file that has
 * several names counts once, under the first.
 */
import { createHash } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { manifestFileOctets, manifestFiles, manifestFolderDepth } from '../../base/limits.ts'

/** `print` is equal as long as nobody wrote the file; `changedAtMs` is wall time in milliseconds. */
export type FoundFile = Readonly<{ path: string; print: string; sizeOctets: number; changedAtMs: number }>
export type FileProblem = Readonly<{ path: string; reason: string }>
export type Listing = Readonly<{
  files: readonly FoundFile[]
  problems: readonly FileProblem[]
  /** Folders and files that are there but cannot be looked at now; what was known of them still holds. */
  unreadable: readonly string[]
  /** Configured paths that do not exist; `problems` is silent about them. */
  missing: readonly string[]
}>
/** `isSettled`: nobody wrote the file while it was read. */
export type FileContent = Readonly<{ text: string; hash: string; isSettled: boolean }>

const readChunkOctets = 1 << 20
/** Entries of folders looked at between two pauses. */
const entriesPerTurn = 200
const manifestName = /^[^.].*\.(yaml|yml|json)$/

/** Lists the files in the order of their paths. `pause` is called wherever it has worked for a while. */
export async function findManifestFiles(paths: readonly string[], pause: () => Promise<void>): Promise<Listing> {
  const search = new Search()
  let entries = 0
  for (const path of paths) {
    for (const _ of search.lookAt(path, 0)) {
      if (++entries % entriesPerTurn === 0) await pause()
    }
  }
  const { files, problems, unreadable, missing } = search
  return { files: files.sort((a, b) => (a.path < b.path ? -1 : 1)), problems, unreadable, missing }
}

class Search {
  readonly files: FoundFile[] = []
  readonly problems: FileProblem[] = []
  readonly unreadable: string[] = []
  readonly missing: string[] = []
  readonly #seen = new Set<string>()

  #add(path: string, identity: string, status: Stats): void {
    if (this.files.length < manifestFiles) {
      const print = `${identity} ${status.size} ${status.mtimeMs} ${status.ctimeMs}`
      this.files.push({ path, print, sizeOctets: status.size, changedAtMs: status.ctimeMs })
    } else if (this.files.length === manifestFiles && this.problems.at(-1)?.reason !== tooManyFiles) {
      this.problems.push({ path, reason: tooManyFiles })
    }
  }

  /** Looks at a path and at what is below it; yields after each entry. Depth 0 is a path that somebody configured. */
  *lookAt(path: string, depth: number): Generator<void> {
    yield
    const status = this.#statusOf(path, depth)
    if (status === null) return
    if (!status.isFile() && !status.isDirectory()) {
      this.problems.push({ path, reason: 'neither a file nor a folder' })
      if (depth === 0) this.unreadable.push(path)
      return
    }
    const identity = `${status.dev}:${status.ino}`
    // Seen before: another name of the same file, or a symlink to a folder above, which would go round for ever.
    if (this.#seen.has(identity)) return
    this.#seen.add(identity)
    if (status.isDirectory()) yield* this.#lookInto(path, depth)
    else this.#add(path, identity, status)
  }

  *#lookInto(folder: string, depth: number): Generator<void> {
    if (depth > manifestFolderDepth) {
      this.problems.push({ path: folder, reason: `more than ${manifestFolderDepth} folders deep; it is left out` })
      return
    }
    try {
      const entries = readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
      for (const entry of entries) {
        const mayBeFolder = entry.isDirectory() || entry.isSymbolicLink()
        if (entry.name.startsWith('.') || !(mayBeFolder || manifestName.test(entry.name))) continue
        yield* this.lookAt(join(folder, entry.name), depth + 1)
      }
    } catch (error) {
      this.#cannotLook(folder, depth, error)
    }
  }

  #statusOf(path: string, depth: number): Stats | null {
    try {
      const status = statSync(path)
      // A symlink to a file of another kind, such as a README.
      if (depth > 0 && !status.isDirectory() && !manifestName.test(path.slice(path.lastIndexOf('/') + 1))) return null
      return status
    } catch (error) {
      this.#cannotLook(path, depth, error)
      return null
    }
  }

  /** What is gone below a folder is no problem: somebody has removed it. */
  #cannotLook(path: string, depth: number, error: unknown): void {
    if (isGone(error)) {
      if (depth === 0) this.missing.push(path)
      return
    }
    this.problems.push({ path, reason: reasonOf(error) })
    this.unreadable.push(path)
  }
}

const tooManyFiles = `more than ${manifestFiles} manifest files; the others are left out`

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '')
const isGone = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(codeOf(error))

/** Why the file system refused, in words. */
export function reasonOf(error: unknown): string {
  switch (codeOf(error)) {
    case 'EACCES':
    case 'EPERM':
      return 'may not be read (permissions)'
    case 'ELOOP':
      return 'a symlink that leads to itself'
    default:
      return error instanceof Error ? error.message : String(error)
  }
}

/**
 * The file's text and the hash of its octets. Rejects where it cannot be read, is too large, or is not UTF-8;
 * `reasonOf` has the words.
 */
export async function readManifestFile(file: FoundFile): Promise<FileContent> {
  const tooLarge = `larger than ${manifestFileOctets} octets`
  if (file.sizeOctets > manifestFileOctets) throw new Error(tooLarge)
  const handle = await open(file.path, 'r')
  try {
    const before = await handle.stat()
    // Never read from what only has the name of a file: a pipe would not end.
    if (!before.isFile()) throw new Error('neither a file nor a folder')
    const hash = createHash('sha256')
    const chunks: Buffer[] = []
    let sizeOctets = 0
    for (;;) {
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(readChunkOctets), 0, readChunkOctets, null)
      if (bytesRead === 0) break
      sizeOctets += bytesRead
      if (sizeOctets > manifestFileOctets) throw new Error(tooLarge)
      chunks.push(buffer.subarray(0, bytesRead))
      hash.update(buffer.subarray(0, bytesRead))
    }
    const after = await handle.stat()
    const isSettled = after.size === sizeOctets && after.mtimeMs === before.mtimeMs
    return { text: decode(chunks), hash: hash.digest('base64'), isSettled }
  } finally {
    await handle.close()
  }
}

/** UTF-8 with or without a byte order mark. @throws Error */
function decode(chunks: readonly Buffer[]): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch {
    throw new Error('not UTF-8 text')
  }
}
