/** An EndpointSlice as it is held: its endpoints in one text, since objects would take six times the memory. */
import type { Endpoint, EndpointSlice, EndpointState } from './endpoint-objects.ts'
import type { Port } from './service-objects.ts'

const stateOf: Readonly<Record<string, EndpointState>> = { r: 'ready', s: 'serving', n: 'notReady' }

export class HeldSlice implements EndpointSlice {
  readonly kind = 'EndpointSlice'
  readonly namespace: string
  readonly name: string
  readonly serviceName: string
  readonly isImported: boolean
  readonly sourceCluster: string
  readonly ports: readonly Port[]
  /** For each endpoint its state's letter, its address, a space, its hostname and a newline; neither can hold those. */
  readonly #endpoints: string

  constructor(slice: EndpointSlice) {
    this.namespace = slice.namespace
    this.name = slice.name
    this.serviceName = slice.serviceName
    this.isImported = slice.isImported
    this.sourceCluster = slice.sourceCluster
    this.ports = slice.ports
    this.#endpoints = slice.endpoints
      .map(({ address, hostname, state }) => `${state.charAt(0)}${address} ${hostname}\n`)
      .join('')
  }

  /** Made anew for each reader. */
  get endpoints(): readonly Endpoint[] {
    const endpoints: Endpoint[] = []
    const text = this.#endpoints
    for (let at = 0; at < text.length;) {
      const space = text.indexOf(' ', at)
      const end = text.indexOf('\n', space)
      const [address, hostname] = [text.slice(at + 1, space), text.slice(space + 1, end)]
      endpoints.push({ address, hostname, state: stateOf[text.charAt(at)]! })
      at = end + 1
    }
    return endpoints
  }
}
