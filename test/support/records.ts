/** RRsets and answers from short text, for tests. */
import { parseType, RCODE, RRTYPE } from '../../src/wire/iana.ts'
import { parseName } from '../../src/wire/name.ts'
import { aaaaRdata, aRdata, nameRdata, soaRdata, srvRdata, txtRdata } from '../../src/wire/rdata.ts'
import type { Rdata, RRset, Sections } from '../../src/wire/rr.ts'

/**
 * `rrset('api.example.org', 'A', 5, '192.0.2.1', '192.0.2.2')`; a SOA or SRV is written with spaces, a TXT is one
 * string.
 */
export function rrset(owner: string, type: string, ttlSeconds: number, ...records: string[]): RRset {
  const number = parseType(type)
  if (number === null) throw new Error(`no type ${type}`)
  return { owner: parseName(owner), type: number, ttlSeconds, rdata: records.map((text) => rdataOf(number, text)) }
}

/** What an answer says; NOERROR and empty sections where nothing else is given. */
export function sections(parts: Partial<Sections>): Sections {
  return { rcode: RCODE.NOERROR, answer: [], authority: [], additional: [], ...parts }
}

/** A SOA with plausible timers; `minimumSeconds` is what a denial goes by. */
export function soa(owner: string, ttlSeconds: number, minimumSeconds: number): RRset {
  return rrset(owner, 'SOA', ttlSeconds, `ns.${owner} hostmaster.${owner} 1 7200 1800 86400 ${minimumSeconds}`)
}

function rdataOf(type: number, text: string): Rdata {
  const words = text.split(' ')
  const name = (at: number) => parseName(words[at]!)
  const number = (at: number) => Number(words[at])
  switch (type) {
    case RRTYPE.A:
      return aRdata(text)
    case RRTYPE.AAAA:
      return aaaaRdata(text)
    case RRTYPE.NS:
    case RRTYPE.CNAME:
    case RRTYPE.PTR:
      return nameRdata(parseName(text))
    case RRTYPE.TXT:
      return txtRdata([text])
    case RRTYPE.SRV:
      return srvRdata({ priority: number(0), weight: number(1), port: number(2), target: name(3) })
    case RRTYPE.SOA:
      return soaRdata({
        mname: name(0),
        rname: name(1),
        serial: number(2),
        refreshSeconds: number(3),
        retrySeconds: number(4),
        expireSeconds: number(5),
        minimumSeconds: number(6)
      })
    default:
      throw new Error(`no way to write type ${type}`)
  }
}
