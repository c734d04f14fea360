/** A server that cannot start leaves nothing behind, whatever it had begun already. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import { silentLog } from '../../src/base/log.ts'
import { loadConfig } from '../../src/config/load.ts'
import { RunningServer } from '../../src/main.ts'
import { loadOptions } from '../../src/main/load-options.ts'
import { writeKubeconfig } from '../e2e/support/kubeconfig.ts'
import { FakeApiServer } from '../support/fake-api-server.ts'
import { loopClock } from '../support/loop-clock.ts'

test('RunningServer.start: an API server is asked no more once an address is taken', async (t) => {
  const api = await FakeApiServer.start()
  const holder = createServer().listen(0, '127.0.0.1')
  t.teardown(async () => {
    holder.close()
    await api.stop()
  })
  await once(holder, 'listening')
  const { port } = holder.address() as AddressInfo
  const folder = t.testdir({})
  const kubeconfig = join(folder, 'kubeconfig')
  writeKubeconfig(kubeconfig, { context: 'fake', server: api.url.href, caFile: '', user: { token: 'none' } })
  const file = join(folder, 'config.yaml')
  const text = `cluster: {name: a, source: {kubernetes: {kubeconfig: ${kubeconfig}}}}
listen: ["127.0.0.1:${port}"]
admin: off
`
  writeFileSync(file, text)
  const server = new RunningServer(loadConfig(file, loadOptions()), loopClock, silentLog)
  await t.rejects(server.start(false), { name: 'ListenError', port })
  // A source that went on would keep this file from ending.
})
