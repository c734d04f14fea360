/** CoreDNS: the zone from a file, or forwarding; with its cache in front in both cases, as clusters run it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { recordsOf, zone, zoneFileOf } from '../dataset.ts'
import { serverTitles, type ForwardRole, type Place, type ServerPlan, type ZoneRole } from './server-plan.ts'

const cacheSeconds = 3_600

/** Its lowest TTL is 5 s unless told otherwise; answers with TTL 0 are not to be kept by anybody here. */
const cacheBlock = [`  cache ${cacheSeconds} {`, `    success 9984 ${cacheSeconds} 0`, '  }']

function planOf(program: string, place: Place, corefile: string, setUp: string): ServerPlan {
  const file = join(place.folder, 'Corefile')
  writeFileSync(file, corefile)
  const args = ['-conf', file, '-quiet']
  return { id: 'coredns', title: serverTitles.coredns, setUp, command: program, args, port: place.port }
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

/** With its kubernetes plugin; its cache as clusters have it. */
export function corednsOnApiServer(program: string, place: Place, kubeconfig: string, context: string): ServerPlan {
  const plugin = [`    kubeconfig ${kubeconfig} ${context}`, '    ttl 5', '    startup_timeout 30s']
  const lines = ['  bind 127.0.0.1', `  kubernetes ${zone} {`, ...plugin, '  }', '  cache 30']
  const setUp = '`kubernetes` on an API server of ours, and `cache`'
  return planOf(program, place, `${zone}:${place.port} {\n${lines.join('\n')}\n}\n`, setUp)
}
