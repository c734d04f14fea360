/** Exchanging the names inside RDATA, for clusters that call their zones differently. */
import { CLASS } from './iana.ts'
import { nameToOctets, readName, type DomainName } from './name.ts'
import { concat } from './octets.ts'
import { fieldEnd } from './rdata.ts'
import { formatOf } from './rdata-format.ts'
import type { Rdata } from './rr.ts'

/**
 * The RDATA with each of its names replaced by what `map` gives for it; the same octets where nothing changes, or where
 * the type has no names that are understood.
 *
 * @param rdata well-formed, as it is everywhere inside the server: names uncompressed.
 */
export function mapRdataNames(type: number, rdata: Rdata, map: (name: DomainName) => DomainName): Rdata {
  const format = formatOf(type, CLASS.IN)
  if (format === undefined || format.names === 0) return rdata
  const parts: Uint8Array[] = []
  let isChanged = false
  let at = 0
  for (const field of format.fields) {
    let end: number
    if (field === 'name') {
      const read = readName(rdata, at)
      end = read.end
      const mapped = map(read.name)
      isChanged ||= mapped !== read.name
      parts.push(mapped === read.name ? rdata.subarray(at, end) : nameToOctets(mapped))
    } else {
      end = fieldEnd(rdata, at, rdata.length, field)
      parts.push(rdata.subarray(at, end))
    }
    at = end
  }
  return isChanged ? concat(parts) : rdata
}
