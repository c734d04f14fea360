/** What `kubectl apply -k` would send: the kustomizations below k8s/, built by kubectl and read as objects. */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { delimiter, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type {
  V1ConfigMap,
  V1Container,
  V1DaemonSet,
  V1Deployment,
  V1PodSpec,
  V1PodTemplateSpec
} from '@kubernetes/client-node'
import { parseAllDocuments } from 'yaml'

const run = promisify(execFile)

export const root = fileURLToPath(new URL('../..', import.meta.url))

export type K8sObject = {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace?: string; labels?: Record<string, string> }
}

/** One kustomization: its folder below the root, and its objects. */
export type Built = Readonly<{ folder: string; objects: readonly K8sObject[] }>

/** kubectl from PATH, or the one that the end-to-end suites build; null where there is none. */
export function findKubectl(): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), join(root, '.cache/e2e/bin')]
  return folders.map((folder) => join(folder, 'kubectl')).find((path) => existsSync(path)) ?? null
}

/** Every folder below k8s/ that can be applied; components cannot, alone. */
export function kustomizations(): string[] {
  return readdirSync(join(root, 'k8s'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('kustomization.yaml') && !path.startsWith('components'))
    .map((path) => join('k8s', path, '..'))
    .sort()
}

/** @throws Error where kustomize complains of anything, also where it would go on. */
export async function build(kubectl: string, folder: string): Promise<Built> {
  const { stdout, stderr } = await run(kubectl, ['kustomize', join(root, folder)])
  if (stderr !== '') throw new Error(`${folder}: ${stderr}`)
  return { folder: relative(root, join(root, folder)), objects: readObjects(stdout) }
}

export function readObjects(text: string): K8sObject[] {
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors.length > 0) throw document.errors[0]!
    return document.contents === null ? [] : [document.toJS() as K8sObject]
  })
}

export const ofKind = <T extends K8sObject>({ objects }: Built, kind: string): T[] =>
  objects.filter((object): object is T => object.kind === kind)

export type Workload = K8sObject & (V1Deployment | V1DaemonSet)
export const workloads = (built: Built): Workload[] => [
  ...ofKind<Workload>(built, 'Deployment'),
  ...ofKind<Workload>(built, 'DaemonSet')
]

export const templateOf = (workload: Workload): V1PodTemplateSpec => workload.spec!.template
export const podOf = (workload: Workload): V1PodSpec => templateOf(workload).spec!

/** Init containers too. */
export const containersOf = (pod: V1PodSpec): V1Container[] => [...(pod.initContainers ?? []), ...pod.containers]

/** The container that serves; a native sidecar stands among the init containers. */
export function servingContainer(pod: V1PodSpec): V1Container {
  const found = containersOf(pod).filter(({ name }) => name === 'peerdns')
  if (found.length !== 1) throw new Error(`${found.length} containers are called peerdns`)
  return found[0]!
}

/** The files that the ConfigMap mounted at this path holds. */
export function mountedFiles(built: Built, pod: V1PodSpec, container: V1Container, path: string): Map<string, string> {
  const mount = container.volumeMounts?.find(({ mountPath }) => mountPath === path)
  const volume = pod.volumes?.find(({ name }) => name === mount?.name)
  const name = volume?.configMap?.name
  const map = ofKind<K8sObject & V1ConfigMap>(built, 'ConfigMap').find((it) => it.metadata.name === name)
  if (map === undefined) throw new Error(`${built.folder}: no ConfigMap ${name} for ${path}`)
  return new Map(Object.entries(map.data ?? {}))
}
