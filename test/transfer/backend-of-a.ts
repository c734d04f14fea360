/** A namespace of cluster A as its copies are compared by: its objects, and what is asked of every copy. */
import { namespace, service } from '../support/objects.ts'

/** @param addresses the ready endpoints of the headless Service. */
export const backendObjects = (addresses: readonly string[]): object[] => [
  namespace('backend'),
  ...service('api.backend', '10.96.1.1'),
  ...service('nobody.backend', '10.96.1.2', { ready: [] }),
  ...service('web.backend', 'None', { ready: addresses })
]

/** Below the cluster's zone. */
export const backendQuestions = [
  ['api.backend.svc', 'A'],
  ['api.backend.svc', 'AAAA'],
  ['nobody.backend.svc', 'A'],
  ['web.backend.svc', 'A'],
  ['_http._tcp.web.backend.svc', 'SRV'],
  ['web-0.web.backend.svc', 'A'],
  ['none.backend.svc', 'A'],
  ['10-0-0-7.backend.pod', 'A']
] as const
