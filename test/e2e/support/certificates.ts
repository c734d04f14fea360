/**
 * Keys and certificates of one cluster, made by the openssl command: its CA, the API server's, its clients' and its
 * service accounts'.
 */
import { execFile } from 'node:child_process'
import { createPrivateKey, sign } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const days = '30'
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

/** Paths of a PEM certificate and its key. */
export type Certificate = Readonly<{ certFile: string; keyFile: string }>

export type TokenClaims = Readonly<{
  namespace: string
  name: string
  /** The ServiceAccount's uid: the API server refuses a token that names another. */
  uid: string
  /** The API server grants a minute more: -58 is good for two seconds, -61 for none. */
  expiresInSeconds: number
}>

export class CertificateAuthority {
  readonly folder: string
  readonly caFile: string
  /** Signs service account tokens: the private key for who signs, the public one for who verifies. */
  readonly tokenKeyFile: string
  readonly tokenPublicKeyFile: string

  /** Without it openssl would add the extensions of the machine's own settings. */
  readonly #settingsFile: string

  private constructor(folder: string) {
    this.folder = folder
    this.#settingsFile = join(folder, 'openssl.cnf')
    this.caFile = join(folder, 'ca.crt')
    this.tokenKeyFile = join(folder, 'service-accounts.key')
    this.tokenPublicKeyFile = join(folder, 'service-accounts.pub')
  }

  static async create(folder: string, commonName: string): Promise<CertificateAuthority> {
    const ca = new CertificateAuthority(folder)
    writeFileSync(ca.#settingsFile, '[req]\ndistinguished_name = subject\n[subject]\n')
    await Promise.all([
      ca.#request('ca', `/CN=${commonName}`, ['basicConstraints=critical,CA:TRUE', 'keyUsage=keyCertSign,cRLSign'], []),
      openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', ca.tokenKeyFile).then(async () =>
        openssl('ec', '-in', ca.tokenKeyFile, '-pubout', '-out', ca.tokenPublicKeyFile)
      )
    ])
    return ca
  }

  /** For a server of 127.0.0.1 under these further DNS names and addresses. */
  async server(file: string, names: readonly string[], addresses: readonly string[]): Promise<Certificate> {
    const alternatives = [...names.map((name) => `DNS:${name}`), ...addresses.map((address) => `IP:${address}`)]
    return this.#issue(file, `/CN=${file}`, [
      'extendedKeyUsage=serverAuth',
      `subjectAltName=DNS:localhost,IP:127.0.0.1,${alternatives.join(',')}`
    ])
  }

  /** For a client: the API server takes CN as its user and each O as a group. */
  async client(file: string, user: string, groups: readonly string[]): Promise<Certificate> {
    const subject = `${groups.map((group) => `/O=${group}`).join('')}/CN=${user}`
    return this.#issue(file, subject, ['extendedKeyUsage=clientAuth'])
  }

  /**
   * A service account token of our own making, for lifetimes that the API server's TokenRequest refuses (under 10 min).
   */
  signToken({ namespace, name, uid, expiresInSeconds }: TokenClaims): string {
    const nowSeconds = Math.floor(Date.now() / 1000)
    const claims = {
      iss: tokenIssuer,
      aud: [tokenIssuer],
      sub: `system:serviceaccount:${namespace}:${name}`,
      iat: nowSeconds - 3600,
      nbf: nowSeconds - 3600,
      exp: nowSeconds + expiresInSeconds,
      'kubernetes.io': { namespace, serviceaccount: { name, uid } }
    }
    const parts = [{ alg: 'ES256', typ: 'JWT' }, claims].map((part) => base64url(JSON.stringify(part)))
    const signed = parts.join('.')
    const key = createPrivateKey(readFileSync(this.tokenKeyFile))
    return `${signed}.${base64url(sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }))}`
  }

  async #issue(file: string, subject: string, extensions: readonly string[]): Promise<Certificate> {
    const issuer = ['-CA', this.caFile, '-CAkey', join(this.folder, 'ca.key')]
    return this.#request(file, subject, ['basicConstraints=critical,CA:FALSE', ...extensions], issuer)
  }

  /** A new key and its certificate, self-signed where no issuer is given. */
  async #request(
    file: string,
    subject: string,
    extensions: readonly string[],
    issuer: readonly string[]
  ): Promise<Certificate> {
    const certFile = join(this.folder, `${file}.crt`)
    const keyFile = join(this.folder, `${file}.key`)
    const added = extensions.flatMap((extension) => ['-addext', extension])
    const files = ['-config', this.#settingsFile, '-keyout', keyFile, '-out', certFile]
    await openssl('req', '-x509', ...newKey, ...files, '-days', days, '-subj', subject, ...added, ...issuer)
    return { certFile, keyFile }
  }
}

/** Who issues service account tokens, and whom they are for. */
export const tokenIssuer = 'https://kubernetes.default.svc'

const base64url = (data: string | Buffer): string => Buffer.from(data).toString('base64url')

async function openssl(...args: string[]): Promise<void> {
  await run('openssl', args)
}
