/** Watches EndpointSlices, as a process of its own, and tells when one no longer holds an address as ready. */
import { readFileSync } from 'node:fs'
import { get } from 'node:https'
import type { V1EndpointSlice } from '@kubernetes/client-node'
import { monotonicMs } from './monotonic.ts'
import { raisePriority } from './priority.ts'
import type { FromWatcher, ToWatcher } from './slice-watch.ts'

type SliceEvent = Readonly<{ type: string; object: V1EndpointSlice }>

/** Addresses by Service. */
const expected = new Map<string, Set<string>>()
let rest = ''

const tell = (message: FromWatcher): void => void process.send!(message)

function watch({ url, caFile, certFile, keyFile }: Extract<ToWatcher, { kind: 'watch' }>): void {
  const options = { ca: readFileSync(caFile), cert: readFileSync(certFile), key: readFileSync(keyFile), agent: false }
  get(url, options, (response) => {
    if (response.statusCode !== 200) throw new Error(`HTTP ${response.statusCode}`)
    response.setEncoding('utf8')
    response.on('data', take)
    // A stream that breaks tells of nothing more: those trials have no such figure.
    response.on('error', () => {})
    tell({ kind: 'ready' })
  })
}

function expect({ service, address }: Extract<ToWatcher, { kind: 'expect' }>): void {
  const addresses = expected.get(service) ?? new Set()
  expected.set(service, addresses.add(address))
}

function take(text: string): void {
  const nowMs = monotonicMs()
  const lines = (rest + text).split('\n')
  rest = lines.pop()!
  for (const line of lines) takeEvent(JSON.parse(line) as SliceEvent, nowMs)
}

function takeEvent({ type, object }: SliceEvent, atMs: number): void {
  if (type !== 'MODIFIED') return
  const service = object.metadata?.labels?.['kubernetes.io/service-name'] ?? ''
  for (const address of expected.get(service) ?? []) {
    const isThere = object.endpoints?.some(
      ({ addresses, conditions }) => addresses.includes(address) && conditions?.ready === true
    )
    if (isThere === true) continue
    expected.get(service)!.delete(address)
    tell({ kind: 'gone', service, address, atMs })
  }
}

raisePriority()
process.on('message', (message: ToWatcher) => (message.kind === 'watch' ? watch(message) : expect(message)))
process.once('disconnect', () => process.exit(0))
