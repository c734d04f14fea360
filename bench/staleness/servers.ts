/** The servers of both clusters. All end with their `Fleet`, or else with their cluster. */
import type { Cluster } from '../../test/e2e/support/cluster.ts'
import { startCoreDns } from '../../test/e2e/support/coredns.ts'
import { LiveServer } from '../../test/e2e/support/live-server.ts'
import type { Part } from '../../test/e2e/support/part.ts'
import { suffix } from './shop.ts'

export const host = '127.0.0.1'

export type PeerdnsOnB = Readonly<{
  name: string
  /** A's, as `host:port`. */
  peer: string
  mirror?: boolean
  /** Cap of the TTL, where the policy has one. */
  maxTtlSeconds?: number
}>

export class Fleet {
  readonly #a: Cluster
  readonly #b: Cluster
  readonly #parts: Part[] = []

  constructor({ a, b }: Readonly<{ a: Cluster; b: Cluster }>) {
    this.#a = a
    this.#b = b
  }

  /** CoreDNS as `kubeadm` sets it up: its own cluster's names come from the API server's objects, and are not cached. */
  async corednsOnA(ttlSeconds: number): Promise<number> {
    return this.#coredns(this.#a, { ttlSeconds })
  }

  /** CoreDNS on B with a stub domain: forwards A's names, and caches them where `cacheSeconds` is above 0. */
  async corednsOnB(port: number, cacheSeconds: number): Promise<number> {
    const cache = cacheSeconds === 0 ? '' : `\n  cache ${cacheSeconds}`
    const blocks = `${suffix}:{port} {\n  bind ${host}\n  errors${cache}\n  forward . ${host}:${port}\n}`
    return this.#coredns(this.#b, { blocks })
  }

  async peerdnsOnA(name: string, ttlSeconds: number, more = ''): Promise<LiveServer> {
    return this.#peerdns(this.#a, { name, clusterKeys: `ttl: ${ttlSeconds}s`, more })
  }

  async peerdnsOnB({ name, peer, mirror = false, maxTtlSeconds }: PeerdnsOnB): Promise<LiveServer> {
    const cap = maxTtlSeconds === undefined ? '' : `, maxTtl: ${maxTtlSeconds}s`
    const more = `peers:
  cluster-a: {servers: ["${peer}"]${mirror ? ', mirror: true' : ''}}
policies:
  - {name: from-a, dnsName: ${suffix}, targets: [cluster-a]${cap}}
`
    return this.#peerdns(this.#b, { name, more })
  }

  async stop(): Promise<void> {
    await Promise.all(this.#parts.map(async (part) => part.kill('SIGTERM')))
  }

  async #coredns(cluster: Cluster, options: Readonly<{ ttlSeconds?: number; blocks?: string }>): Promise<number> {
    const { part, port } = await startCoreDns(cluster, { reverse: [], ...options })
    this.#parts.push(part)
    return port
  }

  async #peerdns(
    cluster: Cluster,
    { more, ...options }: Readonly<{ name: string; more: string; clusterKeys?: string }>
  ): Promise<LiveServer> {
    const server = await LiveServer.start(cluster, { ...options, more: `${more}log: {level: warn}\n` })
    this.#parts.push(server.part)
    return server
  }
}
