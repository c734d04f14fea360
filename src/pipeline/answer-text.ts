/** An answer in a few words, for people. */
import { rcodeToText, RCODE, typeToText } from '../wire/iana.ts'
import { rdataToText } from '../wire/record-text.ts'
import type { Answer } from './answer.ts'

const maxTextCharacters = 200

/** RCODE, and the data in an order of their own: equal for answers that tell a client the same. */
export function answerText({ sections: { rcode, answer } }: Answer): string {
  if (answer.length === 0) return rcode === RCODE.NOERROR ? 'NODATA' : rcodeToText(rcode)
  const data = answer.flatMap(({ type, rdata }) => rdata.map((one) => `${typeToText(type)} ${rdataToText(type, one)}`))
  const text = data.sort().join(', ')
  const whole = rcode === RCODE.NOERROR ? text : `${rcodeToText(rcode)} ${text}`
  return whole.length > maxTextCharacters ? `${whole.slice(0, maxTextCharacters)}… (${data.length})` : whole
}
