/** `peerdns peers list`. */
import type { Command } from 'commander'
import type { PeersJson } from '../admin/api-types.ts'
import { AdminClient } from './admin-client.ts'
import type { CommandIo } from './command-io.ts'
import { print, withAdmin, withExamples, withOutput, type ListOptions } from './shared-options.ts'
import { elapsed, healthText, printable, table } from './table.ts'

export function addPeers(program: Command, io: CommandIo): void {
  const peers = program.command('peers').description("other clusters' DNS servers")
  const list = peers.command('list').description('every server of every peer: health, since when and why, and RTT')
  withExamples(withAdmin(withOutput(list)), 'peers list', 'peers list -o json').action(async (options: ListOptions) => {
    const answer = await AdminClient.from(options.admin, io).get<PeersJson>('/peers')
    print(io, options, answer, (peers) => peersText(peers, io))
  })
}

function peersText({ peers }: PeersJson, io: CommandIo): string {
  if (peers.length === 0) return 'no peers and no forward\n'
  const rows = peers.flatMap((peer) => {
    const whole = [peer.name, peer.region || null]
    const policies = peer.policies.join(',') || null
    if (peer.servers.length === 0) {
      return [[...whole, null, healthText(peer.health, io), null, null, null, policies, 'no address is known']]
    }
    return peer.servers.map((server) => [
      ...whole,
      server.server,
      healthText(server.health, io),
      elapsed(server.changedAgoMs),
      elapsed(server.rttMs),
      String(server.inFlight),
      policies,
      printable(server.reason) || null
    ])
  })
  return table(['PEER', 'REGION', 'SERVER', 'HEALTH', 'SINCE', 'RTT', 'IN FLIGHT', 'POLICIES', 'WHY'], rows)
}
