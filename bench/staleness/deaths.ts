/** Endpoints that die one after the other at random moments: half of their pods are deleted, half get unready. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { KubeApi } from '../../test/e2e/support/kube-api.ts'
import { monotonicMs } from './monotonic.ts'
import type { ObserverProcess, TrialObservations } from './observer-process.ts'
import { namespace, podName, questionName, serviceName } from './shop.ts'
import type { SliceWatch } from './slice-watch.ts'

/** Each name is asked every 5 ms for so long before its endpoint dies. */
const leadMs = 1_000

export type Trial = Readonly<{
  name: string
  how: 'deleted' | 'unready'
  address: string
  /** From the request to the API server to its reply. */
  apiMs: number
  /** From that reply to the EndpointSlice without the endpoint, as a watch tells it; below 0 where it was faster. */
  sliceMs: number | null
  /** The reply, by `monotonicMs`. */
  atMs: number
  bySetUp: TrialObservations
}>

export type DeathsOptions = Readonly<{
  api: KubeApi
  observer: ObserverProcess
  slices: SliceWatch
  addresses: ReadonlyMap<string, string>
  /** The Services in the order in which they are struck; each loses the pod of this number. */
  services: readonly number[]
  pod: number
  /** Between two deaths on average. */
  gapMs: number
}>

export async function letDie(options: DeathsOptions): Promise<Trial[]> {
  const { services, gapMs } = options
  const trials: Promise<Trial>[] = []
  for (const [trial, service] of services.entries()) {
    trials.push(dieOne(options, trial, service))
    // Uniform between 0 and twice the mean: no phase of any cache is favoured.
    if (trial < services.length - 1) await sleep(Math.random() * 2 * gapMs)
  }
  return Promise.all(trials)
}

async function dieOne(options: DeathsOptions, trial: number, service: number): Promise<Trial> {
  const { api, observer, slices, addresses, pod } = options
  const name = questionName(service)
  const key = { namespace, name: podName(serviceName(service), pod) }
  const address = addresses.get(key.name)!
  const observed = observer.watch(trial, name, address)
  await sleep(leadMs)
  let sliceAtMs: number | null = null
  void slices.goneFrom(serviceName(service), address).then((atMs) => (sliceAtMs = atMs))
  const how = trial % 2 === 0 ? 'deleted' : 'unready'
  const sentAtMs = monotonicMs()
  if (how === 'deleted') await api.delete('Pod', key, { gracePeriodSeconds: 0 })
  else await api.setPodReady(key, false)
  const atMs = monotonicMs()
  observer.killed(trial, atMs)
  const bySetUp = await observed
  const sliceMs = sliceAtMs === null ? null : sliceAtMs - atMs
  return { name, how, address, apiMs: atMs - sentAtMs, sliceMs, atMs, bySetUp }
}
