/**
 * Where the programs are that a benchmark compares with, or needs.
 *
 * Looked for on PATH, where Debian puts daemons, and where Go puts programs; CoreDNS is built into .cache/ when Go is
 * there. What is missing is left out by its caller.
 */
import { spawnSync } from 'node:child_process'
import { accessSync, constants, mkdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { PeerdnsProgram } from './peerdns.ts'

export type Program = Readonly<{ path: string; version: string }>

/** What can be measured here: null where it is not installed. */
export type Rivals = Readonly<{
  peerdns: PeerdnsProgram
  coredns: Program | null
  unbound: Program | null
  knot: Program | null
  dnsdist: Program | null
  dnsmasq: Program | null
  /** The compiled floor in C. */
  cEcho: string | null
}>

const corednsPackage = 'github.com/coredns/coredns@v1.15.0'
const buildTimeoutMs = 20 * 60_000
/** Daemons lie here, which is not on everybody's PATH. */
const daemonFolders = ['/usr/sbin', '/usr/local/sbin', '/sbin']

/** Standard output and error of a command that ends soon; null where it cannot be run. */
export function outputOf(command: string, args: readonly string[]): string | null {
  const done = spawnSync(command, args, { encoding: 'utf8', timeout: 20_000 })
  return done.error === undefined ? `${done.stdout}${done.stderr}` : null
}

function findIn(folders: readonly string[], name: string): string | null {
  for (const folder of folders) {
    const path = join(folder, name)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // The next folder.
    }
  }
  return null
}

export const findProgram = (name: string, more: readonly string[] = []): string | null =>
  findIn([...(process.env['PATH'] ?? '').split(delimiter), ...daemonFolders, ...more], name)

function withVersion(path: string | null, args: readonly string[], pattern: RegExp): Program | null {
  if (path === null) return null
  const version = pattern.exec(outputOf(path, args) ?? '')?.[1]
  return { path, version: version ?? 'unknown version' }
}

export const findUnbound = (): Program | null => withVersion(findProgram('unbound'), ['-V'], /Version (\S+)/)

export const findDnsperf = (): Program | null => withVersion(findProgram('dnsperf'), ['-h'], /Version (\S+)/)

export const findKnot = (): Program | null => withVersion(findProgram('knotd'), ['--version'], /version (\S+)/)

export const findDnsdist = (): Program | null => withVersion(findProgram('dnsdist'), ['--version'], /dnsdist (\S+)/)

export const findDnsmasq = (): Program | null => withVersion(findProgram('dnsmasq'), ['--version'], /version (\S+)/i)

export const findCompiler = (): string | null => findProgram('cc') ?? findProgram('gcc')

const asCoredns = (path: string | null): Program | null => withVersion(path, ['-version'], /CoreDNS-(\S+)/)

/** @param cacheFolder where a build of ours lies, or will lie */
export function findCoredns(cacheFolder: string, say: (line: string) => void): Program | null {
  const go = findProgram('go', ['/usr/local/go/bin'])
  const goPath = go === null ? '' : (outputOf(go, ['env', 'GOPATH'])?.trim() ?? '')
  const found = findProgram('coredns', [...(goPath === '' ? [] : [join(goPath, 'bin')]), cacheFolder])
  if (found !== null || go === null) return asCoredns(found)
  say(`building ${corednsPackage} into ${cacheFolder} (some minutes, once)`)
  mkdirSync(cacheFolder, { recursive: true })
  const env = { ...process.env, GOBIN: cacheFolder }
  const built = spawnSync(go, ['install', corednsPackage], { env, encoding: 'utf8', timeout: buildTimeoutMs })
  if (built.status !== 0) say(`CoreDNS could not be built: ${built.stderr.trim().split('\n').at(-1) ?? ''}`)
  return asCoredns(findIn([cacheFolder], 'coredns'))
}
