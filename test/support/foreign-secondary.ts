/** Real servers that take zones of ours by transfer: BIND, Knot and NSD. `whyNoSecondary` says what is missing. */
import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { diesWithUs } from './dies-with-us.ts'

export type SecondaryKind = 'bind' | 'knot' | 'nsd'

export type SecondaryKey = Readonly<{ name: string; algorithm: string; secret: string }>

export type ForeignSecondary = Readonly<{
  /** Every record of a zone as it holds it, sorted; empty where it has no such zone yet. */
  records: (zone: string) => Promise<string[]>
  /** What it wrote. */
  log: () => string
}>

export type SecondaryOptions = Readonly<{
  port: number
  primaryPort: number
  zones: readonly string[]
  key: SecondaryKey | null
}>

const programs: Record<SecondaryKind, string> = {
  bind: '/usr/sbin/named',
  knot: '/usr/sbin/knotd',
  nsd: '/usr/sbin/nsd'
}

/** Why a kind cannot be run here; null: it can. */
export function whyNoSecondary(kind: SecondaryKind): string | null {
  if (!existsSync(programs[kind])) return `${kind} is not installed`
  return existsSync('/usr/bin/dig') ? null : 'dig is not installed'
}

/** Starts it; it ends with the test. */
export function startSecondary(t: Test, kind: SecondaryKind, options: SecondaryOptions): ForeignSecondary {
  const folder = mkdtempSync(join(tmpdir(), `peerdns-${kind}-`))
  const [args, file, text] = { bind, knot, nsd }[kind](folder, options)
  mkdirSync(join(folder, 'db'))
  writeFileSync(file, text)
  const [command, commandArgs] = diesWithUs(programs[kind], args)
  const child = spawn(command, commandArgs, { stdio: ['ignore', 'pipe', 'pipe'] })
  let log = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  t.teardown(async () => {
    // NSD's processes end with the first one only if it may say so.
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
    await ended
    clearTimeout(timer)
    rmSync(folder, { recursive: true, force: true })
  })
  return { records: async (zone) => axfr(options.port, zone), log: () => log }
}

/** All records of a zone, sorted, its SOA once. Our own process may be the one that is asked. */
export async function axfr(port: number, zone: string, key: SecondaryKey | null = null): Promise<string[]> {
  const keyArgs = key === null ? [] : ['-y', `${key.algorithm}:${key.name}:${key.secret}`]
  const args = ['@127.0.0.1', '-p', String(port), ...keyArgs, '+noall', '+answer', '+onesoa', 'AXFR', zone]
  const options = { maxBuffer: 64 * 1024 * 1024 }
  const { stdout } = await promisify(execFile)('dig', [...args, '+time=20', '+tries=1'], options).catch(() => ({
    stdout: ''
  }))
  const lines = stdout.split('\n').filter((line) => line !== '' && !line.startsWith(';'))
  return lines.map((line) => line.replaceAll(/\s+/g, ' ')).sort()
}

type Made = readonly [args: string[], file: string, text: string]

function bind(folder: string, { port, primaryPort, zones, key }: SecondaryOptions): Made {
  const file = join(folder, 'named.conf')
  const keyText = key === null ? '' : `key "${key.name}" { algorithm ${key.algorithm}; secret "${key.secret}"; };\n`
  const options = `options {
  directory "${folder}"; pid-file none; session-keyfile none; managed-keys-directory "${folder}";
  listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; dnssec-validation no;
  allow-transfer { any; }; notify no; serial-query-rate 1000; empty-zones-enable no;
};
controls { };
`
  const primary = `127.0.0.1 port ${primaryPort}${key === null ? '' : ` key "${key.name}"`}`
  const zoneTexts = zones.map(
    (zone) => `zone "${zone}" { type secondary; primaries { ${primary}; }; file "${join(folder, zone)}"; };\n`
  )
  return [['-g', '-c', file, '-n', '1'], file, keyText + options + zoneTexts.join('')]
}

function knot(folder: string, { port, primaryPort, zones, key }: SecondaryOptions): Made {
  const file = join(folder, 'knot.conf')
  const named = key === null ? '' : `    key: ${key.name}\n`
  const keyText =
    key === null ? '' : `key:\n  - id: ${key.name}\n    algorithm: ${key.algorithm}\n    secret: ${key.secret}\n`
  const zoneTexts = zones.map(
    (zone) => `  - domain: ${zone}\n    master: primary\n    acl: [notify, transfer]\n    zonefile-sync: -1\n`
  )
  const text = `server:
  listen: 127.0.0.1@${port}
  rundir: ${folder}
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
${keyText}remote:
  - id: primary
    address: 127.0.0.1@${primaryPort}
${named}acl:
  - id: notify
    address: 127.0.0.1
    action: notify
${named}  - id: transfer
    address: 127.0.0.1
    action: transfer
database:
  storage: ${join(folder, 'db')}
template:
  - id: default
    storage: ${folder}
log:
  - target: stderr
    any: info
zone:
${zoneTexts.join('')}`
  return [['-c', file], file, text]
}

function nsd(folder: string, { port, primaryPort, zones, key }: SecondaryOptions): Made {
  const file = join(folder, 'nsd.conf')
  const keyName = key === null ? 'NOKEY' : key.name
  const keyText =
    key === null ? '' : `key:\n  name: "${key.name}"\n  algorithm: ${key.algorithm}\n  secret: "${key.secret}"\n`
  const zoneTexts = zones.map(
    (zone) => `zone:
  name: "${zone}"
  zonefile: "${join(folder, zone)}"
  allow-notify: 127.0.0.1 ${keyName}
  request-xfr: 127.0.0.1@${primaryPort} ${keyName}
  provide-xfr: 127.0.0.1 NOKEY
`
  )
  const text = `server:
  ip-address: 127.0.0.1@${port}
  server-count: 1
  username: ""
  chroot: ""
  zonesdir: "${folder}"
  database: ""
  zonelistfile: "${join(folder, 'zones')}"
  xfrdfile: ""
  xfrdir: "${folder}"
  pidfile: ""
  logfile: ""
  xfrd-reload-timeout: 0
remote-control:
  control-enable: no
${keyText}${zoneTexts.join('')}`
  return [['-d', '-c', file, '-V', '1'], file, text]
}
