/** The options of one entry of `peers`: another cluster's DNS servers, and how they are asked and probed. */
import * as z from 'zod'
import { parseType } from '../wire/iana.ts'
import { inBackticks, TextError } from '../base/errors.ts'
import {
  domainName,
  duration,
  durationOrOff,
  flag,
  flagOr,
  list,
  option,
  optional,
  required,
  section,
  server,
  textOption,
  whole,
  word
} from './option.ts'
import { region } from './schema-cluster.ts'

const recordType = () =>
  textOption<number>({
    expected: 'a record type like SOA, A or TYPE65',
    read(written) {
      const type = parseType(written)
      if (type === null) throw new TextError(`${inBackticks(written)} is not a record type`)
      return type
    }
  })

const probeSection = section({
  every: option(
    duration({ min: '100ms', max: '1h' }),
    '1s',
    'Time between two probes of one server. While it is down they back off up to 10s: with `rise: 2` it may take some 6s, and at most 12s, after its return until it is up again.'
  ),
  timeout: option(duration({ min: '10ms', max: '1m' }), '500ms', 'A probe without an answer fails after this time.'),
  fall: option(whole({ min: 1, max: 100 }), 2, 'Failures in a row after which a server is down.'),
  rise: option(whole({ min: 1, max: 100 }), 2, 'Answers in a row after which it is up again.'),
  name: optional(domainName(), 'The name asked for; without it the first dnsName that a policy peers to this peer.'),
  type: option(recordType(), 'SOA', 'The type asked for; an answer or a denial is healthy.')
})

export const peerSection = section({
  servers: required(
    list(server(), 1),
    'Its DNS servers, `host:port` (port 53 if left out); host names are resolved again when their TTL ends.'
  ),
  region: option(region(), '', 'Where that cluster is.'),
  recursion: option(
    flag(),
    false,
    'Whether our queries set RD: true for a resolver that is not a peerdns, false keeps queries from going in circles.'
  ),
  transport: option(
    word('auto', 'udp', 'tcp'),
    'auto',
    'UDP, and TCP where an answer is truncated (auto); or one of them alone.'
  ),
  families: option(
    list(z.literal([4, 6], { error: ({ input }) => `\`${String(input)}\` is no address family` }), 1),
    [4, 6],
    'Address families that its servers are asked over.'
  ),
  mirror: option(
    flagOr('evict'),
    false,
    'Whether the zones of the dnsNames that are peered to it are kept here by zone transfer (AXFR, IXFR, NOTIFY), and answered from here. `evict`: no copy is kept, changed names leave the cache.'
  ),
  key: optional(
    domainName(),
    'The TSIG key, one of `transfer.keys`, that our requests for its zones are signed with; its answers have to be signed with it too.'
  ),
  lease: option(
    duration({ min: '500ms', max: '1h' }),
    '5s',
    'A mirrored peer without a sign of life for this long is unreachable, unless it answers queries.'
  ),
  maxAge: option(
    durationOrOff({ min: '100ms', max: '1d' }),
    'off',
    'A peer whose data are older than this counts as unhealthy. A peerdns tells it in its answers to probes; of others it is not known.'
  ),
  maxInFlight: option(
    whole({ min: 1, max: 100_000 }),
    1_000,
    'Questions that may wait for this peer; above it the next target is asked at once.'
  ),
  probe: option(probeSection, {}, 'How its servers are probed.')
})
