/**
 * Small servers for comparison: one written plainly on dns2, and two that only send every datagram back, in Node and in
 * C.
 */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { recordsOf } from '../dataset.ts'
import { serverTitles, type Place, type ServerPlan, type ZoneRole } from './server-plan.ts'

const leftOut = { tcp: 'it speaks UDP only', 'tcp-once': 'it speaks UDP only' }
const buildTimeoutMs = 60_000

const fileBeside = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

export function dns2ForZone(node: string, place: Place, role: ZoneRole): ServerPlan {
  const file = join(place.folder, 'records.json')
  writeFileSync(file, JSON.stringify({ ttlSeconds: role.ttlSeconds, records: recordsOf(role.services) }))
  const args = [fileBeside('./dns2-server.ts'), String(place.port), file]
  const setUp = 'a plain server on its UDP server'
  return { id: 'dns2', title: serverTitles.dns2, setUp, command: node, args, port: place.port, leftOut }
}

export function dgramEcho(node: string, place: Place): ServerPlan {
  const args = [fileBeside('./dgram-echo.ts'), String(place.port)]
  const setUp = 'no DNS: sends the query back with QR set'
  return { id: 'echo', title: serverTitles.echo, setUp, command: node, args, port: place.port, leftOut }
}

/** Where the floor in C was compiled to; null where that cannot be done. */
export function buildCEcho(compiler: string, folder: string): string | null {
  const program = join(folder, 'udp-echo')
  const args = ['-O2', '-o', program, fileBeside('./udp-echo.c')]
  const { status } = spawnSync(compiler, args, { timeout: buildTimeoutMs, stdio: 'ignore' })
  return status === 0 ? program : null
}

export function cEcho(program: string, place: Place): ServerPlan {
  const setUp = 'no DNS: recvmmsg, QR set, sendmmsg'
  return {
    id: 'c-echo',
    title: serverTitles['c-echo'],
    setUp,
    command: program,
    args: [String(place.port)],
    port: place.port,
    leftOut
  }
}
