/** The two servers on one API server, started again and again: peerdns as it runs in a pod, and CoreDNS. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { aRdata } from '../../src/wire/rdata.ts'
import type { Cluster } from '../../test/e2e/support/cluster.ts'
import { startCoreDns } from '../../test/e2e/support/coredns.ts'
import { binary, Part } from '../../test/e2e/support/part.ts'
import { freePort } from '../../test/support/free-port.ts'
import type { PeerdnsProgram } from '../rivals/peerdns.ts'
import { addressQuery, Prober } from './prober.ts'
import { ownerOf } from './objects.ts'

export type ServerUnderTest = Readonly<{ title: string; port: number; part: Part }>

/** A question whose right answer holds this address. */
export type FirstQuestion = Readonly<{ service: number; address: string }>

const rules = [{ apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list', 'watch'] }]
/** Where a pod finds its token. The server gets a mount namespace of its own, in which it lies there. */
const inPod = `mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io &&
ln -s "$1" /run/secrets/kubernetes.io/serviceaccount && shift && exec "$@"`

/** Ready is: the right answer, which neither of them gives before it has read everything. */
const answers = (port: number, first: () => FirstQuestion) => async (): Promise<boolean> => {
  const prober = await Prober.to(port)
  const { service, address } = first()
  try {
    return await prober.ask(addressQuery(ownerOf(service)), aRdata(address))
  } finally {
    prober.close()
  }
}

export async function peerdnsInPod(
  cluster: Cluster,
  title: string,
  program: PeerdnsProgram,
  first: () => FirstQuestion
): Promise<ServerUnderTest> {
  const { folder } = await cluster.serviceAccount('peerdns', 'peerdns', rules)
  const { port, file } = await writeConfig(cluster.folder, '{}')
  const server = [program.node, ...program.nodeOptions, program.main, 'serve', '--config', file]
  const part = new Part({
    name: title.replaceAll(/[^a-z0-9]+/gi, '-'),
    folder: cluster.folder,
    command: 'unshare',
    args: ['--mount', '--propagation', 'private', 'sh', '-c', inPod, 'sh', folder, ...server],
    env: { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(cluster.port) },
    isReady: answers(port, first)
  })
  cluster.adopt(part)
  return { title, port, part }
}

/** Writes a configuration with this source; the same Services as CoreDNS answers, PTR included. */
export async function writeConfig(folder: string, source: string): Promise<{ port: number; file: string }> {
  const port = await freePort()
  const file = join(folder, `peerdns-${port}.yaml`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    file,
    `cluster: {name: scale, reverse: [10.0.0.0/8], source: {kubernetes: ${source}}}
listen: ["127.0.0.1:${port}"]
admin: "127.0.0.1:${await freePort()}"
forward: []
log: {level: warn}
`
  )
  return { port, file }
}

export async function corednsOn(cluster: Cluster, first: () => FirstQuestion): Promise<ServerUnderTest> {
  const { part: once, port, corefile } = await startCoreDns(cluster)
  await once.kill()
  const part = new Part({
    name: 'coredns',
    folder: cluster.folder,
    command: binary('coredns'),
    args: [`-conf=${corefile}`],
    isReady: answers(port, first)
  })
  cluster.adopt(part)
  return { title: 'CoreDNS 1.15', port, part }
}
