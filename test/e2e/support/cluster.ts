/**
 * A whole Kubernetes cluster of 127.0.0.1: etcd, kube-apiserver with RBAC, kube-controller-manager and kwok, which
 * plays the nodes. Pods are API objects only; their Deployments, StatefulSets and EndpointSlices are the real
 * controllers'.
 */
import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { V1PolicyRule } from '@kubernetes/client-node'
import { CertificateAuthority, type Certificate } from './certificates.ts'
import { apiServerPart, controllerManagerPart, etcdPart, kwokPart } from './control-plane.ts'
import { eventually } from './eventually.ts'
import { KubeApi } from './kube-api.ts'
import { writeKubeconfig, type KubeconfigUser } from './kubeconfig.ts'
import { binary, removeFolder, temporaryFolder, type Part } from './part.ts'
import { freePort } from '../../support/free-port.ts'
import { serviceImportDefinition, type ServiceImportVersion } from './service-import-crd.ts'

export type ClusterOptions = Readonly<{
  /** Names the nodes (`<name>-node-1`, ...), the kubeconfig's context and the logs' folder. */
  name: string
  /** ClusterIPs; 10.96.0.0/16 unless told. */
  serviceCidr?: string
  /** A /16, of which each node gets a /24; 10.244.0.0/16 unless told. */
  podCidr?: string
  /**
   * A /48 or shorter that ends in `::`, for instance `fd00:a::`: Services may then be dual stack, and pods have both.
   */
  ipv6Prefix?: string
  /** 3 unless told. */
  nodes?: number
  /** The nodes' topology region; their zones are `<region>-1`, ... The cluster's name unless told. */
  region?: string
  /** The served versions of the ServiceImport CRD, the first one stored; none: there is no such CRD. */
  serviceImports?: readonly ServiceImportVersion[]
  /** Further flags of kube-apiserver. */
  apiServerFlags?: readonly string[]
  /**
   * Neither controllers nor kwok: objects stay as they are written. For many of them, or for those no controller makes.
   */
  isBare?: boolean
}>

/** What a pod of this service account would find mounted, and a kubeconfig that says the same. */
export type ServiceAccountAccess = Readonly<{
  /** Uses the token file, which may be written anew. */
  kubeconfig: string
  /** Holds `token`, `ca.crt` and `namespace`. */
  folder: string
  tokenFile: string
  token: string
  uid: string
}>

/**
 * Starts one and waits until Services and pods work in it. @throws Error with the log of the part that did not start.
 */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const cluster = await Cluster.prepare(options)
  try {
    await cluster.start()
    return cluster
  } catch (error) {
    await cluster.stop()
    throw error
  }
}

export class Cluster {
  readonly name: string
  /** Of everything that this cluster writes. */
  readonly folder: string
  /** The API server's. */
  readonly port: number
  readonly baseUrl: string
  readonly etcdUrl: string
  readonly ca: CertificateAuthority
  readonly adminCertificate: Certificate
  /** Path of the kubeconfig of an administrator (`O=system:masters`). */
  readonly kubeconfig: string
  /** Asks as the administrator. */
  readonly api: KubeApi
  readonly etcd: Part
  readonly apiServer: Part
  readonly controllerManager: Part
  readonly kwok: Part
  readonly #options: ClusterOptions
  /** Parts that were started later, and go with the cluster. */
  readonly #guests: Part[] = []

  private constructor(options: ClusterOptions, made: Made) {
    const { folder, ca, serving, adminCertificate, ports } = made
    const { name, podCidr = '10.244.0.0/16', ipv6Prefix } = options
    const [port, etcdPort, etcdPeerPort, kwokPort] = ports
    this.#options = options
    this.name = name
    this.folder = folder
    this.port = port
    this.baseUrl = `https://127.0.0.1:${port}`
    this.etcdUrl = `http://127.0.0.1:${etcdPort}`
    this.ca = ca
    this.adminCertificate = adminCertificate
    this.kubeconfig = this.writeKubeconfig('admin', { certificate: adminCertificate })
    this.api = new KubeApi({ baseUrl: this.baseUrl, caFile: ca.caFile, certificate: adminCertificate })
    this.etcd = etcdPart(folder, this.etcdUrl, `http://127.0.0.1:${etcdPeerPort}`)
    this.apiServer = apiServerPart({
      folder,
      port,
      ca,
      serving,
      etcdUrl: this.etcdUrl,
      serviceCidr: serviceCidrsOf(options),
      args: options.apiServerFlags ?? [],
      api: this.api
    })
    this.controllerManager = controllerManagerPart(folder, this.kubeconfig, ca, this.api)
    const podIpv6Prefix = ipv6Prefix ?? null
    this.kwok = kwokPart({ folder, podCidr, podIpv6Prefix, kubeconfig: this.kubeconfig, port: kwokPort })
  }

  static async prepare(options: ClusterOptions): Promise<Cluster> {
    const folder = temporaryFolder(options.name)
    const ca = await CertificateAuthority.create(folder, `${options.name} CA`)
    const [serving, adminCertificate, ...ports] = await Promise.all([
      ca.server('apiserver', ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc'], []),
      ca.client('admin', 'admin', ['system:masters']),
      freePort(),
      freePort(),
      freePort(),
      freePort()
    ])
    return new Cluster(options, { folder, ca, serving, adminCertificate, ports })
  }

  async start(): Promise<void> {
    // The API server takes longest; it waits for etcd by itself.
    this.etcd.launch()
    this.apiServer.launch()
    await this.etcd.untilReady()
    await this.apiServer.untilReady()
    const others = this.#options.isBare === true ? [] : [this.controllerManager, this.kwok]
    for (const part of others) part.launch()
    await this.#createNodes()
    await this.setServiceImports(this.#options.serviceImports ?? [])
    await Promise.all(others.map(async (part) => part.untilReady()))
  }

  /** Ends everything and removes what was written. */
  async stop(): Promise<void> {
    const parts = [...this.#guests, this.kwok, this.controllerManager, this.apiServer, this.etcd]
    await Promise.all(parts.map(async (part) => part.kill()))
    this.api.close()
    removeFolder(this.folder)
  }

  /** Has a part end with this cluster. */
  adopt(part: Part): void {
    this.#guests.push(part)
  }

  /**
   * Runs kubectl as the administrator, with a manifest on standard input where one is given, and gives what it wrote.
   * @throws Error with what it complained of.
   */
  async kubectl(args: readonly string[], input = '', kubeconfig = this.kubeconfig): Promise<string> {
    return new Promise((resolve, reject) => {
      const options = { maxBuffer: 64 * 1024 * 1024, env: { ...process.env, KUBECONFIG: kubeconfig } }
      const child = execFile(binary('kubectl'), [...args], options, (error, stdout, stderr) => {
        if (error === null) resolve(stdout)
        else reject(new Error(`kubectl ${args.join(' ')}: ${stderr.trim() || error.message}`))
      })
      // It may end before it reads what it was given.
      child.stdin?.on('error', () => {})
      child.stdin?.end(input)
    })
  }

  /** Writes a kubeconfig for this user and gives its path; `server` where not the API server itself is meant. */
  writeKubeconfig(name: string, user: KubeconfigUser, server = this.baseUrl): string {
    const file = join(this.folder, `${name}.kubeconfig`)
    writeKubeconfig(file, { context: this.name, server, caFile: this.ca.caFile, user })
    return file
  }

  /** A kubeconfig of the administrator for a server in front of the API server: a proxy of ours, for instance. */
  kubeconfigVia(port: number): string {
    return this.writeKubeconfig(`via-${port}`, { certificate: this.adminCertificate }, `https://127.0.0.1:${port}`)
  }

  /**
   * Makes a service account with these rights in the whole cluster, where it does not exist yet, and gives access as
   * it. Without rules it has what others bind to it, for instance the RBAC objects that we ship. The token is good for
   * an hour.
   */
  async serviceAccount(
    namespace: string,
    name: string,
    rules: readonly V1PolicyRule[] = [],
    server = this.baseUrl
  ): Promise<ServiceAccountAccess> {
    const role = `${namespace}-${name}`
    const rbac = 'rbac.authorization.k8s.io'
    await this.api.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
    await this.api.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace, name } })
    if (rules.length > 0) {
      await this.api.apply({ apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: role }, rules })
      await this.api.apply({
        apiVersion: `${rbac}/v1`,
        kind: 'ClusterRoleBinding',
        metadata: { name: role },
        roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
        subjects: [{ kind: 'ServiceAccount', namespace, name }]
      })
    }
    const account = await this.api.get('ServiceAccount', { namespace, name })
    const uid = account.metadata?.uid ?? ''
    const token = this.ca.signToken({ namespace, name, uid, expiresInSeconds: 3600 })
    const folder = join(this.folder, `service-account-${role}`)
    mkdirSync(folder, { recursive: true })
    const tokenFile = join(folder, 'token')
    writeFileSync(tokenFile, token)
    writeFileSync(join(folder, 'namespace'), namespace)
    copyFileSync(this.ca.caFile, join(folder, 'ca.crt'))
    const kubeconfig = this.writeKubeconfig(role, { tokenFile }, server)
    return { kubeconfig, folder, tokenFile, token, uid }
  }

  /** The CRD of ServiceImports with these served versions; none takes it away, and all imports with it. */
  async setServiceImports(versions: readonly ServiceImportVersion[]): Promise<void> {
    const definition = serviceImportDefinition(versions)
    const { name } = definition.metadata
    if (versions.length === 0) {
      if ((await this.api.find('CustomResourceDefinition', { name })) === null) return
      await this.api.delete('CustomResourceDefinition', { name })
      return
    }
    await this.api.apply(definition)
    for (const apiVersion of versions.map((version) => `multicluster.x-k8s.io/${version}`)) {
      // "Established" comes a little before the paths are served.
      await eventually(async () => this.api.list('ServiceImport', { apiVersion, namespace: 'default' }))
    }
  }

  /**
   * Makes every resource version so far too old: pages and watches that go on from one end in 410. The API server keeps
   * what it has read for some time, also where etcd was compacted, so it is started again.
   */
  async expireResourceVersions(): Promise<void> {
    const metadata = { namespace: 'default', name: 'expired' }
    await this.api.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { at: new Date().toISOString() } })
    const status = await this.#etcdPost<{ header: { revision: string } }>('/v3/maintenance/status', {})
    await this.#etcdPost('/v3/kv/compaction', { revision: status.header.revision, physical: true })
    await this.apiServer.restart()
  }

  /**
   * Kills etcd, throws its data away and starts it and the API server anew: a cluster with nothing in it but its nodes.
   */
  async emptyEtcd(): Promise<void> {
    await this.etcd.kill()
    await this.apiServer.kill()
    rmSync(join(this.folder, 'etcd'), { recursive: true, force: true })
    await this.etcd.start()
    await this.apiServer.start()
    await this.#createNodes()
    await this.setServiceImports(this.#options.serviceImports ?? [])
  }

  async #createNodes(): Promise<void> {
    const { name, podCidr = '10.244.0.0/16', nodes = 3, region = name } = this.#options
    const network = podCidr.split('.').slice(0, 2).join('.')
    for (let index = 0; index < nodes; index++) {
      const podCIDR = `${network}.${index}.0/24`
      await this.api.apply({
        apiVersion: 'v1',
        kind: 'Node',
        metadata: {
          name: `${name}-node-${index + 1}`,
          labels: {
            'topology.kubernetes.io/region': region,
            'topology.kubernetes.io/zone': `${region}-${index + 1}`
          }
        },
        spec: { podCIDR, podCIDRs: [podCIDR] }
      })
    }
  }

  async #etcdPost<T>(path: string, body: object): Promise<T> {
    const response = await fetch(this.etcdUrl + path, { method: 'POST', body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`etcd ${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as T
  }
}

type Made = Readonly<{
  folder: string
  ca: CertificateAuthority
  serving: Certificate
  adminCertificate: Certificate
  ports: readonly [api: number, etcd: number, etcdPeer: number, kwok: number]
}>

const serviceCidrsOf = ({ serviceCidr = '10.96.0.0/16', ipv6Prefix }: ClusterOptions): string =>
  ipv6Prefix === undefined ? serviceCidr : `${serviceCidr},${ipv6Prefix}5:0:0/108`
