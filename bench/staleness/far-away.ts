/** A network namespace for cluster B, behind a slow and lossy way to cluster A, and a fast one to its clients. */
import { execFileSync, fork, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { linkAddresses } from './link-addresses.ts'

const ip = (...args: string[]): void => void execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] })

export class FarAway {
  readonly namespace: string
  readonly #link: ChildProcess

  private constructor(namespace: string, link: ChildProcess) {
    this.namespace = namespace
    this.#link = link
  }

  /** @throws where no namespaces or devices can be made, or koffi is missing. */
  static async start(delayMs: number, lossShare: number): Promise<FarAway> {
    const namespace = `peerdns-bench-${process.pid}`
    const { client, server } = linkAddresses
    // Short, as names of devices are.
    const device = `pc${process.pid}`
    ip('netns', 'add', namespace)
    process.once('exit', () => removeNamespace(namespace))
    ip('link', 'add', device, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace)
    ip('addr', 'add', `${client}/30`, 'dev', device)
    ip('link', 'set', device, 'up')
    ip('-n', namespace, 'addr', 'add', `${server}/30`, 'dev', 'eth0')
    for (const name of ['lo', 'eth0']) ip('-n', namespace, 'link', 'set', name, 'up')
    const args = [namespace, String(delayMs), String(lossShare)]
    const link = fork(join(import.meta.dirname, 'packet-link.ts'), args)
    await new Promise<void>((resolve, reject) => {
      link.once('message', () => resolve())
      link.once('exit', () => reject(new Error('no slow way can be made here')))
    })
    return new FarAway(namespace, link)
  }

  stop(): void {
    this.#link.kill('SIGKILL')
    removeNamespace(this.namespace)
  }
}

function removeNamespace(namespace: string): void {
  try {
    ip('netns', 'del', namespace)
  } catch {
    // It is gone already.
  }
}
