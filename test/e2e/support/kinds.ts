/** The kinds of objects that the suites handle: where the API server keeps them, and what they look like. */
import type {
  V1ClusterRole,
  V1ClusterRoleBinding,
  V1ConfigMap,
  V1CustomResourceDefinition,
  V1Deployment,
  V1Endpoints,
  V1EndpointSlice,
  V1Lease,
  V1Namespace,
  V1Node,
  V1ObjectMeta,
  V1Pod,
  V1ReplicaSet,
  V1Role,
  V1RoleBinding,
  V1Secret,
  V1Service,
  V1ServiceAccount,
  V1StatefulSet
} from '@kubernetes/client-node'

export type ServiceImport = {
  metadata?: V1ObjectMeta
  spec: {
    type: 'ClusterSetIP' | 'Headless'
    ips?: string[]
    ports: { name?: string; port: number; protocol?: string }[]
  }
  status?: { clusters?: { cluster: string }[] }
}

export type KindMap = {
  ClusterRole: V1ClusterRole
  ClusterRoleBinding: V1ClusterRoleBinding
  ConfigMap: V1ConfigMap
  CustomResourceDefinition: V1CustomResourceDefinition
  Deployment: V1Deployment
  Endpoints: V1Endpoints
  EndpointSlice: V1EndpointSlice
  Lease: V1Lease
  Namespace: V1Namespace
  Node: V1Node
  Pod: V1Pod
  ReplicaSet: V1ReplicaSet
  Role: V1Role
  RoleBinding: V1RoleBinding
  Secret: V1Secret
  Service: V1Service
  ServiceAccount: V1ServiceAccount
  ServiceImport: ServiceImport
  StatefulSet: V1StatefulSet
}

export type Kind = keyof KindMap

/** An object as it is written: what is sent to the API server and what a manifest holds. */
export type KubeObject = Readonly<{
  apiVersion: string
  kind: string
  metadata: Readonly<{ name: string; namespace?: string; labels?: object; annotations?: object }>
  [field: string]: unknown
}>

export type Resource = Readonly<{ apiVersion: string; plural: string; isNamespaced: boolean }>

const inNamespace = (apiVersion: string, plural: string): Resource => ({ apiVersion, plural, isNamespaced: true })
const inCluster = (apiVersion: string, plural: string): Resource => ({ apiVersion, plural, isNamespaced: false })

export const resources: Readonly<Record<Kind, Resource>> = {
  ClusterRole: inCluster('rbac.authorization.k8s.io/v1', 'clusterroles'),
  ClusterRoleBinding: inCluster('rbac.authorization.k8s.io/v1', 'clusterrolebindings'),
  ConfigMap: inNamespace('v1', 'configmaps'),
  CustomResourceDefinition: inCluster('apiextensions.k8s.io/v1', 'customresourcedefinitions'),
  Deployment: inNamespace('apps/v1', 'deployments'),
  Endpoints: inNamespace('v1', 'endpoints'),
  EndpointSlice: inNamespace('discovery.k8s.io/v1', 'endpointslices'),
  Lease: inNamespace('coordination.k8s.io/v1', 'leases'),
  Namespace: inCluster('v1', 'namespaces'),
  Node: inCluster('v1', 'nodes'),
  Pod: inNamespace('v1', 'pods'),
  ReplicaSet: inNamespace('apps/v1', 'replicasets'),
  Role: inNamespace('rbac.authorization.k8s.io/v1', 'roles'),
  RoleBinding: inNamespace('rbac.authorization.k8s.io/v1', 'rolebindings'),
  Secret: inNamespace('v1', 'secrets'),
  Service: inNamespace('v1', 'services'),
  ServiceAccount: inNamespace('v1', 'serviceaccounts'),
  ServiceImport: inNamespace('multicluster.x-k8s.io/v1alpha1', 'serviceimports'),
  StatefulSet: inNamespace('apps/v1', 'statefulsets')
}
