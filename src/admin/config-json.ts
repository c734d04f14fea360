/**
 * The effective configuration as JSON: defaults filled in, names and numbers as people write them.
 *
 * Written for any shape, so that an option which is added is shown without a word here. Secrets stand in files of their
 * own and never in the configuration; a key that looks like one is left out all the same.
 */
import { hostPortToText } from '../base/host-port.ts'
import { NetworkSet } from '../base/network.ts'
import type { Config } from '../config/config.ts'
import { typeToText } from '../wire/iana.ts'
import { nameToText, type DomainName } from '../wire/name.ts'
import { rdataToText } from '../wire/record-text.ts'

/** Where something stands in the file: for messages only. */
const placeKeys = new Set(['position', 'positions'])

const looksSecret = /secret|token|password|private/i

export const presentConfig = (config: Config): unknown => presentValue(config)

function presentValue(value: unknown): unknown {
  if (typeof value === 'string') return presentText(value)
  if (value instanceof NetworkSet) return value.networks.map(({ text }) => text)
  if (Array.isArray(value) || value instanceof Set) return Array.from(value as Iterable<unknown>, presentValue)
  return typeof value === 'object' && value !== null ? presentObject({ ...value }) : value
}

/** No text of a configuration holds a NUL but a domain name, which ends in one. */
const presentText = (text: string): string => (text.endsWith('\0') ? nameToText(text as DomainName) : text)

function presentObject(fields: Record<string, unknown>): unknown {
  const { port, host, address, rdata, type, words } = fields
  const where = host ?? address
  if (typeof port === 'number' && typeof where === 'string') return hostPortToText(where, port)
  if (Array.isArray(words)) return fields['text']
  const shown = Object.entries(fields).filter(([key]) => !placeKeys.has(key) && !looksSecret.test(key))
  return Object.fromEntries(
    shown.map(([key, value]) => {
      if (key === 'type' && typeof value === 'number') return [key, typeToText(value)]
      if (rdata instanceof Uint8Array && key === 'rdata') return ['data', rdataToText(type as number, rdata)]
      return [key, presentValue(value)]
    })
  )
}
