/** The options of the server itself: where it listens, whom it answers, whom it forwards to, and its bounds. */
import * as z from 'zod'
import * as limits from '../base/limits.ts'
import { durationToText } from '../base/quantity.ts'
import {
  duration,
  forward,
  list,
  listenAddress,
  listenAddressOrOff,
  networkKey,
  networks,
  option,
  optional,
  path,
  required,
  seconds,
  section,
  size,
  text,
  whole,
  word
} from './option.ts'
import { region } from './schema-cluster.ts'

const cacheSection = section({
  maxBytes: option(size({ min: '4KiB', max: '1TiB' }), '64MiB', 'Memory for cached answers.'),
  maxTtl: option(seconds({ min: '0s', max: '7d' }), '1h', 'Longest time an answer is kept.'),
  maxNegativeTtl: option(seconds({ min: '0s', max: '1d' }), '30s', 'Longest time a denial is kept.'),
  serveStale: option(
    seconds({ min: '0s', max: '3d' }),
    '1h',
    'How long after its TTL an answer may still be given while its source is unreachable (RFC 8767); 0s: never.'
  )
})

const sampleSection = section({
  sample: required(whole({ min: 1, max: 1_000_000_000 }), 'One query of this many is logged.')
})

const logSection = section({
  level: option(word('debug', 'info', 'warn', 'error', 'silent'), 'info', 'The least serious kind that is logged.'),
  queries: option(z.union([word('off'), sampleSection]), 'off', 'Whether queries are logged: `{sample: 100}` logs 1 %.')
})

const limitsSection = section({
  inFlight: option(
    whole({ min: 1, max: 1_000_000 }),
    limits.inFlightQueries,
    'Queries that may wait for peers and resolvers; above it SERVFAIL at once.'
  ),
  tcpConnections: option(whole({ min: 1, max: 100_000 }), limits.tcpConnections, 'TCP connections of clients.'),
  tcpIdleTimeout: option(
    duration({ min: '100ms', max: '10m' }),
    durationToText(limits.tcpIdleTimeoutMs),
    'A TCP connection without a query is closed after this time.'
  )
})

const overridesSection = section({
  file: optional(path(), 'A state file; it is made with the first action.'),
  configMap: optional(
    text(
      /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\/)?[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/,
      'the name of a ConfigMap like peerdns-overrides, or namespace/name'
    ),
    'A ConfigMap, which all replicas watch; without a namespace it is the one that we run in, or that of the kubeconfig.'
  )
})

export const serverOptions = {
  listen: option(
    list(listenAddress(), 1),
    ['0.0.0.0:53', '[::]:53'],
    'Where DNS is served; each address by UDP and TCP.'
  ),
  observe: option(listenAddressOrOff(), 'off', 'Read-only HTTP: `/metrics`, `/healthz`, `/readyz`.'),
  admin: option(
    listenAddressOrOff(),
    '127.0.0.1:9154',
    'HTTP with the same, `/api/v1`, the dashboard and actions; keep it on loopback.'
  ),
  allow: option(
    list(networks()),
    ['private'],
    'Who may ask. `private`: RFC 1918, RFC 4193, loopback, link-local, 100.64.0.0/10.'
  ),
  forward: option(
    list(forward()),
    ['/etc/resolv.conf'],
    'Who answers what is neither ours nor peered; an empty list refuses it.'
  ),
  cache: option(cacheSection, {}, 'The cache of what peers and resolvers answered.'),
  threads: option(
    whole({ min: 0, max: 64 }),
    1,
    'Threads that answer queries over UDP from memory, beside one for all else, so that no list, probe, transfer or scrape delays an answer that lies ready; as many of them are used as the load needs. 0, or where datagrams are not read in batches: one thread does everything.'
  ),
  overrides: option(
    z.union([word('auto', 'off'), overridesSection]),
    'auto',
    'Where drains and disabled policies are kept: `off`, or exactly one of the keys below. `auto`: the ConfigMap `peerdns-overrides` with `source.kubernetes`, else a state file beside this file, named like it with `.state`.'
  ),
  batching: option(
    word('auto', 'off'),
    'auto',
    'Whether UDP is read and sent in batches (recvmmsg, sendmmsg): wherever that works, or never.'
  ),
  takeover: option(
    word('off', 'on'),
    'off',
    'Whether a new process takes the sockets over from the one that serves on the same addresses, once it has read its cluster: no query is lost by a restart. Needs batching; both are told so and run as one user.'
  ),
  lameDuck: option(
    duration({ min: '0s', max: '10m' }),
    '0s',
    'How long queries are still taken after SIGTERM, while `/readyz` already says no.'
  ),
  log: option(logSection, {}, 'The log on standard output.'),
  limits: option(limitsSection, {}, 'Bounds on what clients can make us hold.'),
  regions: option(
    z.record(networkKey(), region()),
    {},
    "Which region clients are in: `{10.8.0.0/14: us-west}`, for `select: geo`; the longest prefix counts, and clients in none are in the cluster's region."
  )
}
