/**
 * Real servers that give a zone by transfer: BIND and Knot, changed by dynamic update, and CoreDNS, whose file is
 * written anew. Each needs its program; `whyNo` says what is missing.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { diesWithUs } from './dies-with-us.ts'
import { freePort } from './free-port.ts'
import { exchangeTcp, queryOctets, readReply, until } from './in-process.ts'

export type ForeignKind = 'bind' | 'knot' | 'coredns'

export type ForeignPrimary = Readonly<{
  port: number
  text: string
  /** Takes records away and adds others, as zone-file lines with absolute names: one new serial. */
  update: (change: { remove?: readonly string[]; add?: readonly string[] }) => void
  /** Every record of the zone as the server gives it by AXFR, sorted, without the SOA. */
  records: () => string[]
  /** SIGSTOP: its sockets stay open, and nothing comes out of them. */
  freeze: () => void
  thaw: () => void
  stop: () => Promise<void>
}>

const coredns = join(import.meta.dirname, '..', '..', '.cache', 'e2e', 'bin', 'coredns')
const programs: Record<ForeignKind, string> = { bind: '/usr/sbin/named', knot: '/usr/sbin/knotd', coredns }

/** Why a kind cannot be run here; null: it can. */
export function whyNo(kind: ForeignKind): string | null {
  if (!existsSync(programs[kind])) return `${kind} is not installed`
  if (kind !== 'coredns' && !existsSync('/usr/bin/nsupdate')) return 'nsupdate is not installed'
  return existsSync('/usr/bin/dig') ? null : 'dig is not installed'
}

/** @param key `hmac-sha256:name:base64`: transfers are given to who signs with it alone. */
export type ForeignOptions = Readonly<{
  zone: string
  records: readonly string[]
  key?: { algorithm: string; name: string; secret: string }
  /** Where NOTIFY goes, `port` of 127.0.0.1. */
  notify?: number
  port?: number
  serial?: number
  expireSeconds?: number
}>

export async function startForeign(t: Test, kind: ForeignKind, options: ForeignOptions): Promise<ForeignPrimary> {
  const folder = mkdtempSync(join(tmpdir(), `peerdns-${kind}-`))
  const port = options.port ?? (await freePort())
  const { zone } = options
  const zoneFile = join(folder, 'zone')
  let serial = options.serial ?? 1
  let records = [`${zone}. 60 IN NS ns.${zone}.`, `ns.${zone}. 60 IN A 192.0.2.53`, ...options.records]
  const write = (): void => {
    const soa = `${zone}. 60 IN SOA ns.${zone}. hostmaster.${zone}. ${serial} 3600 600 ${options.expireSeconds ?? 86_400} 5`
    // By a rename: CoreDNS looks at any moment, and a half of the file has the serial of the whole.
    writeFileSync(`${zoneFile}.new`, `${[soa, ...records].join('\n')}\n`)
    renameSync(`${zoneFile}.new`, zoneFile)
  }
  write()
  const [command, args] = commandOf(kind, { ...options, folder, port, zoneFile })
  const [program, programArgs] = diesWithUs(command, args)
  // Into a file: a pipe that nobody reads while nsupdate and dig are waited for fills up, and the server stands still.
  const logFile = join(folder, 'log')
  const logFd = openSync(logFile, 'a')
  const child: ChildProcess = spawn(program, programArgs, { stdio: ['ignore', logFd, logFd] })
  closeSync(logFd)
  const log = (): string => readFileSync(logFile, 'utf8')
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
  }
  t.teardown(async () => {
    await stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const isUp = await until(async () => {
    if (child.exitCode !== null) throw new Error(`${kind} ended:\n${log().slice(-2000)}`)
    const octets = await exchangeTcp({ address: '127.0.0.1', port }, queryOctets(zone, { type: 'SOA' }), 2_000).catch(
      () => null
    )
    return octets !== null && readReply(octets).rcode === 'NOERROR'
  }, 60_000)
  if (!isUp) throw new Error(`${kind} does not answer:\n${log().slice(-2000)}`)

  return {
    port,
    text: `127.0.0.1:${port}`,
    update({ remove = [], add = [] }) {
      if (kind === 'coredns') {
        serial++
        records = [...records.filter((record) => !remove.includes(record)), ...add]
        write()
        return
      }
      const commands = [
        `server 127.0.0.1 ${port}`,
        `zone ${zone}.`,
        ...remove.map((record) => `update delete ${withoutTtl(record)}`),
        ...add.map((record) => `update add ${record}`),
        'send'
      ]
      const done = spawnSync('nsupdate', ['-v'], { input: `${commands.join('\n')}\n`, encoding: 'utf8' })
      if (done.status !== 0) throw new Error(`nsupdate: ${done.stderr}\n${log().slice(-1000)}`)
    },
    records: () => axfr(port, zone, options.key),
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    stop
  }
}

const withoutTtl = (record: string): string => record.replace(/^(\S+) \d+ (IN )?/, '$1 $2')

function axfr(port: number, zone: string, key: ForeignOptions['key']): string[] {
  const keyArgs = key === undefined ? [] : ['-y', `${key.algorithm}:${key.name}:${key.secret}`]
  const args = ['@127.0.0.1', '-p', String(port), ...keyArgs, 'AXFR', zone, '+time=20', '+noall', '+answer', '+onesoa']
  const { stdout } = spawnSync('dig', args, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  const lines = stdout.split('\n').filter((line) => line !== '' && !line.startsWith(';') && !/\sSOA\s/.test(line))
  return lines.map((line) => line.replaceAll(/\s+/g, ' ')).sort()
}

type CommandOptions = ForeignOptions & Readonly<{ folder: string; port: number; zoneFile: string }>

function commandOf(kind: ForeignKind, options: CommandOptions): [string, string[]] {
  if (kind === 'bind') return bindCommand(options)
  return kind === 'knot' ? knotCommand(options) : coreDnsCommand(options)
}

function bindCommand({ folder, port, zone, zoneFile, key, notify }: CommandOptions): [string, string[]] {
  const file = join(folder, 'named.conf')
  const keyText =
    key === undefined ? '' : `key "${key.name}" { algorithm ${key.algorithm}; secret "${key.secret}"; };\n`
  const allow = key === undefined ? 'any;' : `key "${key.name}";`
  writeFileSync(
    file,
    `${keyText}options {
  directory "${folder}"; pid-file none; session-keyfile none; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };
  recursion no; allow-transfer { ${allow} }; managed-keys-directory "${folder}"; dnssec-validation no;
  notify ${notify === undefined ? 'no' : 'explicit'}; notify-delay 0; ${notify === undefined ? '' : `also-notify { 127.0.0.1 port ${notify}; };`}
};
controls { };
zone "${zone}" { type primary; file "${zoneFile}"; allow-update { 127.0.0.1; }; ixfr-from-differences yes; };
`
  )
  return [programs.bind, ['-g', '-c', file, '-n', '1']]
}

function knotCommand({ folder, port, zone, zoneFile, key, notify }: CommandOptions): [string, string[]] {
  const file = join(folder, 'knot.conf')
  mkdirSync(join(folder, 'db'))
  const keyText =
    key === undefined ? '' : `key:\n  - id: ${key.name}\n    algorithm: ${key.algorithm}\n    secret: ${key.secret}\n`
  const remote = notify === undefined ? '' : `remote:\n  - id: secondary\n    address: 127.0.0.1@${notify}\n`
  writeFileSync(
    file,
    `server:
  listen: 127.0.0.1@${port}
  rundir: ${folder}
  tcp-workers: 2
  udp-workers: 1
  background-workers: 1
${keyText}${remote}acl:
  - id: update
    address: 127.0.0.1
    action: update
  - id: transfer
    address: 127.0.0.1
    action: transfer
${key === undefined ? '' : `    key: ${key.name}\n`}
database:
  storage: ${join(folder, 'db')}
template:
  - id: default
    storage: ${folder}
zone:
  - domain: ${zone}
    file: ${zoneFile}
    acl: [update, transfer]
    zonefile-load: difference-no-serial
    zonefile-sync: -1
    journal-content: all
    serial-policy: increment
${notify === undefined ? '' : '    notify: secondary\n'}`
  )
  return [programs.knot, ['-c', file]]
}

function coreDnsCommand({ folder, port, zone, zoneFile }: CommandOptions): [string, string[]] {
  const file = join(folder, 'Corefile')
  writeFileSync(
    file,
    `${zone}:${port} {
  bind 127.0.0.1
  transfer {
    to *
  }
  file ${zoneFile} {
    reload 200ms
  }
}
`
  )
  return [programs.coredns, ['-conf', file]]
}
