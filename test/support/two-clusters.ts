/**
 * The story of two clusters on free ports of 127.0.0.1, in this process: B peers `backend` to A and falls back to
 * itself.
 */
import type { Test } from 'tap'
import { silentLog } from '../../src/base/log.ts'
import { parseConfig } from '../../src/config/load.ts'
import { startServer, type RunningServer } from '../../src/main.ts'
import { loopClock } from './loop-clock.ts'

const service = (name: string, namespace: string, clusterIP: string): string => `---
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: ${namespace}}
spec: {clusterIP: ${clusterIP}, ports: [{name: http, port: 8080}]}
`

/** A Service that cannot be served. */
const malformed = `---
apiVersion: v1
kind: Service
metadata: {name: broken, namespace: backend}
spec: {clusterIP: not-an-address, ports: [{name: http, port: 99999}]}
`

const manifests = {
  'a.yaml': service('api', 'backend', '172.30.1.0') + service('web', 'backend', '172.30.2.0'),
  'b.yaml': service('api', 'backend', '10.1.1.20') + service('own', 'default', '10.1.1.40') + malformed
}

export type TwoClusters = Readonly<{
  a: RunningServer
  b: RunningServer
  /** `http://127.0.0.1:PORT` of B, with everything. */
  adminUrl: string
  observeUrl: string
  /** `127.0.0.1:PORT` of B's DNS. */
  dns: string
}>

/** Starts both and stops them with the test. */
export async function startTwoClusters(t: Test): Promise<TwoClusters> {
  const folder = t.testdir(manifests)
  async function start(name: 'a' | 'b', rest: string): Promise<RunningServer> {
    const text = `
cluster: {name: cluster-${name}, region: region-${name}, reverse: [10.0.0.0/8], source: {manifests: ["./${name}.yaml"]}}
listen: ["127.0.0.1:0"]
admin: "127.0.0.1:0"
observe: "127.0.0.1:0"
forward: []
${rest}`
    const config = parseConfig({ text, hash: `hash of ${name}` }, `${folder}/config-${name}.yaml`, { home: folder })
    const server = await startServer(config, { log: silentLog, watchConfig: false, clock: loopClock })
    t.teardown(() => server.stop({ force: true }))
    return server
  }
  const a = await start('a', '')
  const b = await start(
    'b',
    `peers: {cluster-a: {servers: ["127.0.0.1:${a.dnsAddresses[0]!.port}"], region: region-a}}
policies:
  - {name: backend-from-a, dnsName: backend.svc.cluster.local, targets: [cluster-a, local], clients: [127.0.0.0/8, 10.8.0.0/14]}
  - {name: fixed, dnsName: fixed.example, targets: [{addresses: [10.9.0.7]}], maxTtl: 7s}`
  )
  return {
    a,
    b,
    adminUrl: `http://127.0.0.1:${b.adminAddress!.port}`,
    observeUrl: `http://127.0.0.1:${b.observeAddress!.port}`,
    dns: `127.0.0.1:${b.dnsAddresses[0]!.port}`
  }
}
