/**
 * Where the API server is and who we are to it: from the files of a pod, or from a kubeconfig.
 *
 * The pod's way needs no library. @kubernetes/client-node, which costs 90 MB, is loaded only for a kubeconfig: it knows
 * client certificates and exec plug-ins.
 */
import { readFile, stat } from 'node:fs/promises'
import type { RequestOptions } from 'node:https'
import { dirname, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { parse } from 'yaml'
import type { Clock } from '../../../base/clock.ts'
import { apiCredentialsMs, apiCredentialsOctets } from '../../../base/limits.ts'
import { ApiError } from './api-error.ts'

export type TlsOptions = Readonly<
  Pick<RequestOptions, 'ca' | 'cert' | 'key' | 'pfx' | 'passphrase' | 'servername' | 'rejectUnauthorized'>
>

/** `tls` is the same object as long as nothing of it has changed, so connections can be kept. */
export type ApiTarget = Readonly<{
  url: URL
  headers: Readonly<Record<string, string>>
  tls: TlsOptions
  /** The pod's, or the context's. */
  namespace: string
}>

/** Where nothing names another one, as with kubectl. */
const defaultNamespace = 'default'

export interface ApiAccess {
  /** @throws ApiError `credentials` */
  target(): Promise<ApiTarget>
  /** Says that this target's credentials were not accepted: they are read again at once. */
  forget(target: ApiTarget): void
}

/** Keeps a target for a while; reading goes on with the last good one where it fails. */
class RereadAccess implements ApiAccess {
  readonly #read: () => Promise<ApiTarget>
  readonly #clock: Clock
  #known: ApiTarget | null = null
  #knownAtMs = 0
  /** Of the last target, also once it is forgotten. */
  #tls: TlsOptions = {}
  #reading: Promise<ApiTarget> | null = null

  constructor(read: () => Promise<ApiTarget>, clock: Clock) {
    this.#read = read
    this.#clock = clock
  }

  async target(): Promise<ApiTarget> {
    if (this.#known !== null && this.#clock.nowMs() - this.#knownAtMs < apiCredentialsMs) return this.#known
    this.#reading ??= this.#reread().finally(() => (this.#reading = null))
    return this.#reading
  }

  forget(target: ApiTarget): void {
    if (this.#known === target) this.#known = null
  }

  async #reread(): Promise<ApiTarget> {
    try {
      const next = await this.#read()
      if (!isDeepStrictEqual(next.tls, this.#tls)) this.#tls = next.tls
      this.#known = { ...next, tls: this.#tls }
      this.#knownAtMs = this.#clock.nowMs()
      return this.#known
    } catch (error) {
      // A file that is being exchanged: what we have may still be good. If not, a 401 makes us forget it.
      if (this.#known !== null) return this.#known
      throw error instanceof ApiError ? error : new ApiError('credentials', (error as Error).message)
    }
  }
}

export type InPodOptions = Readonly<{
  /** KUBERNETES_SERVICE_HOST: a name or an address, without brackets. */
  host: string
  port: number
  tokenFile: string
  caFile: string
  /** Without it the namespace is `default`. */
  namespaceFile?: string
  clock: Clock
}>

/** The service account's token and CA, read again every minute: the kubelet exchanges them. */
export function inPodAccess({ host, port, tokenFile, caFile, namespaceFile, clock }: InPodOptions): ApiAccess {
  const url = new URL(`https://${host.includes(':') ? `[${host}]` : host}:${port}`)
  return new RereadAccess(async () => {
    const [token, ca] = await Promise.all([readBounded(tokenFile), readBounded(caFile)])
    const namespace = namespaceFile === undefined ? defaultNamespace : (await readBounded(namespaceFile)).trim()
    return { url, headers: bearer(token, tokenFile), tls: { ca }, namespace }
  }, clock)
}

export type KubeconfigOptions = Readonly<{
  file: string
  /** null: the file's `current-context`. */
  context: string | null
  clock: Clock
}>

/** What a kubeconfig says, with everything that it refers to; read again every minute, and after a 401. */
export function kubeconfigAccess({ file, context, clock }: KubeconfigOptions): ApiAccess {
  return new RereadAccess(() => readKubeconfig(file, context), clock)
}

/** An API server without TLS, such as `kubectl proxy`: only on this machine. */
export function plainAccess(url: URL): ApiAccess {
  const target = { url: checkedUrl(url), headers: {}, tls: {}, namespace: defaultNamespace }
  return { target: async () => target, forget: () => {} }
}

async function readBounded(file: string): Promise<string> {
  const { size } = await stat(file)
  if (size > apiCredentialsOctets)
    throw new ApiError('credentials', `${file} is larger than ${apiCredentialsOctets} octets`)
  return readFile(file, 'utf8')
}

function bearer(text: string, file: string): Record<string, string> {
  const token = text.trim()
  if (!/^[\x21-\x7e]+$/.test(token)) throw new ApiError('credentials', `no token in ${file}`)
  return { authorization: `Bearer ${token}` }
}

async function readKubeconfig(file: string, context: string | null): Promise<ApiTarget> {
  const text = await readBounded(file)
  const { KubeConfig } = await import('@kubernetes/client-node')
  const kubeconfig = new KubeConfig()
  kubeconfig.loadFromFile(file)
  if (context !== null) kubeconfig.setCurrentContext(context)
  const cluster = kubeconfig.getCurrentCluster()
  if (cluster === null) {
    const name = context ?? kubeconfig.getCurrentContext()
    throw new ApiError('credentials', `${file}: no context ${name} with a cluster`)
  }
  if (cluster.proxyUrl !== undefined) throw new ApiError('credentials', `${file}: proxy-url is not supported`)
  const url = checkedUrl(new URL(cluster.server))
  // It gives no credentials for http; on this machine that is no danger, and we do not use its agent.
  kubeconfig.clusters = kubeconfig.clusters.map((it) => ({ ...it, server: it.server.replace(/^http:/, 'https:') }))
  const options: RequestOptions = {}
  await kubeconfig.applyToHTTPSOptions(options)
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(options.headers ?? {})) headers[name.toLowerCase()] = String(value)
  if (typeof options.auth === 'string') {
    headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`
  }
  const tokenFile = tokenFileOf(text, kubeconfig.getCurrentUser()?.name)
  if (tokenFile !== null) {
    const path = resolve(dirname(file), tokenFile)
    Object.assign(headers, bearer(await readBounded(path), path))
  }
  const { namespace = defaultNamespace } = kubeconfig.getContextObject(kubeconfig.getCurrentContext()) ?? {}
  return { url, headers, tls: tlsOf(options), namespace }
}

/** The user's `tokenFile`, which the library does not know; it goes before a `token` beside it, as with kubectl. */
function tokenFileOf(text: string, userName: string | undefined): string | null {
  type Named = Readonly<{ name?: unknown; user?: Readonly<{ tokenFile?: unknown }> | null }> | null
  const { users } = parse(text) as { users?: readonly Named[] | null }
  const tokenFile = users?.find((entry) => entry?.name === userName)?.user?.tokenFile
  return typeof tokenFile === 'string' && tokenFile !== '' ? tokenFile : null
}

function tlsOf(options: RequestOptions): TlsOptions {
  const names = ['ca', 'cert', 'key', 'pfx', 'passphrase', 'servername', 'rejectUnauthorized'] as const
  return Object.fromEntries(names.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]))
}

const isLoopback = (hostname: string): boolean => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)

function checkedUrl(url: URL): URL {
  if (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))) return url
  throw new ApiError('credentials', `${url.href}: expected https (or http on this machine)`)
}
