/**
 * What kwok does to nodes and pods, as its Stage objects: nodes and pods are ready at once, and deleted pods are gone
 * at once. Two annotations of a pod, with any value, hold that back until the test takes them away (`KubeApi.letGo`):
 *
 * - `e2e.peerdns/held-start`: the pod has an address, and does not get ready;
 * - `e2e.peerdns/held-end`: a deleted pod terminates on, and stays in its EndpointSlice as serving.
 *
 * No stage waits for a time: a state that a timer ends may be over before anybody has seen it.
 *
 * Once a pod is ready its conditions are nobody's: `KubeApi.setPodReady` flips them.
 */
const isDeleted = (operator: 'Exists' | 'DoesNotExist') => `{key: '.metadata.deletionTimestamp', operator: ${operator}}`
const hasAddress = (operator: 'Exists' | 'DoesNotExist') => `{key: '.status.podIP', operator: ${operator}}`
/** What a test holds back of a pod: its start, or its end. */
export type HeldBack = 'start' | 'end'
export const annotationOf = (held: HeldBack) => `e2e.peerdns/held-${held}`
const isHeld = (held: HeldBack, operator: 'Exists' | 'DoesNotExist') =>
  `{key: '.metadata.annotations["${annotationOf(held)}"]', operator: ${operator}}`
/** The reason that pods carry which are not ready yet, as opposed to those that a test made so. */
const starting = 'Starting'

type StageOptions = Readonly<{
  name: string
  kind: 'Node' | 'Pod'
  /** All of them have to hold. */
  when: readonly string[]
  next: string
}>

const stage = ({ name, kind, when, next }: StageOptions): string => `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: ${name}}
spec:
  resourceRef: {apiGroup: v1, kind: ${kind}}
  selector:
    matchExpressions:${when.map((expression) => `\n    - ${expression}`).join('')}
  next:
${next}`

const conditions = (types: readonly string[], status: 'True' | 'False', reason = ''): string =>
  types
    .map(
      (type) =>
        `      - {type: ${type}, status: "${status}", reason: "${reason}", lastTransitionTime: {{ Now | Quote }}}\n`
    )
    .join('')

const readiness = (isReady: boolean): string => `      conditions:
${conditions(['Initialized'], 'True')}${conditions(['Ready', 'ContainersReady'], isReady ? 'True' : 'False', isReady ? '' : starting)}
      containerStatuses:
      {{ range .spec.containers }}
      - name: {{ .name | Quote }}
        image: {{ .image | Quote }}
        ready: ${isReady}
        restartCount: 0
        state: {running: {startedAt: {{ Now | Quote }}}}
      {{ end }}
`

const podArguments =
  '.spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" )'

const running = (isReady: boolean, ipv6Prefix: string | null): string => `    statusTemplate: |
      {{ $address := PodIPWith ${podArguments} }}
${readiness(isReady)}
      hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
      podIP: {{ $address | Quote }}
      podIPs:
      - ip: {{ $address | Quote }}${ipv6Prefix === null ? '' : `\n      - ip: "${ipv6Prefix}{{ $address }}"`}
      phase: Running
      startTime: {{ Now | Quote }}
`

const nodeReady = `    statusTemplate: |
      conditions:
${conditions(['Ready'], 'True')}
      addresses: [{type: InternalIP, address: {{ NodeIP | Quote }}}]
      allocatable: {cpu: 1k, memory: 1Ti, pods: 1M}
      capacity: {cpu: 1k, memory: 1Ti, pods: 1M}
      phase: Running
`

/**
 * The stages as one YAML text. With an IPv6 prefix (`fd00:a::`) every pod also has its IPv4 address inside that prefix.
 */
export const stagesText = (ipv6Prefix: string | null): string =>
  [
    stage({
      name: 'node-ready',
      kind: 'Node',
      when: [`{key: '.status.phase', operator: NotIn, values: [Running]}`],
      next: nodeReady
    }),
    stage({
      name: 'pod-ready',
      kind: 'Pod',
      when: [isDeleted('DoesNotExist'), hasAddress('DoesNotExist'), isHeld('start', 'DoesNotExist')],
      next: running(true, ipv6Prefix)
    }),
    stage({
      name: 'pod-starting',
      kind: 'Pod',
      when: [isDeleted('DoesNotExist'), hasAddress('DoesNotExist'), isHeld('start', 'Exists')],
      next: running(false, ipv6Prefix)
    }),
    stage({
      name: 'pod-started',
      kind: 'Pod',
      when: [
        isDeleted('DoesNotExist'),
        isHeld('start', 'DoesNotExist'),
        `{key: '.status.conditions.[] | select( .type == "Ready" ) | .reason', operator: In, values: [${starting}]}`
      ],
      next: `    statusTemplate: |\n${readiness(true)}`
    }),
    stage({
      name: 'pod-gone',
      kind: 'Pod',
      when: [isDeleted('Exists'), isHeld('end', 'DoesNotExist')],
      next: '    finalizers: {empty: true}\n    delete: true\n'
    })
  ].join('---\n')
