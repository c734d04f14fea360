/**
 * The real command as its own process: `peerdns serve` on free ports of 127.0.0.1, for tests that look from outside.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
/** A process starts in half a second; on a machine with much else to do that is many seconds. */
const startTimeoutMs = 60_000

export type ServerProcess = Readonly<{
  process: ChildProcess
  /** UDP and TCP. */
  port: number
  adminUrl: string
  /** Everything written so far, the log's JSON lines and what a crash leaves. */
  output: () => string
  /** SIGTERM; resolves to the exit code, or the signal's name where one ended it. */
  stop: () => Promise<number | string>
}>

/** The flags for the heap that the image's command sets, which is how peerdns runs in a cluster. */
export function heapFlagsOfImage(): string[] {
  const command = /^ENTRYPOINT (\[.*\])$/m.exec(readFileSync(join(root, 'Dockerfile'), 'utf8'))?.[1]
  if (command === undefined) throw new Error('the Dockerfile has no ENTRYPOINT in JSON form')
  return (JSON.parse(command) as string[]).filter((argument) => argument.startsWith('--'))
}

/**
 * Starts a server with this configuration and waits until it is ready. `{listen}` and `{admin}` in the text become
 * addresses with a free port. Rejects with what the process wrote where it does not get ready.
 * @param nodeFlags for node itself.
 */
export async function startServerProcess(config: string, nodeFlags: readonly string[] = []): Promise<ServerProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'peerdns-test-'))
  const file = join(folder, 'config.yaml')
  writeFileSync(file, config.replaceAll('{listen}', '127.0.0.1:0').replaceAll('{admin}', '127.0.0.1:0'))
  const child = spawn(process.execPath, [...nodeFlags, join(root, 'src/cli/main.ts'), 'serve', '--config', file], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe']
  })
  const ended = new Promise<number | string>((resolve) => {
    // Not `exit`: what it wrote last may come after that.
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'))
  })
  const lines: string[] = []
  const bound = new Promise<{ port: number; adminUrl: string }>((resolve, reject) => {
    void ended.then((how) => reject(new Error(`the server ended (${how}):\n${lines.join('\n')}`)))
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line)
        const addresses = addressesIn(line)
        if (addresses !== null) resolve(addresses)
      })
    }
  })
  const stop = async () => {
    child.kill('SIGTERM')
    const how = await ended
    rmSync(folder, { recursive: true, force: true })
    return how
  }
  try {
    const addresses = await Promise.race([bound, sleep(startTimeoutMs, null, { ref: false })])
    if (addresses === null) throw new Error(`the server did not listen in time:\n${lines.join('\n')}`)
    await untilReady(addresses.adminUrl, lines)
    return { process: child, ...addresses, output: () => lines.join('\n'), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

type ListeningLine = { msg?: string; dns?: { port: number }[]; admin?: { address: string; port: number } | null }

function addressesIn(line: string): { port: number; adminUrl: string } | null {
  if (!line.startsWith('{') || !line.includes('"listening"')) return null
  const { dns, admin } = JSON.parse(line) as ListeningLine
  const port = dns?.[0]?.port
  return port === undefined || admin === undefined || admin === null
    ? null
    : { port, adminUrl: `http://127.0.0.1:${admin.port}` }
}

async function untilReady(adminUrl: string, lines: readonly string[]): Promise<void> {
  for (let tries = 0; tries < startTimeoutMs / 50; tries++) {
    const response = await fetch(`${adminUrl}/readyz`).catch(() => null)
    await response?.body?.cancel()
    if (response?.status === 200) return
    await sleep(50)
  }
  throw new Error(`the server did not get ready:\n${lines.join('\n')}`)
}
