/** Which source answered and how old the data is, in words. */
import type { SourceJson } from '../admin/api-types.ts'
import { elapsed } from './table.ts'

export function sourceText({ from, zone, target, server, ageMs, changedAgoMs, staleForMs }: SourceJson): string {
  if (from === 'zone') return `our zone ${zone}, age ${elapsed(ageMs)}, changed ${elapsed(changedAgoMs)} ago`
  if (from === 'policy') return target === null ? 'made here, by rule' : `${target}, as the policy says`
  const whose = `${target}${server === null || server === '' ? '' : ` (${server})`}`
  if (from !== 'cache' && from !== 'mirror') return `${whose}, asked just now`
  const stale = staleForMs > 0 ? `, stale for ${elapsed(staleForMs)}` : ''
  if (from === 'mirror') return `our copy of ${zone} of ${whose}, age ${elapsed(ageMs)}${stale}`
  return `cache of ${whose}, age ${elapsed(ageMs)}${stale}`
}
