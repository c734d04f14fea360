/** What stands at the apex of the zones that the tests make. */
import { parseName } from '../../src/wire/name.ts'
import { rrset } from '../support/records.ts'

export const apex = parseName('cluster.local')
export const ns = rrset('cluster.local', 'NS', 30, 'ns.dns.cluster.local')
export const soa = {
  mname: parseName('ns.dns.cluster.local'),
  rname: parseName('hostmaster.cluster.local'),
  refresh: 7200,
  retry: 1800,
  expire: 86_400,
  minimumSeconds: 5,
  ttlSeconds: 30
}
