/**
 * The demo's three clusters: copies of the files in config/, so that the story can change them, each with its own
 * server.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { silentLog } from '../base/log.ts'
import { loadConfig } from '../config/load.ts'
import { startServer, type RunningServer } from '../main.ts'
import { loadOptions } from '../main/load-options.ts'

export type ClusterLetter = 'a' | 'b' | 'c'

const letters: readonly ClusterLetter[] = ['a', 'b', 'c']
const sampleFolder = fileURLToPath(new URL('../../config', import.meta.url))
/** The ports in the sample files: DNS 5301 to 5303, admin 9301 to 9303. */
const sampleBasePort = 5300
const adminOffset = 4000

export class DemoClusters {
  readonly basePort: number
  readonly #folder = mkdtempSync(join(tmpdir(), 'peerdns-demo-'))
  readonly #servers = new Map<ClusterLetter, RunningServer>()

  constructor(basePort: number) {
    this.basePort = basePort
    for (const letter of letters) {
      const text = readFileSync(join(sampleFolder, `cluster-${letter}.yaml`), 'utf8')
      writeFileSync(this.configFile(letter), this.#withPorts(text))
      cpSync(join(sampleFolder, `cluster-${letter}`), join(this.#folder, `cluster-${letter}`), { recursive: true })
    }
  }

  dnsPort(letter: ClusterLetter): number {
    return this.basePort + 1 + letters.indexOf(letter)
  }

  adminPort(letter: ClusterLetter): number {
    return this.dnsPort(letter) + adminOffset
  }

  configFile(letter: ClusterLetter): string {
    return join(this.#folder, `cluster-${letter}.yaml`)
  }

  get letters(): readonly ClusterLetter[] {
    return letters
  }

  server(letter: ClusterLetter): RunningServer | null {
    return this.#servers.get(letter) ?? null
  }

  /** Starts all that do not run. @throws ListenError with none left running. */
  async start(): Promise<void> {
    for (const letter of letters) await this.revive(letter)
  }

  async revive(letter: ClusterLetter): Promise<void> {
    if (this.#servers.has(letter)) return
    const config = loadConfig(this.configFile(letter), loadOptions())
    this.#servers.set(letter, await startServer(config, { log: silentLog }))
  }

  /** As if the machine lost its power: sockets close, nobody is told. */
  async kill(letter: ClusterLetter): Promise<void> {
    await this.#servers.get(letter)?.stop({ force: true })
    this.#servers.delete(letter)
  }

  /** Takes one endpoint out of cluster A's EndpointSlice, or puts all of them back. */
  setEndpoint(address: string, isReady: boolean): void {
    const file = join(this.#folder, 'cluster-a', 'backend.yaml')
    const text = readFileSync(file, 'utf8')
    const condition = new RegExp(
      `(- addresses: \\[${address.replaceAll('.', '\\.')}\\]\\n\\s+conditions: \\{ready: )\\w+`
    )
    if (!condition.test(text)) throw new Error(`${file} has no endpoint ${address}`)
    writeFileSync(file, text.replace(condition, `$1${isReady}`))
  }

  async stop(): Promise<void> {
    await Promise.all(letters.map(async (letter) => this.kill(letter)))
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #withPorts(text: string): string {
    return text.replaceAll(/127\.0\.0\.1:(530[1-3]|930[1-3])/g, (_, port: string) => {
      const moved = this.basePort + Number(port) - sampleBasePort
      return `127.0.0.1:${moved}`
    })
  }
}
