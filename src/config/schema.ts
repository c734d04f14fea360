/**
 * The whole configuration file. Every option is declared once, in the schema-*.ts files: its kind and bounds, its
 * default and one sentence; the reference, the JSON Schema and the messages are made from that.
 */
import * as z from 'zod'
import { itemName, list, option, required, section } from './option.ts'
import { clusterSection } from './schema-cluster.ts'
import { peerSection } from './schema-peers.ts'
import { policySection } from './schema-policies.ts'
import { serverOptions } from './schema-server.ts'
import { transferSection } from './schema-transfer.ts'

export const fileSchema = section({
  cluster: required(clusterSection, 'This cluster.'),
  ...serverOptions,
  peers: option(z.record(itemName(), peerSection), {}, "Other clusters' DNS servers, by a name of ours."),
  policies: option(
    list(policySection),
    [],
    'Which names are peered; the order does not matter, the longest dnsName wins.'
  ),
  transfer: option(transferSection, {}, 'Zone transfer to others; closed unless set.')
})

/** What the file says, each leaf read, defaults filled in. */
export type FileContent = z.output<typeof fileSchema>
