/** HTTP listeners on sockets that another process takes over: nobody who connects is turned away. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'tap'
import { HttpListener } from '../../../src/admin/http-listener.ts'
import { textReply } from '../../../src/admin/reply.ts'
import { Router } from '../../../src/admin/router.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLog } from '../../../src/base/log.ts'
import { loadLibc } from '../../../src/server/mmsg/libc.ts'
import { ListeningSockets } from '../../../src/server/takeover/listening-sockets.ts'

const libc = await loadLibc().catch(() => null)
const skip = libc === null && 'koffi is not installed, or this is no Linux'

void test(
  'HttpListener: pause turns nobody away who has connected, resume takes who came meanwhile',
  { skip },
  async (t) => {
    const sockets = new ListeningSockets(libc!)
    const router = new Router([{ method: 'GET', path: '/', handler: () => textReply(200, 'here') }])
    const listener = await HttpListener.open({
      where: { address: '127.0.0.1', port: 0 },
      router,
      clock: systemClock,
      log: silentLog,
      openSocket: (where) => sockets.tcp(where, { ipv6Only: false })?.fd ?? null
    })
    t.teardown(async () => {
      await listener.close()
      sockets.close()
    })
    const { port } = listener.address
    const open = async () => {
      const socket = connect({ host: '127.0.0.1', port })
      socket.setEncoding('latin1')
      t.teardown(() => socket.destroy())
      await once(socket, 'connect')
      return socket
    }
    const ask = async (socket: Awaited<ReturnType<typeof open>>): Promise<string> => {
      socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
      const [text] = (await once(socket, 'data')) as [string]
      return text
    }

    const early = await open()
    // Once it has had an answer, its connection has surely been accepted.
    t.match(await ask(early), /^HTTP\/1\.1 200 [\s\S]*here$/)
    listener.pause()
    listener.pause()
    const late = await open()
    const answer = ask(late)
    t.match(await ask(early), /connection: close[\s\S]*here$/i, 'it is answered, and told not to ask again')
    await once(early, 'close')
    await listener.resume()
    await listener.resume()
    t.match(await answer, /^HTTP\/1\.1 200 [\s\S]*here$/)
  }
)
