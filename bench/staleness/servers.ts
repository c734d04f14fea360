/** The servers of both clusters. All end with their `Fleet`, or else with their cluster. */
import type { Cluster } from '../../test/e2e/support/cluster.ts'
import { startCoreDns } from '../../test/e2e/support/coredns.ts'
import { LiveServer } from '../../test/e2e/support/live-server.ts'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Part } from '../../test/e2e/support/part.ts'
import { freePort } from '../../test/support/free-port.ts'
import { FarAway } from './far-away.ts'
import { linkAddresses } from './link-addresses.ts'
import { suffix } from './shop.ts'

export const host = '127.0.0.1'

const command = join(import.meta.dirname, '..', '..', 'src', 'cli', 'main.ts')

export type PeerdnsOnA = Readonly<{
  name: string
  ttlSeconds: number
  /** Further top-level keys, as YAML. */
  more?: string
  /** Where else it listens. */
  listen?: readonly string[]
}>

export type PeerdnsOnB = Readonly<{
  name: string
  /** A's, as `host:port`. */
  peer: string
  mirror?: true | 'evict'
  /** Cap of the TTL, where the policy has one. */
  maxTtlSeconds?: number
  /** Further top-level keys, as YAML. */
  more?: string
}>

type Far = Readonly<{ port: number; adminUrl: string }>

export class Fleet {
  readonly #a: Cluster
  readonly #b: Cluster
  readonly #parts: Part[] = []
  readonly #far: FarAway[] = []

  constructor({ a, b }: Readonly<{ a: Cluster; b: Cluster }>) {
    this.#a = a
    this.#b = b
  }

  /**
   * CoreDNS as `kubeadm` sets it up: its own cluster's names come from the API server's objects, and are not cached.
   */
  async corednsOnA(ttlSeconds: number): Promise<number> {
    return this.#coredns(this.#a, { ttlSeconds })
  }

  /** CoreDNS on B with a stub domain: forwards A's names, and caches them where `cacheSeconds` is above 0. */
  async corednsOnB(port: number, cacheSeconds: number): Promise<number> {
    const cache = cacheSeconds === 0 ? '' : `\n  cache ${cacheSeconds}`
    const blocks = `${suffix}:{port} {\n  bind ${host}\n  errors${cache}\n  forward . ${host}:${port}\n}`
    return this.#coredns(this.#b, { blocks })
  }

  async peerdnsOnA({ name, ttlSeconds, more = '', listen = [] }: PeerdnsOnA): Promise<LiveServer> {
    return this.#peerdns(this.#a, { name, clusterKeys: `ttl: ${ttlSeconds}s`, more, listen })
  }

  async peerdnsOnB(options: PeerdnsOnB): Promise<LiveServer> {
    return this.#peerdns(this.#b, { name: options.name, more: policyTo(options) + (options.more ?? '') })
  }

  /** The resolver of a node of B: its zones, and A's, are those of B's own peerdns, which gives them away. */
  async nodeOnB(name: string, hubPort: number): Promise<LiveServer> {
    const hub = `${host}:${hubPort}`
    const more = policyTo({ name, peer: hub, mirror: true, isHub: true })
    return this.#peerdns(this.#b, { name, source: `mirror: ["${hub}"]`, more })
  }

  /** A place behind a slow and lossy way, as long as the fleet. */
  async farAway(delayMs: number, lossShare: number): Promise<FarAway> {
    const far = await FarAway.start(delayMs, lossShare)
    this.#far.push(far)
    return far
  }

  /** As `peerdnsOnB`, but in a namespace from which no API server can be reached: its own zone is empty. */
  async peerdnsFarAway({ namespace }: FarAway, options: PeerdnsOnB): Promise<Far> {
    const { server: address } = linkAddresses
    const [port, adminPort] = [await freePort(), await freePort()]
    const folder = join(this.#b.folder, options.name)
    mkdirSync(join(folder, 'manifests'), { recursive: true })
    const file = join(folder, 'peerdns.yaml')
    writeFileSync(
      file,
      `cluster: {name: cluster-b, source: {manifests: [./manifests/]}}
listen: ["${address}:${port}"]
admin: "${address}:${adminPort}"
forward: []
log: {level: warn}
${policyTo(options)}`
    )
    const part = new Part({
      name: `peerdns-${options.name}`,
      folder: this.#b.folder,
      command: 'ip',
      args: ['netns', 'exec', namespace, process.execPath, command, 'serve', '--config', file],
      isReady: async () => (await fetch(`http://${address}:${adminPort}/readyz`)).ok
    })
    this.#parts.push(part)
    this.#b.adopt(part)
    await part.start()
    return { port, adminUrl: `http://${address}:${adminPort}` }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#parts.map(async (part) => part.kill('SIGTERM')))
    for (const far of this.#far) far.stop()
  }

  async #coredns(cluster: Cluster, options: Readonly<{ ttlSeconds?: number; blocks?: string }>): Promise<number> {
    const { part, port } = await startCoreDns(cluster, { reverse: [], ...options })
    this.#parts.push(part)
    return port
  }

  async #peerdns(
    cluster: Cluster,
    {
      more,
      ...options
    }: Readonly<{ name: string; more: string; source?: string; clusterKeys?: string; listen?: readonly string[] }>
  ): Promise<LiveServer> {
    const server = await LiveServer.start(cluster, { ...options, more: `${more}log: {level: warn}\n` })
    this.#parts.push(server.part)
    return server
  }
}

/** @param options `isHub`: asked for A's names is B's own server. */
function policyTo({ peer, mirror, maxTtlSeconds, isHub = false }: PeerdnsOnB & Readonly<{ isHub?: boolean }>): string {
  const cap = maxTtlSeconds === undefined ? '' : `, maxTtl: ${maxTtlSeconds}s`
  return `peers:
  cluster-a: {servers: ["${peer}"]${mirror === undefined ? '' : `, mirror: ${mirror}`}${isHub ? ', recursion: true' : ''}}
policies:
  - {name: from-a, dnsName: ${suffix}, targets: [cluster-a]${cap}}
`
}
