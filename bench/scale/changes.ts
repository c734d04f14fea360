/**
 * Changes at the API server at a steady rate, and how long after each reply the server under test first answers
 * rightly.
 */
import { aRdata } from '../../src/wire/rdata.ts'
import type { KubeApi } from '../../test/e2e/support/kube-api.ts'
import { latencyFigures, type LatencyFigures } from './figures.ts'
import { addressOf, endpointObjects, firstAddresses, ownerOf, sliceKey } from './objects.ts'
import { addressQuery, Prober, untilMs } from './prober.ts'

const pollMs = 0.5
const giveUpAfterMs = 5_000
const mostAtOnce = 100
/** New addresses begin here, far behind those of the generator. */
const firstNewAddress = 0x40_0000

export type ChangeFigures = LatencyFigures &
  Readonly<{ changes: number; seconds: number; perSecond: number; neverRight: number; failures: number }>

/** What the slices of the headless Services hold now: one address of each is exchanged by each change. */
export class Endpoints {
  readonly #perService: number
  readonly #addresses = new Map<number, string[]>()
  #next = firstNewAddress

  constructor(perService: number) {
    this.#perService = perService
  }

  addresses(number: number): string[] {
    return this.#addresses.get(number) ?? firstAddresses(number, this.#perService)
  }

  /** Exchanges one address, and gives the new one. */
  exchange(number: number): string {
    const address = addressOf(this.#next++)
    const addresses = this.addresses(number)
    addresses[this.#next % addresses.length] = address
    this.#addresses.set(number, addresses)
    return address
  }
}

export async function measureChanges(options: {
  api: KubeApi
  port: number
  endpoints: Endpoints
  services: number
  perSecond: number
  seconds: number
}): Promise<ChangeFigures> {
  const { api, endpoints, services, perSecond, seconds } = options
  const prober = await Prober.to(options.port)
  const delaysMs: number[] = []
  let neverRight = 0
  let failures = 0
  const busy = new Set<number>()
  const changeOne = async (number: number): Promise<void> => {
    busy.add(number)
    const address = endpoints.exchange(number)
    const patch = { endpoints: endpointObjects(number, endpoints.addresses(number)) }
    // The API server may close a connection just when it is used; the same patch once more does no harm.
    await api.patch('EndpointSlice', sliceKey(number), patch).catch(async () => {
      failures++
      return api.patch('EndpointSlice', sliceKey(number), patch)
    })
    const repliedAtMs = performance.now()
    const query = addressQuery(ownerOf(number))
    const octets = aRdata(address)
    for (;;) {
      const askedAtMs = performance.now()
      const isRight = await prober.ask(query, octets)
      if (isRight) delaysMs.push(performance.now() - repliedAtMs)
      else if (performance.now() - repliedAtMs > giveUpAfterMs) neverRight++
      else {
        await untilMs(askedAtMs + pollMs)
        continue
      }
      break
    }
    busy.delete(number)
  }
  const startedAtMs = performance.now()
  const running: Promise<void>[] = []
  const changes = Math.round(perSecond * seconds)
  for (let change = 0; change < changes; change++) {
    await untilMs(startedAtMs + (change * 1000) / perSecond)
    let number = 2 * Math.floor((Math.random() * services) / 2)
    // The API server is the limit then, and the figures say what rate there was.
    while (busy.size >= Math.min(mostAtOnce, services / 4)) await untilMs(performance.now() + 1)
    while (busy.has(number)) number = (number + 2) % services
    running.push(changeOne(number))
  }
  const tookSeconds = (performance.now() - startedAtMs) / 1000
  await Promise.all(running)
  prober.close()
  return {
    ...latencyFigures(delaysMs),
    changes,
    seconds: tookSeconds,
    perSecond: changes / tookSeconds,
    neverRight,
    failures
  }
}
