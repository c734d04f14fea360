/** dnsdist with its packet cache, in front of a server that it asks once for each question and TTL. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { serverTitles, type Place, type ServerPlan } from './server-plan.ts'

const cachedPackets = 400_000

/** @param behind where the server listens that it asks */
export function dnsdistBefore(
  program: string,
  place: Place,
  behind: Readonly<{ port: number; title: string }>
): ServerPlan {
  const file = join(place.folder, 'dnsdist.conf')
  const lines = [
    'setSecurityPollSuffix("")',
    'setACL({"127.0.0.0/8"})',
    `setLocal("127.0.0.1:${place.port}")`,
    `newServer({address="127.0.0.1:${behind.port}", healthCheckMode="up"}):setUp()`,
    `getPool(""):setCache(newPacketCache(${cachedPackets}, {maxTTL=86400, minTTL=0}))`,
    ''
  ]
  writeFileSync(file, lines.join('\n'))
  return {
    id: 'dnsdist',
    title: serverTitles.dnsdist,
    setUp: `packet cache before ${behind.title}, one UDP thread`,
    command: program,
    args: ['--supervised', '--disable-syslog', '-C', file],
    port: place.port
  }
}
