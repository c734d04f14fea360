/** The CustomResourceDefinition of ServiceImports (KEP-1645), in the versions asked for. */
import type { KubeObject } from './kinds.ts'

export type ServiceImportVersion = 'v1alpha1' | 'v1beta1'

const text = { type: 'string' }
const listOf = (items: object): object => ({ type: 'array', items })

/** What is checked is what a wrong object would get wrong; both versions look the same. */
const spec = {
  type: 'object',
  required: ['type', 'ports'],
  'x-kubernetes-preserve-unknown-fields': true,
  properties: {
    type: { type: 'string', enum: ['ClusterSetIP', 'Headless'] },
    ips: { ...listOf(text), maxItems: 2 },
    ports: listOf({
      type: 'object',
      required: ['port'],
      'x-kubernetes-preserve-unknown-fields': true,
      properties: { name: text, port: { type: 'integer', format: 'int32' }, protocol: text }
    })
  }
}
const schema = {
  type: 'object',
  properties: { spec, status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
}

/** The first version is the one stored. */
export function serviceImportDefinition(versions: readonly ServiceImportVersion[]): KubeObject {
  const group = 'multicluster.x-k8s.io'
  const names = { plural: 'serviceimports', singular: 'serviceimport', kind: 'ServiceImport', shortNames: ['svcim'] }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${names.plural}.${group}`,
      annotations: { 'api-approved.kubernetes.io': 'https://github.com/kubernetes/enhancements/pull/1646' }
    },
    spec: {
      group,
      names,
      scope: 'Namespaced',
      versions: versions.map((name, index) => ({
        name,
        served: true,
        storage: index === 0,
        schema: { openAPIV3Schema: schema },
        subresources: { status: {} }
      }))
    }
  }
}
