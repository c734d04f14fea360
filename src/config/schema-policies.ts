/** The options of one entry of `policies`: which names are peered to whom, in which order, for which clients. */
import * as z from 'zod'
import {
  address,
  describeValue,
  domainName,
  endpointCheck,
  expectedKey,
  flag,
  itemName,
  list,
  networks,
  option,
  optional,
  required,
  seconds,
  secondsOrNone,
  section,
  whole,
  word
} from './option.ts'
import { region } from './schema-cluster.ts'

export const targetSection = section({
  peer: optional(itemName(), 'The peer that is asked: a key of `peers`.'),
  local: optional(
    z
      .literal(true, { error: ({ input }) => (input === false ? '`false` makes nobody of it' : describeValue(input)) })
      .meta({ [expectedKey]: 'true' }),
    'Our own zones.'
  ),
  addresses: optional(
    list(address(), 1),
    'Fixed addresses that answer A and AAAA for every name at or below the dnsName.'
  ),
  probe: optional(
    endpointCheck(),
    'How the fixed addresses are checked, with `cluster.probes: on`; unhealthy ones are not given.'
  ),
  zone: optional(domainName(), 'What that cluster calls its zone, where it is not called as ours: names are mapped.'),
  weight: option(
    whole({ min: 0, max: 100 }),
    1,
    'Share among the targets with `select: weighted`; 0 is used only when nothing else is up.'
  ),
  region: optional(region(), "Where the target is; without it the peer's region, or our own for `local`.")
})

export const policySection = section({
  name: required(itemName(), 'How commands, metrics and Extended DNS Errors call this policy.'),
  dnsName: required(
    z.union([domainName(), list(domainName(), 1)]),
    'The suffix (or a list of them) that the policy is for, and all names below it; the longest one wins.'
  ),
  targets: required(
    list(z.union([itemName(), targetSection]), 1),
    'Who is asked, in order: `local`, the name of a peer, or the long form below.'
  ),
  select: option(
    word('first', 'weighted', 'geo', 'merge'),
    'first',
    'How targets are chosen: in order, by weight, by region, or all of them together.'
  ),
  nextOn: option(
    list(word('unreachable', 'absent', 'empty')),
    ['unreachable', 'absent', 'empty'],
    'When the next target is asked (with `merge`: when those behind it still count): no usable answer; NXDOMAIN; a Service without ready endpoints.'
  ),
  clients: option(
    z.union([word('everyone'), list(networks(), 1)]),
    'everyone',
    'Whom the policy is for; others fall to the next shorter dnsName.'
  ),
  maxTtl: option(secondsOrNone({ min: '0s', max: '7d' }), 'none', 'Cap of the TTL of answers.'),
  maxNegativeTtl: option(seconds({ min: '0s', max: '1d' }), '5s', 'Cap of the TTL of denials.'),
  transit: option(
    flag(),
    false,
    'Whether questions with RD=0, as peers send them, may use this policy too: beware of circles.'
  ),
  allowReserved: option(flag(), false, 'Whether `kubernetes.default` and the namespace `kube-system` may be peered.'),
  enforce: option(flag(), true, 'With false everything is answered as before, and what would change is counted.'),
  allDown: option(
    word('next', 'open', 'closed'),
    'next',
    'When a target has no healthy endpoint (readiness, or `peerdns.io/probe`): ask the next target, give what it has all the same, or give no address.'
  ),
  trickle: option(whole({ min: 0, max: 100 }), 0, 'Percent of names and clients sent to the second target first.')
})
