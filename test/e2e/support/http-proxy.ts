/** Plain HTTP on loopback to a cluster's API server, by `kubectl proxy`: it speaks as the kubeconfig's user. */
import type { Cluster } from './cluster.ts'
import { binary, Part } from './part.ts'
import { freePort } from '../../support/free-port.ts'

export type HttpProxy = Readonly<{ part: Part; url: string; kubeconfig: string }>

/** It ends with the cluster, or by `part.kill()`. */
export async function startHttpProxy(cluster: Cluster, kubeconfig = cluster.kubeconfig): Promise<HttpProxy> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const part = new Part({
    name: `kubectl-proxy-${port}`,
    folder: cluster.folder,
    command: binary('kubectl'),
    args: [`--kubeconfig=${kubeconfig}`, 'proxy', `--port=${port}`],
    // Whatever the API server says to it: the proxy itself is there.
    isReady: async () => (await fetch(`${url}/version`)).status > 0
  })
  cluster.adopt(part)
  await part.start()
  return { part, url, kubeconfig: cluster.writeKubeconfig(`http-${port}`, { token: '' }, url) }
}
