/**
 * How the health of an address is checked, as operators write it: `tcp:8080`, `http:8080/healthz`, `https:8443/ready`.
 */
import { inBackticks, TextError } from './errors.ts'

export type EndpointCheck = Readonly<{
  kind: 'tcp' | 'http' | 'https'
  port: number
  /** '' for tcp; else it begins with a slash. */
  path: string
}>

const form = /^(tcp|https?):(\d{1,5})(\/[!-~]{0,255})?$/

/** @throws TextError */
export function parseEndpointCheck(text: string): EndpointCheck {
  const [, kind, port, path] = form.exec(text) ?? []
  if (kind === undefined || Number(port) < 1 || Number(port) > 65_535) {
    throw new TextError(`${inBackticks(text.slice(0, 80))} is not a check like tcp:8080 or http:8080/healthz`)
  }
  if (kind === 'tcp' && path !== undefined) throw new TextError('a check by TCP has no path')
  return { kind: kind as EndpointCheck['kind'], port: Number(port), path: kind === 'tcp' ? '' : (path ?? '/') }
}

/** Tells a checked address from all others; `check` as it is written. */
export const endpointKey = (address: string, check: string): string => `${check} ${address}`

/** A check has no space in it. */
export function partsOfEndpointKey(key: string): { address: string; check: string } {
  const at = key.indexOf(' ')
  return { check: key.slice(0, at), address: key.slice(at + 1) }
}
