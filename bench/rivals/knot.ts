/** Knot DNS with one worker for each transport: the zone from a file. It does not forward from a cache. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { recordsOf, zone, zoneFileOf } from '../dataset.ts'
import { serverTitles, type Place, type ServerPlan, type ZoneRole } from './server-plan.ts'

export function knotForZone(program: string, place: Place, role: ZoneRole): ServerPlan {
  const { folder, port } = place
  const file = join(folder, 'knot.conf')
  mkdirSync(join(folder, 'knot'))
  writeFileSync(join(folder, 'knot.zone'), zoneFileOf(recordsOf(role.services), role.ttlSeconds))
  const server = [
    `rundir: "${join(folder, 'knot')}"`,
    `listen: 127.0.0.1@${port}`,
    'udp-workers: 1',
    'tcp-workers: 1',
    'background-workers: 1'
  ]
  const text = [
    'server:',
    ...server.map((line) => `    ${line}`),
    'log:',
    '  - target: stderr',
    '    any: error',
    'database:',
    `    storage: "${join(folder, 'knot')}"`,
    'zone:',
    `  - domain: ${zone}`,
    `    file: "${join(folder, 'knot.zone')}"`,
    '    zonefile-sync: -1',
    '    journal-content: none',
    ''
  ]
  writeFileSync(file, text.join('\n'))
  const setUp = 'zone file, one worker for UDP'
  return { id: 'knot', title: serverTitles.knot, setUp, command: program, args: ['-c', file], port }
}
