/** dnsmasq, which answers in one thread: addresses from a hosts file, or forwarding with its cache. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { recordsOf, zone } from '../dataset.ts'
import { serverTitles, type ForwardRole, type Place, type ServerPlan, type ZoneRole } from './server-plan.ts'

/** The largest cache that it takes without complaint. */
const cachedNames = 10_000
const forks = 'it forks for each connection, and what the forks cost is not seen'
const leftOut = { tcp: forks, 'tcp-once': forks }

function planOf(program: string, place: Place, setUp: string, more: readonly string[]): ServerPlan {
  const file = join(place.folder, 'dnsmasq.conf')
  const lines = [
    `port=${place.port}`,
    'listen-address=127.0.0.1',
    'bind-interfaces',
    'no-resolv',
    'no-hosts',
    'user=',
    'group=',
    'pid-file=',
    `cache-size=${cachedNames}`,
    ...more,
    ''
  ]
  writeFileSync(file, lines.join('\n'))
  const args = ['--keep-in-foreground', '--log-facility=-', `--conf-file=${file}`]
  return { id: 'dnsmasq', title: serverTitles.dnsmasq, setUp, command: program, args, port: place.port, leftOut }
}

export function dnsmasqForZone(program: string, place: Place, role: ZoneRole): ServerPlan {
  const hosts = join(place.folder, 'hosts')
  const records = recordsOf(role.services)
  const addresses = records.filter(({ type }) => type === 'A').map(({ owner, data }) => `${data} ${owner}\n`)
  writeFileSync(hosts, addresses.join(''))
  const srv = records.flatMap(({ owner, type, data }) => {
    if (type !== 'SRV') return []
    const [priority, weight, port, target] = data.split(' ')
    return [`srv-host=${owner},${target!.slice(0, -1)},${port},${priority},${weight}`]
  })
  const more = [`local=/${zone}/`, `addn-hosts=${hosts}`, `local-ttl=${role.ttlSeconds}`, ...srv]
  return planOf(program, place, 'hosts file and `srv-host`', more)
}

export function dnsmasqForwarding(program: string, place: Place, role: ForwardRole): ServerPlan {
  const servers = role.suffixes.map((suffix) => `server=/${suffix}/127.0.0.1#${role.peerPort}`)
  return planOf(program, place, '`server` and its cache', servers)
}
