/** `peerdns peers list`, `drain` and `undrain`. */
import type { Command } from 'commander'
import type { PeersJson } from '../admin/api-types.ts'
import { overrideText, setOverride, takeBack, withOverrideOptions, type OverrideOptions } from './actions.ts'
import { AdminClient } from './admin-client.ts'
import type { CommandIo } from './command-io.ts'
import { print, withAdmin, withExamples, withOutput, type ListOptions } from './shared-options.ts'
import { elapsed, healthText, printable, table } from './table.ts'

export function addPeers(program: Command, io: CommandIo): void {
  const peers = program.command('peers').description("other clusters' DNS servers")
  const list = peers
    .command('list')
    .description('every server of every peer: health, since when and why, and RTT; every zone that is mirrored')
  withExamples(withAdmin(withOutput(list)), 'peers list', 'peers list -o json').action(async (options: ListOptions) => {
    const answer = await AdminClient.from(options.admin, io).get<PeersJson>('/peers')
    print(io, options, answer, (peers) => peersText(peers, io))
  })
  const drain = peers
    .command('drain')
    .description('ask a peer nothing any more, on every replica: the next targets of its policies answer')
    .argument('<name>', 'name of the peer')
  withExamples(
    withAdmin(withOutput(withOverrideOptions(drain))),
    'peers drain cluster-a --for 10m',
    'peers drain cluster-a --for 1h --reason upgrade'
  ).action(async (name: string, options: OverrideOptions) =>
    setOverride(io, `/peers/${encodeURIComponent(name)}/drain`, options, () => `peer ${name} is drained`)
  )
  const undrain = peers
    .command('undrain')
    .description('use a drained peer again; exit code 1 where it is not drained')
    .argument('<name>', 'name of the peer')
  withExamples(withAdmin(withOutput(undrain)), 'peers undrain cluster-a').action(
    async (name: string, options: ListOptions) =>
      takeBack(io, `/peers/${encodeURIComponent(name)}/undrain`, options, `peer ${name} is not drained any more`)
  )
}

function peersText({ peers }: PeersJson, io: CommandIo): string {
  if (peers.length === 0) return 'no peers and no forward\n'
  const rows = peers.flatMap((peer) => {
    const whole = [peer.name, peer.region || null]
    const policies = peer.policies.join(',') || null
    const drained = peer.drained === null ? null : overrideText('drained', peer.drained)
    if (peer.servers.length === 0) {
      return [
        [...whole, null, healthText(peer.health, io), null, null, null, policies, drained ?? 'no address is known']
      ]
    }
    return peer.servers.map((server) => [
      ...whole,
      server.server,
      healthText(server.health, io),
      elapsed(server.changedAgoMs),
      elapsed(server.rttMs),
      String(server.inFlight),
      policies,
      drained ?? (printable(server.reason) || null)
    ])
  })
  const servers = table(['PEER', 'REGION', 'SERVER', 'HEALTH', 'SINCE', 'RTT', 'IN FLIGHT', 'POLICIES', 'WHY'], rows)
  const mirrors = peers.flatMap(({ name, mirrors: zones }) =>
    zones.map((zone) => [
      name,
      zone.zone,
      zone.keepsCopy ? 'copy' : 'changes',
      zone.serial === null ? null : String(zone.serial),
      elapsed(zone.ageMs),
      zone.state,
      zone.lastFault === null ? null : printable(zone.lastFault)
    ])
  )
  if (mirrors.length === 0) return servers
  return `${servers}\n${table(['PEER', 'ZONE', 'KEEPS', 'SERIAL', 'AGE', 'STATE', 'WHY'], mirrors)}`
}
