/** Unbound with one thread: the zone as local data, or forwarding zones with its message cache. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { recordsOf, zone, zoneFileOf } from '../dataset.ts'
import type { ForwardRole, Place, ServerPlan, ZoneRole } from './server-plan.ts'

function planOf(program: string, place: Place, setUp: string, server: readonly string[], more = ''): ServerPlan {
  const file = join(place.folder, 'unbound.conf')
  const lines = [
    `directory: "${place.folder}"`,
    'chroot: ""',
    'username: ""',
    'pidfile: ""',
    'use-syslog: no',
    'do-daemonize: no',
    'num-threads: 1',
    `interface: 127.0.0.1@${place.port}`,
    'access-control: 127.0.0.0/8 allow',
    'do-not-query-localhost: no',
    'module-config: "iterator"',
    ...server
  ]
  writeFileSync(
    file,
    `server:\n${lines.map((line) => `  ${line}\n`).join('')}remote-control:\n  control-enable: no\n${more}`
  )
  const args = ['-d', '-p', '-c', file]
  return { id: 'unbound', title: 'Unbound', setUp, command: program, args, port: place.port }
}

export function unboundForZone(program: string, place: Place, role: ZoneRole): ServerPlan {
  const records = zoneFileOf(recordsOf(role.services), role.ttlSeconds).trimEnd().split('\n')
  const data = records.map((record) => `local-data: '${record}'`)
  return planOf(program, place, '`local-data`, one thread', [`local-zone: "${zone}." static`, ...data])
}

export function unboundForwarding(program: string, place: Place, role: ForwardRole): ServerPlan {
  const zones = role.suffixes.map(
    (suffix) => `forward-zone:\n  name: "${suffix}."\n  forward-addr: 127.0.0.1@${role.peerPort}\n`
  )
  return planOf(program, place, '`forward-zone`, one thread', [], zones.join(''))
}
