/** Policies and targets with the defaults of the configuration. */
import type { Policy, Target } from '../../src/policy/policy.ts'
import { parseName } from '../../src/wire/name.ts'

export const targetOf = (peer: string, options: Partial<Target> = {}): Target => ({
  id: `peer:${peer}`,
  kind: 'peer',
  peer,
  zone: null,
  addresses: [],
  probe: null,
  weight: 1,
  region: '',
  ...options
})

export const policyOf = (targets: Target[], options: Partial<Policy> = {}): Policy => ({
  name: 'p',
  dnsNames: [parseName('svc.cluster.local')],
  targets,
  select: 'first',
  nextOn: new Set(['unreachable', 'absent', 'empty']),
  maxTtlSeconds: null,
  maxNegativeTtlSeconds: 5,
  clients: null,
  transit: false,
  allowReserved: false,
  enforce: true,
  allDown: 'next',
  tricklePercent: 0,
  ...options
})
