/** Writes kubeconfig files: one cluster, one user, one context. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Certificate } from './certificates.ts'

export type KubeconfigUser =
  | Readonly<{ certificate: Certificate }>
  | Readonly<{ token: string }>
  | Readonly<{ tokenFile: string }>
  | Readonly<{ exec: Readonly<{ command: string; args: readonly string[] }> }>

export type KubeconfigOptions = Readonly<{
  context: string
  /** `https://127.0.0.1:PORT`, or `http:` where something in between speaks for the client. */
  server: string
  caFile: string
  user: KubeconfigUser
}>

export function writeKubeconfig(file: string, { context, server, caFile, user }: KubeconfigOptions): void {
  const cluster = server.startsWith('https:') ? { server, 'certificate-authority-data': base64Of(caFile) } : { server }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: context, cluster }],
    users: [{ name: context, user: userEntry(user) }],
    contexts: [{ name: context, context: { cluster: context, user: context } }],
    'current-context': context
  }
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(config, null, 2))
}

function userEntry(user: KubeconfigUser): object {
  if ('token' in user) return { token: user.token }
  if ('tokenFile' in user) return { tokenFile: user.tokenFile }
  if ('exec' in user) {
    return { exec: { apiVersion: 'client.authentication.k8s.io/v1', interactiveMode: 'Never', ...user.exec } }
  }
  const { certFile, keyFile } = user.certificate
  return { 'client-certificate-data': base64Of(certFile), 'client-key-data': base64Of(keyFile) }
}

const base64Of = (file: string): string => readFileSync(file).toString('base64')
