/** Numbers that IANA keeps for DNS: types, classes, opcodes, RCODEs, EDNS options, Extended DNS Errors. */

/** RR types and query types by mnemonic. https://www.iana.org/assignments/dns-parameters */
// prettier-ignore
export const RRTYPE = {
  A: 1, NS: 2, MD: 3, MF: 4, CNAME: 5, SOA: 6, MB: 7, MG: 8, MR: 9, NULL: 10, PTR: 12, HINFO: 13, MINFO: 14, MX: 15,
  TXT: 16, RP: 17, AFSDB: 18, RT: 21, SIG: 24, KEY: 25, PX: 26, AAAA: 28, LOC: 29, SRV: 33, NAPTR: 35, KX: 36, CERT: 37,
  DNAME: 39, OPT: 41, DS: 43, SSHFP: 44, RRSIG: 46, NSEC: 47, DNSKEY: 48, NSEC3: 50, NSEC3PARAM: 51, TLSA: 52, CDS: 59,
  CDNSKEY: 60, CSYNC: 62, ZONEMD: 63, SVCB: 64, HTTPS: 65,
  SPF: 99, TKEY: 249, TSIG: 250, IXFR: 251, AXFR: 252, MAILB: 253, MAILA: 254, ANY: 255, URI: 256, CAA: 257
} as const

export const CLASS = { IN: 1, CH: 3, HS: 4, NONE: 254, ANY: 255 } as const

export const OPCODE = { QUERY: 0, IQUERY: 1, STATUS: 2, NOTIFY: 4, UPDATE: 5, DSO: 6 } as const

// prettier-ignore
export const RCODE = {
  NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5, YXDOMAIN: 6, YXRRSET: 7, NXRRSET: 8,
  NOTAUTH: 9, NOTZONE: 10, BADVERS: 16, BADKEY: 17, BADTIME: 18, BADTRUNC: 22, BADCOOKIE: 23
} as const

/** As the error of a TSIG record, BADVERS' number means BADSIG. RFC 8945 §3. */
export const badSignature = 16

/** EDNS option codes. */
export const OPTION = { NSID: 3, ECS: 8, COOKIE: 10, KEEPALIVE: 11, PADDING: 12, EDE: 15 } as const

/** Extended DNS Errors (RFC 8914 §4) that we send. */
// prettier-ignore
export const EDE = {
  OTHER: 0, STALE_ANSWER: 3, CACHED_ERROR: 13, NOT_READY: 14, BLOCKED: 15, PROHIBITED: 18, STALE_NXDOMAIN: 19,
  NOT_AUTHORITATIVE: 20, NO_REACHABLE_AUTHORITY: 22, NETWORK_ERROR: 23, INVALID_DATA: 24
} as const

const typeNames = new Map<number, string>(Object.entries(RRTYPE).map(([name, number]) => [number, name]))
const rcodeNames = new Map<number, string>(Object.entries(RCODE).map(([name, number]) => [number, name]))

export const isAddressType = (type: number): boolean => type === RRTYPE.A || type === RRTYPE.AAAA

/** The type's mnemonic, or `TYPE65400` for one without. RFC 3597 §5. */
export const typeToText = (type: number): string => typeNames.get(type) ?? `TYPE${type}`

/** The number of a mnemonic or of `TYPE65400`, in any case; null where it is neither. */
export function parseType(text: string): number | null {
  const upper = text.toUpperCase()
  if (Object.hasOwn(RRTYPE, upper)) return RRTYPE[upper as keyof typeof RRTYPE]
  const match = /^TYPE(\d{1,5})$/.exec(upper)
  return match !== null && Number(match[1]) <= 0xffff ? Number(match[1]) : null
}

const classNames = new Map<number, string>(Object.entries(CLASS).map(([name, number]) => [number, name]))

/** The class's mnemonic, or `CLASS65280` for one without. RFC 3597 §5. */
export const classToText = (rrclass: number): string => classNames.get(rrclass) ?? `CLASS${rrclass}`

export const rcodeToText = (rcode: number): string => rcodeNames.get(rcode) ?? `RCODE${rcode}`
