/** The hub, as a process of its own: a peerdns whose cluster changes by messages of the benchmark, and what it uses. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { systemClock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import { eventForReduced, type ObjectEvent } from '../../src/cluster/object-event.ts'
import { reduceObject } from '../../src/cluster/objects.ts'
import { loadConfig } from '../../src/config/load.ts'
import { loadOptions } from '../../src/main/load-options.ts'
import { RunningServer } from '../../src/main.ts'
import { service, slice } from '../../test/support/objects.ts'

/** Since the start, but for memory and the longest turn, which are of now and since the last reading. */
export type HubReading = Readonly<{
  cpuSeconds: number
  rssOctets: number
  longestTurnMs: number
  sentOctets: number
  wholeTransfers: number
  deltaTransfers: number
  currentTransfers: number
  notifies: number
  rrsets: number
}>

export type HubRequest =
  | Readonly<{ kind: 'start'; services: number }>
  | Readonly<{ kind: 'change'; service: number; generation: number }>
  | Readonly<{ kind: 'read' }>

export type HubReply =
  | Readonly<{ kind: 'started'; server: string }>
  | Readonly<{ kind: 'changed'; serial: number; atMs: number }>
  | Readonly<{ kind: 'reading'; reading: HubReading }>

const delays = monitorEventLoopDelay({ resolution: 1 })
let server: RunningServer | null = null
let folder = ''

const reply = (message: HubReply): void => void process.send!(message)

function addressesOf(generation: number): string[] {
  return [1, 2, 3].map((last) => `10.${generation & 127}.${(generation >> 7) & 255}.${last}`)
}

const nameOf = (number: number): string => `s${number}.ns${number % 50}`

function objectsOf(number: number): object[] {
  return service(nameOf(number), 'None', { ready: addressesOf(0) })
}

async function start(services: number): Promise<void> {
  folder = mkdtempSync(join(tmpdir(), 'peerdns-hub-'))
  const file = join(folder, 'config.yaml')
  writeFileSync(join(folder, 'objects.yaml'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [] }))
  writeFileSync(
    file,
    `cluster: {name: bench, source: {manifests: ["${folder}/objects.yaml"]}}
listen: ["127.0.0.1:0"]
admin: off
transfer: {allow: [private]}
limits: {tcpConnections: 4000}
forward: []
`
  )
  server = new RunningServer(loadConfig(file, loadOptions()), systemClock, createLog('error'))
  await server.start(false)
  const events: ObjectEvent[] = []
  for (let number = 0; number < services; number++) events.push(...eventsOf(objectsOf(number)))
  server.view.zones.apply(events, Date.now())
  const { address, port } = server.dnsAddresses[0]!
  delays.enable()
  reply({ kind: 'started', server: `${address}:${port}` })
}

function eventsOf(objects: readonly object[]): ObjectEvent[] {
  return objects.flatMap((object) => eventForReduced(reduceObject(object)) ?? [])
}

function change(number: number, generation: number): void {
  const atMs = Date.now()
  const { zones } = server!.view
  zones.apply(eventsOf([slice(nameOf(number), addressesOf(generation))]), atMs)
  zones.zone.whenBatched(() => reply({ kind: 'changed', serial: zones.zone.serial, atMs }))
}

function read(): void {
  const { user, system } = process.cpuUsage()
  const { stats } = server!.zonesOut.primary
  const longestTurnMs = delays.max / 1e6
  delays.reset()
  reply({
    kind: 'reading',
    reading: {
      cpuSeconds: (user + system) / 1e6,
      rssOctets: process.memoryUsage.rss(),
      longestTurnMs,
      sentOctets: stats.octetsTotal,
      wholeTransfers: stats.wholeTotal,
      deltaTransfers: stats.differencesTotal,
      currentTransfers: stats.currentTotal,
      notifies: stats.notifyPushedTotal,
      rrsets: server!.view.zones.zone.sizes.rrsets
    }
  })
}

process.on('message', (request: HubRequest) => {
  if (request.kind === 'start') void start(request.services)
  else if (request.kind === 'change') change(request.service, request.generation)
  else read()
})
process.on('disconnect', () => {
  rmSync(folder, { recursive: true, force: true })
  process.exit(0)
})
