/** peerdns itself, as `peerdns serve` with a configuration file and manifests. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { manifestsOf, zone } from '../dataset.ts'
import { serverTitles, type ForwardRole, type Place, type ServerPlan, type ZoneRole } from './server-plan.ts'

/** The command as it is run: Node, its options, and the file to run. */
export type PeerdnsProgram = Readonly<{
  node: string
  nodeOptions: readonly string[]
  main: string
  /** The configuration's option; auto by default. */
  batching?: 'auto' | 'off'
  /** Likewise; 1 by default. */
  threads?: number
}>

type Document = Readonly<Record<string, unknown>>

function planOf(program: PeerdnsProgram, place: Place, cluster: Document, more: Document, setUp: string): ServerPlan {
  const file = join(place.folder, 'config.yaml')
  const listen = { listen: [`127.0.0.1:${place.port}`], admin: `127.0.0.1:${place.adminPort}`, forward: [] }
  writeFileSync(
    file,
    stringify({
      cluster: { zone, ...cluster },
      ...listen,
      batching: program.batching ?? 'auto',
      threads: program.threads ?? 1,
      log: { level: 'warn' },
      ...more
    })
  )
  const args = [...program.nodeOptions, program.main, 'serve', '--config', file]
  const { threads = 1 } = program
  const withThreads = setUp.replace(
    'one thread',
    threads === 0
      ? 'one thread for everything'
      : `${threads} thread${threads === 1 ? '' : 's'} that answer${threads === 1 ? 's' : ''}`
  )
  const shown = program.batching === 'off' ? `${withThreads}, \`batching: off\`` : withThreads
  return { id: 'peerdns', title: serverTitles.peerdns, setUp: shown, command: program.node, args, port: place.port }
}

function manifestsIn(place: Place, text: string): string {
  const folder = join(place.folder, 'manifests')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'services.json'), text)
  return folder
}

export function peerdnsForZone(program: PeerdnsProgram, place: Place, role: ZoneRole, more: Document = {}): ServerPlan {
  const source = { manifests: [manifestsIn(place, manifestsOf(role.services))] }
  const cluster = { name: 'bench-a', ttl: `${role.ttlSeconds}s`, source }
  return planOf(program, place, cluster, more, 'manifests, one thread')
}

/** Files as they are, for instance what a real cluster gave. */
export function peerdnsForManifests(program: PeerdnsProgram, place: Place, file: string): ServerPlan {
  const cluster = { name: 'bench-a', importsInZone: true, source: { manifests: [file] } }
  return planOf(program, place, cluster, {}, 'manifests, one thread')
}

/** @param mirror the peer's zones are kept here by transfer, and answered from here */
export function peerdnsForwarding(
  program: PeerdnsProgram,
  place: Place,
  role: ForwardRole,
  mirror = false,
  more: Document = {}
): ServerPlan {
  const own = [{ namespace: 'own', name: 'service', clusterIp: '10.99.0.1', endpoints: [] }]
  const cluster = { name: 'bench-b', source: { manifests: [manifestsIn(place, manifestsOf(own))] } }
  const peers = { 'bench-a': { servers: [`127.0.0.1:${role.peerPort}`], mirror } }
  const policies = [{ name: 'from-a', dnsName: role.suffixes, targets: ['bench-a'] }]
  return planOf(
    program,
    place,
    cluster,
    { peers, policies, ...more },
    mirror ? 'mirror of a peer, one thread' : 'policy to a peer, one thread'
  )
}
