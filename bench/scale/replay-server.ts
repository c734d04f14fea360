/** A fake API server in a thread of its own that holds a large cluster and changes it at a given rate. */
import { parentPort, workerData } from 'node:worker_threads'
import { FakeApiServer, sendStatus } from '../../test/support/fake-api-server.ts'
import { Endpoints } from './changes.ts'
import { addressOf, firstAddresses, namespaceObject, namespaces, serviceObject, sliceObject } from './objects.ts'

export type ReplayCommand =
  Readonly<{ kind: 'relist' }> | Readonly<{ kind: 'change'; perSecond: number }> | Readonly<{ kind: 'stop' }>

const slicesPath = '/apis/discovery.k8s.io/v1/endpointslices'
const firstClusterIp = 0x80_0000

const { services, endpoints: perService } = workerData as { services: number; endpoints: number }
const server = await FakeApiServer.start({ knowsProtobuf: true })
// Lists as a stream of events, which CoreDNS tries first: an API server that does not know them says so.
server.fail(
  ({ query }) => query.get('sendInitialEvents') === 'true',
  (_, response) => sendStatus(response, 422, 'Invalid'),
  Number.POSITIVE_INFINITY
)
const endpoints = new Endpoints(perService)
for (let number = 0; number < namespaces; number++) server.putUntold('/api/v1/namespaces', namespaceObject(number))
for (let number = 0; number < services; number++) {
  server.putUntold('/api/v1/services', serviceObject(number, addressOf(firstClusterIp + number)))
  server.putUntold(slicesPath, sliceObject(number, firstAddresses(number, perService)))
}

// Threads of this process: there are no origins.
// oxlint-disable-next-line unicorn/require-post-message-target-origin
const say = (text: string): void => parentPort!.postMessage(text)

let timer: NodeJS.Timeout | null = null
/** Since the last `change`. */
let changes = 0
parentPort!.on('message', (command: ReplayCommand) => {
  switch (command.kind) {
    case 'relist':
      void relist()
      break
    case 'change':
      change(command.perSecond)
      break
    case 'stop':
      if (timer !== null) clearInterval(timer)
      say(String(changes))
      break
  }
})
say(server.url.href)

/** Has everything listed again, and says so once the slices are watched again. */
async function relist(): Promise<void> {
  const before = server.requests.length
  server.compact()
  const from = server.version
  server.cutWatches()
  const isWatchedAgain = (): boolean =>
    server.requests
      .slice(before)
      .some(
        ({ path, kind, query }) =>
          path === slicesPath && kind === 'watch' && Number(query.get('resourceVersion')) >= from
      )
  while (!isWatchedAgain()) await new Promise((resolve) => void setTimeout(resolve, 20))
  say('listed')
}

function change(perSecond: number): void {
  const startedAtMs = performance.now()
  changes = 0
  timer = setInterval(() => {
    const due = ((performance.now() - startedAtMs) * perSecond) / 1000
    for (; changes < due; changes++) {
      const number = 2 * Math.floor((Math.random() * services) / 2)
      endpoints.exchange(number)
      server.put(slicesPath, sliceObject(number, endpoints.addresses(number)))
    }
  }, 2)
}
