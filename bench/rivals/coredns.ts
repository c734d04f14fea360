/** CoreDNS: the zone from a file, or forwarding; with its cache in front in both cases, as clusters run it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { recordsOf, zone, zoneFileOf } from '../dataset.ts'
import type { ForwardRole, Place, ServerPlan, ZoneRole } from './server-plan.ts'

const cacheSeconds = 3_600

/** Its lowest TTL is 5 s unless told otherwise; answers with TTL 0 are not to be kept by anybody here. */
const cacheBlock = [`  cache ${cacheSeconds} {`, `    success 9984 ${cacheSeconds} 0`, '  }']

function planOf(program: string, place: Place, corefile: string, setUp: string): ServerPlan {
  const file = join(place.folder, 'Corefile')
  writeFileSync(file, corefile)
  const args = ['-conf', file, '-quiet']
  return { id: 'coredns', title: 'CoreDNS', setUp, command: program, args, port: place.port }
}

/** Any zone file, for instance one as large as that of real manifests. */
export function corednsForZoneFile(program: string, place: Place, zoneFile: string): ServerPlan {
  const file = join(place.folder, 'zone')
  writeFileSync(file, zoneFile)
  const lines = ['  bind 127.0.0.1', `  file ${file} ${zone}`, `  cache ${cacheSeconds}`]
  return planOf(program, place, `${zone}:${place.port} {\n${lines.join('\n')}\n}\n`, '`file` and `cache`')
}

export const corednsForZone = (program: string, place: Place, role: ZoneRole): ServerPlan =>
  corednsForZoneFile(program, place, zoneFileOf(recordsOf(role.services), role.ttlSeconds))

export function corednsForwarding(program: string, place: Place, role: ForwardRole): ServerPlan {
  const blocks = role.suffixes.map((suffix) => {
    const lines = ['  bind 127.0.0.1', `  forward . 127.0.0.1:${role.peerPort}`, ...cacheBlock]
    return `${suffix}:${place.port} {\n${lines.join('\n')}\n}\n`
  })
  return planOf(program, place, blocks.join(''), '`forward` and `cache`')
}
