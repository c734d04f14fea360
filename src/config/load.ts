/** Reads, checks and types a configuration file. Whatever is wrong with it is one ConfigError with every problem. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { configMistakes } from '../base/limits.ts'
import { absolutePath, buildConfig } from './build.ts'
import { checkDraft } from './check.ts'
import type { Config } from './config.ts'
import { ConfigError, pathToText, type ConfigProblem, type PathStep, type Position } from './problem.ts'
import { readDraft, type Mistake } from './read-draft.ts'
import { fileSchema } from './schema.ts'
import { YamlSource } from './yaml-source.ts'

export type LoadOptions = Readonly<{
  /** What `~` in paths stands for: an absolute path. */
  home: string
  /** Addresses of this machine's interfaces: a listener on 0.0.0.0 or :: has them all. */
  localAddresses?: readonly string[]
  /**
   * Reads the secret of a key from the file with this absolute path; throws TextError. Without it none is looked at.
   */
  readSecret?(path: string): Uint8Array
}>

/** The content of a configuration file and its hash, which tells whether it changed. */
export type FileText = Readonly<{ text: string; hash: string }>

/**
 * Reads and checks a file.
 * @throws ConfigError, also where the file cannot be read.
 */
export function loadConfig(file: string, options: LoadOptions): Config {
  return parseConfig(readConfigFile(file), file, options)
}

/** @throws ConfigError where the file cannot be read or is not UTF-8. */
export function readConfigFile(file: string): FileText {
  const refuse = (message: string): ConfigError => new ConfigError([{ file, line: 1, column: 1, path: '', message }])
  let octets: Buffer
  try {
    octets = readFileSync(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw refuse(code === 'ENOENT' ? 'there is no such file' : `the file cannot be read (${code})`)
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(octets)
    return { text, hash: createHash('sha256').update(octets).digest('hex') }
  } catch {
    throw refuse('the file is not UTF-8')
  }
}

/**
 * Checks the content of a file; relative paths in it start at the folder of `file`.
 * @throws ConfigError
 */
export function parseConfig({ text, hash }: FileText, file: string, options: LoadOptions): Config {
  const source = new YamlSource(text)
  const problems: ConfigProblem[] = source.mistakes.map(({ position, message }) => ({
    file,
    ...position,
    path: '',
    message
  }))
  if (problems.length > 0) throw new ConfigError(problems)

  const warnings: ConfigProblem[] = []
  const tellIn =
    (list: ConfigProblem[]) =>
    ({ offset, ...mistake }: Mistake): void => {
      if (list.length === configMistakes) return
      const { path, message, nearest, expected } = mistake
      const hint = nearest === undefined ? {} : { nearest }
      const right = expected === undefined ? {} : { expected }
      const position = source.positionOf({ ...mistake, ...(offset === undefined ? {} : { offset }) })
      list.push({ file, ...position, path: pathToText(path), message, ...hint, ...right })
    }
  const report = tellIn(problems)
  const draft = readDraft(fileSchema, source.content, report)
  const positionOf = (path: readonly PathStep[], at: 'key' | 'value' = 'key'): Position =>
    source.positionOf({ path, at })
  if (draft !== undefined) {
    const { localAddresses = [], readSecret, home } = options
    const folder = dirname(resolve(file))
    const secretOf =
      readSecret === undefined ? null : (path: string) => readSecret(absolutePath(path, { folder, home }))
    const isWritten = (path: readonly PathStep[]): boolean => isIn(source.content, path)
    checkDraft(draft, {
      report,
      warn: tellIn(warnings),
      isWritten,
      secretOf,
      localAddresses,
      lineOf: (path) => positionOf(path, 'value').line
    })
  }
  if (problems.length > 0) {
    const around = { folder: dirname(resolve(file)), home: options.home }
    throw new ConfigError(
      problems.sort((one, other) => one.line - other.line || one.column - other.column),
      warnings,
      draft?.cluster?.source?.manifests?.flatMap((path) => (path === undefined ? [] : absolutePath(path, around)))
    )
  }
  const absolute = resolve(file)
  const content = fileSchema.parse(source.content)
  const positions = source.sectionPositions()
  return buildConfig(content, {
    file: absolute,
    folder: dirname(absolute),
    hash,
    positions,
    warnings,
    home: options.home,
    positionOf
  })
}

const isIn = (content: unknown, path: readonly PathStep[]): boolean =>
  path.reduce<unknown>((holder, step) => {
    if (typeof holder !== 'object' || holder === null || !Object.hasOwn(holder, step)) return undefined
    return (holder as Readonly<Record<PathStep, unknown>>)[step]
  }, content) !== undefined
