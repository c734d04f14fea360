/** peerdns beside a real cluster: the real command as a part that can be killed, frozen and started again. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ResourceHealth } from '../../../src/admin/inspectable.ts'
import type { Cluster } from './cluster.ts'
import { LiveClient } from './live-client.ts'
import { Part } from './part.ts'
import { freePort } from '../../support/free-port.ts'

const root = join(import.meta.dirname, '..', '..', '..')

export type LiveServerOptions = Readonly<{
  /** Names the log; with several on one cluster each needs its own. The cluster's name unless told. */
  name?: string
  /** The port to listen on, where peers have to know it before; a free one unless told. */
  port?: number
  /** Further addresses to listen on, at the same port. */
  listen?: readonly string[]
  /** The administrator's unless told. */
  kubeconfig?: string
  /** Instead of the cluster: a flow mapping's content. */
  source?: string
  pods?: 'disabled' | 'insecure' | 'verified'
  /** Further keys of `cluster`, as a flow mapping's content: `importsInZone: true`. */
  clusterKeys?: string
  /** Further top-level keys as YAML text; `forward` is off unless it is in here. */
  more?: string
  /** false: returns as soon as it listens. */
  untilReady?: boolean
}>

export type LogLine = Readonly<{ msg?: string; level?: number | string; resource?: string }> & Record<string, unknown>

export class LiveServer {
  readonly part: Part
  readonly port: number
  readonly adminUrl: string
  readonly client: LiveClient

  private constructor(part: Part, port: number, adminUrl: string) {
    this.part = part
    this.port = port
    this.adminUrl = adminUrl
    this.client = new LiveClient(port)
  }

  /** It ends with the cluster, or by `stop`. */
  static async start(cluster: Cluster, options: LiveServerOptions = {}): Promise<LiveServer> {
    const { name = cluster.name, kubeconfig = cluster.kubeconfig, pods = 'insecure', more = '' } = options
    const { clusterKeys, listen = [], untilReady = true } = options
    const source = options.source ?? `kubernetes: {kubeconfig: ${kubeconfig}, context: ${cluster.name}}`
    const port = options.port ?? (await freePort())
    const adminPort = await freePort()
    const file = join(cluster.folder, `peerdns-${name}.yaml`)
    const keys = [
      `name: ${cluster.name}`,
      `pods: ${pods}`,
      'reverse: [10.0.0.0/8, 172.30.0.0/16, "fd00::/16"]',
      `source: {${source}}`,
      ...(clusterKeys === undefined ? [] : [clusterKeys])
    ]
    const forward = /^forward:/m.test(more) ? '' : 'forward: []\n'
    const addresses = ['127.0.0.1', ...listen].map((address) => `"${address}:${port}"`)
    const head = `cluster: {${keys.join(', ')}}\nlisten: [${addresses.join(', ')}]\nadmin: "127.0.0.1:${adminPort}"\n`
    writeFileSync(file, `${head}${forward}${more}`)
    const adminUrl = `http://127.0.0.1:${adminPort}`
    const part = new Part({
      name: `peerdns-${name}`,
      folder: cluster.folder,
      command: process.execPath,
      args: [join(root, 'src', 'cli', 'main.ts'), 'serve', '--config', file],
      isReady: async () => {
        const response = await fetch(`${adminUrl}/${untilReady ? 'readyz' : 'healthz'}`)
        await response.body?.cancel()
        return response.ok
      }
    })
    cluster.adopt(part)
    await part.start()
    return new LiveServer(part, port, adminUrl)
  }

  /** The status and the text of `/readyz?verbose`. */
  async readiness(): Promise<{ status: number; text: string }> {
    const response = await fetch(`${this.adminUrl}/readyz?verbose`)
    return { status: response.status, text: await response.text() }
  }

  /** The sum of a metric's samples, of those with this label where one is given; null where there is none. */
  async metric(name: string, label = ''): Promise<number | null> {
    const text = await (await fetch(`${this.adminUrl}/metrics`)).text()
    const samples = text
      .split('\n')
      .filter((line) => line.startsWith(`${name} `) || (line.startsWith(`${name}{`) && line.includes(label)))
    return samples.length === 0 ? null : samples.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }

  /** What it follows, as the status API tells it. */
  async resources(): Promise<readonly ResourceHealth[]> {
    const response = await fetch(`${this.adminUrl}/api/v1/status`)
    return ((await response.json()) as { source: { resources: readonly ResourceHealth[] } }).source.resources
  }

  /** How old what it answers by may be, in seconds. */
  async ageSeconds(): Promise<number> {
    return (await this.metric('peerdns_source_last_sign_of_life_age_seconds')) ?? Infinity
  }

  /** Everything logged so far. */
  log(): LogLine[] {
    const lines = readFileSync(this.part.logFile, 'utf8').split('\n')
    return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as LogLine)
  }

  async stop(): Promise<void> {
    this.client.close()
    await this.part.kill('SIGTERM')
  }
}
