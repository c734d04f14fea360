/**
 * Addresses of a peer's servers that are configured by name: asked of the resolvers in the system's own resolv.conf.
 */
import { Resolver } from 'node:dns/promises'
import type { ResolveHost } from '../peer/resolve-server.ts'

const timeoutMs = 2_000
/** Where one family gave nothing, its TTL says nothing either. */
const emptyTtlSeconds = 30

export const resolveBySystem: ResolveHost = async (name) => {
  const resolver = new Resolver({ timeout: timeoutMs, tries: 2 })
  const found = await Promise.allSettled([
    resolver.resolve4(name, { ttl: true }),
    resolver.resolve6(name, { ttl: true })
  ])
  const records = found.flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
  if (records.length === 0) {
    const failed = found.find((result) => result.status === 'rejected')
    throw failed === undefined ? new Error('no address') : failed.reason
  }
  const ttlSeconds = Math.min(...records.map(({ ttl }) => ttl), emptyTtlSeconds)
  return { addresses: records.map(({ address }) => address), ttlSeconds }
}
