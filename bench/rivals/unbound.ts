/** Unbound, with one thread unless told: the zone as local data, or forwarding zones with its message cache. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { recordsOf, zone, zoneFileOf } from '../dataset.ts'
import { serverTitles, type ForwardRole, type Place, type ServerPlan, type ZoneRole } from './server-plan.ts'

function planOf(
  program: string,
  place: Place,
  role: string,
  server: readonly string[],
  more = '',
  threads = 1
): ServerPlan {
  const file = join(place.folder, 'unbound.conf')
  const lines = [
    `directory: "${place.folder}"`,
    'chroot: ""',
    'username: ""',
    'pidfile: ""',
    'use-syslog: no',
    'do-daemonize: no',
    `num-threads: ${threads}`,
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
  const setUp = `${role}, ${threads === 1 ? 'one thread' : `${threads} threads`}`
  return { id: 'unbound', title: serverTitles.unbound, setUp, command: program, args, port: place.port }
}

export function unboundForZone(program: string, place: Place, role: ZoneRole, threads = 1): ServerPlan {
  const records = zoneFileOf(recordsOf(role.services), role.ttlSeconds).trimEnd().split('\n')
  const data = records.map((record) => `local-data: '${record}'`)
  return planOf(program, place, '`local-data`', [`local-zone: "${zone}." static`, ...data], '', threads)
}

export function unboundForwarding(program: string, place: Place, role: ForwardRole): ServerPlan {
  const zones = role.suffixes.map(
    (suffix) => `forward-zone:\n  name: "${suffix}."\n  forward-addr: 127.0.0.1@${role.peerPort}\n`
  )
  return planOf(program, place, '`forward-zone`', [], zones.join(''))
}
