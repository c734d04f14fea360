/**
 * The messages of Kubernetes' API as far as DNS reads them: numbers and names of fields as in the files
 * `generated.proto` of k8s.io/api and k8s.io/apimachinery. They never change within an API version.
 */
import { sourceClusterLabel, importLabel, serviceLabel } from '../../../endpoint-objects.ts'
import { clusterDnsLabel, probeAnnotation, tolerateUnreadyAnnotation, ttlAnnotation } from '../../../service-objects.ts'
import { triggerAnnotation } from '../origin-time.ts'
import { messageType, type Field, type MessageType } from './message.ts'

const text = (key: string): Field => ({ kind: 'text', key })
const texts = (key: string): Field => ({ kind: 'texts', key })
const flag = (key: string): Field => ({ kind: 'flag', key })
const number = (key: string): Field => ({ kind: 'number', key })
const message = (key: string, type: MessageType): Field => ({ kind: 'message', key, type })
const messages = (key: string, type: MessageType): Field => ({ kind: 'messages', key, type })
const entries = (key: string, ...wanted: string[]): Field => ({ kind: 'entries', key, wanted: new Set(wanted) })

const objectMeta = messageType({
  1: text('name'),
  3: text('namespace'),
  5: text('uid'),
  6: text('resourceVersion'),
  11: entries('labels', serviceLabel, importLabel, sourceClusterLabel, clusterDnsLabel),
  12: entries('annotations', ttlAnnotation, probeAnnotation, tolerateUnreadyAnnotation, triggerAnnotation)
})

export const listMeta = messageType({ 2: text('resourceVersion'), 3: text('continue') })

const metadata = message('metadata', objectMeta)

/** Of a Namespace, and of anything else that is only asked for its metadata. */
export const metadataMessage = messageType({ 1: metadata })

const port = messageType({ 1: text('name'), 2: text('protocol'), 3: number('port') })

const ingress = messageType({ 1: text('ip'), 2: text('hostname') })

export const serviceMessage = messageType({
  1: metadata,
  2: message(
    'spec',
    messageType({
      1: messages('ports', port),
      3: text('clusterIP'),
      4: text('type'),
      10: text('externalName'),
      13: flag('publishNotReadyAddresses'),
      18: texts('clusterIPs')
    })
  ),
  3: message('status', messageType({ 1: message('loadBalancer', messageType({ 1: messages('ingress', ingress) })) }))
})

const endpoint = messageType({
  1: texts('addresses'),
  2: message('conditions', messageType({ 1: flag('ready'), 2: flag('serving') })),
  3: text('hostname')
})

/** discovery.k8s.io/v1 */
export const endpointSliceMessage = messageType({
  1: metadata,
  2: messages('endpoints', endpoint),
  3: messages('ports', port),
  4: text('addressType')
})

export const podMessage = messageType({
  1: metadata,
  3: message(
    'status',
    messageType({ 1: text('phase'), 6: text('podIP'), 12: messages('podIPs', messageType({ 1: text('ip') })) })
  )
})

/** What comes with an error, and in an ERROR event. */
export const statusMessage = messageType({
  3: text('message'),
  4: text('reason'),
  5: message('details', messageType({ 5: number('retryAfterSeconds') })),
  6: number('code')
})
