/** Two small servers in Node for comparison: one written plainly on dns2, and one that only sends every datagram back. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { recordsOf } from '../dataset.ts'
import type { Place, ServerPlan, ZoneRole } from './server-plan.ts'

const fileBeside = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

export function dns2ForZone(node: string, place: Place, role: ZoneRole): ServerPlan {
  const file = join(place.folder, 'records.json')
  writeFileSync(file, JSON.stringify({ ttlSeconds: role.ttlSeconds, records: recordsOf(role.services) }))
  const args = [fileBeside('./dns2-server.ts'), String(place.port), file]
  return { id: 'dns2', title: 'dns2', setUp: 'a plain server on its UDP server', command: node, args, port: place.port }
}

export function dgramEcho(node: string, place: Place): ServerPlan {
  const args = [fileBeside('./dgram-echo.ts'), String(place.port)]
  const setUp = 'no DNS: sends the query back with QR set'
  return { id: 'echo', title: 'node:dgram echo', setUp, command: node, args, port: place.port }
}
