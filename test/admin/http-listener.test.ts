/** The listener and its router over real sockets: routes, limits, faults and the way it stops. */
import { connect, type Socket } from 'node:net'
import { test, type Test } from 'tap'
import { HttpListener, type HttpLimits } from '../../src/admin/http-listener.ts'
import { jsonReply, textReply } from '../../src/admin/reply.ts'
import { Router, type Route } from '../../src/admin/router.ts'
import { systemClock } from '../../src/base/clock.ts'
import { ListenError, TextError } from '../../src/base/errors.ts'
import { silentLog } from '../../src/base/log.ts'
import { until } from '../support/in-process.ts'
import { sleep } from '../support/loop-clock.ts'

/** What a slow route waits for. */
const gate = Promise.withResolvers<void>()

const routes: Route[] = [
  { method: 'GET', path: '/plain', handler: () => textReply(200, 'plain\n') },
  { method: 'GET', path: '/things/:name', handler: ({ params }) => jsonReply(200, params) },
  { method: 'GET', path: '/query', handler: ({ query }) => jsonReply(200, [...query]) },
  { method: 'POST', path: '/echo', handler: ({ body }) => jsonReply(200, body) },
  { method: 'GET', path: '/both', handler: () => textReply(200, 'got') },
  { method: 'POST', path: '/both', handler: () => textReply(200, 'posted') },
  { method: 'GET', path: '/refuses', handler: () => { throw new TextError('that is no name') } }, // prettier-ignore
  { method: 'GET', path: '/throws', handler: () => { throw new Error('a secret detail') } }, // prettier-ignore
  { method: 'GET', path: '/rejects', handler: () => Promise.reject(new Error('a secret detail')) },
  { method: 'GET', path: '/slow', handler: async () => { await gate.promise; return textReply(200, 'at last') } } // prettier-ignore
]

async function open(
  t: Test,
  limits: Partial<HttpLimits> = {},
  log = silentLog
): Promise<{ url: string; port: number; listener: HttpListener }> {
  const where = { address: '127.0.0.1', port: 0 }
  const listener = await HttpListener.open({ where, router: new Router(routes), clock: systemClock, log, limits })
  t.teardown(() => listener.close())
  const { port } = listener.address
  return { url: `http://127.0.0.1:${port}`, port, listener }
}

/** A connection that says just what it is told; `all` resolves with everything that came once it has closed. */
function rawClient(t: Test, port: number): { socket: Socket; all: Promise<string> } {
  const socket = connect({ host: '127.0.0.1', port })
  t.teardown(() => socket.destroy())
  let text = ''
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => (text += chunk))
  socket.on('error', () => {})
  const all = new Promise<string>((done) => void socket.on('close', () => done(text)))
  return { socket, all }
}

test('HttpListener routes by method and path', async (t) => {
  const { url, listener } = await open(t)
  const post = { method: 'POST', headers: { 'content-type': 'application/json; charset=utf-8' } }
  const rows: { name: string; path: string; request?: RequestInit; status: number; body: unknown; allow?: string }[] = [
    { name: 'text', path: '/plain', status: 200, body: 'plain\n' },
    { name: 'HEAD', path: '/plain', request: { method: 'HEAD' }, status: 200, body: '' },
    { name: 'a named segment', path: '/things/a%20b', status: 200, body: '{"name":"a b"}\n' },
    { name: 'a malformed escape', path: '/things/%zz', status: 404, body: '{"error":"nothing is at /things/%zz"}\n' },
    { name: 'an empty segment', path: '/things/', status: 404, body: '{"error":"nothing is at /things/"}\n' },
    { name: 'a query', path: '/query?a=1&a=2&b=%2e', status: 200, body: '[["a","1"],["a","2"],["b","."]]\n' },
    { name: 'unknown', path: '/nowhere', status: 404, body: '{"error":"nothing is at /nowhere"}\n' },
    { name: 'a slash too many', path: '/plain/', status: 404, body: '{"error":"nothing is at /plain/"}\n' },
    { name: 'wrong method', path: '/plain', request: { method: 'DELETE' }, status: 405, body: '{"error":"/plain takes GET, HEAD"}\n', allow: 'GET, HEAD' },
    { name: 'OPTIONS gets no CORS', path: '/echo', request: { method: 'OPTIONS' }, status: 405, body: '{"error":"/echo takes POST"}\n', allow: 'POST' },
    { name: 'two methods of one path', path: '/both', request: post, status: 200, body: 'posted' },
    { name: 'JSON', path: '/echo', request: { ...post, body: '{"a":[1]}' }, status: 200, body: '{"a":[1]}\n' },
    { name: 'no body', path: '/echo', request: post, status: 200, body: 'null\n' },
    { name: 'broken JSON', path: '/echo', request: { ...post, body: '{"a"' }, status: 400, body: /the body is not JSON/ },
    { name: 'what a form of another site sends', path: '/echo', request: { method: 'POST', body: '{}' }, status: 415, body: /must be application\/json/ },
    { name: 'a body at the limit', path: '/echo', request: { ...post, body: JSON.stringify('x'.repeat(65_534)) }, status: 200, body: /^"x+"\n$/ },
    { name: 'a body above it', path: '/echo', request: { ...post, body: JSON.stringify('x'.repeat(65_535)) }, status: 413, body: /larger than 65536 octets/ },
    { name: 'bad input', path: '/refuses', status: 400, body: '{"error":"that is no name"}\n' }
  ] // prettier-ignore
  for (const { name, path, request = {}, status, body, allow } of rows) {
    const response = await fetch(url + path, request)
    t.equal(response.status, status, `${name}: status`)
    const text = await response.text()
    if (body instanceof RegExp) t.match(text, body, name)
    else t.equal(text, body, name)
    t.equal(response.headers.get('allow'), allow ?? null, `${name}: allow`)
    t.equal(response.headers.get('access-control-allow-origin'), null, `${name}: no CORS`)
    t.equal(response.headers.get('cache-control'), 'no-store', `${name}: not kept`)
  }
  t.equal(listener.stats.requestsTotal, rows.length)
  t.equal(listener.stats.refusedTotal, rows.filter(({ status }) => status >= 400).length)
})

test('HttpListener turns a handler that throws into a 500, logs it, and goes on', async (t) => {
  const logged: unknown[] = []
  const log = silentLog.child({})
  log.error = (about: object) => void logged.push(about)
  const { url, listener } = await open(t, {}, log)
  for (const path of ['/throws', '/rejects']) {
    const response = await fetch(url + path)
    t.equal(response.status, 500, path)
    t.equal(await response.text(), '{"error":"internal error"}\n', `${path} keeps its detail to the log`)
  }
  t.equal(listener.stats.faultsTotal, 2)
  t.match(logged, [{ err: { message: 'a secret detail' }, url: '/throws' }, { url: '/rejects' }])
  t.equal((await fetch(`${url}/plain`)).status, 200, 'the next request is served')
})

test('HttpListener bounds what a client may make it hold', async (t) => {
  const short = { headersTimeoutMs: 200, requestTimeoutMs: 400, keepAliveMs: 200 }
  const long = { headersTimeoutMs: 60_000, requestTimeoutMs: 60_000, keepAliveMs: 60_000 }
  const post = 'POST /echo HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n'
  const rows: { name: string; send: string; want: RegExp; times: Partial<HttpLimits> }[] = [
    { name: 'no request', send: '', want: /^HTTP\/1\.1 408 /, times: short },
    { name: 'headers without an end', send: 'GET /plain HTTP/1.1\r\nhost: x\r\n', want: /^HTTP\/1\.1 408 /, times: short },
    { name: 'a body without an end', send: `${post}content-length: 10\r\n\r\n{`, want: /^HTTP\/1\.1 408 /, times: short },
    { name: 'too much said beforehand', send: `${post}content-length: 99999999\r\n\r\n`, want: /^HTTP\/1\.1 413 [^]*connection: close/i, times: long },
    { name: 'too much in pieces', send: `${post}transfer-encoding: chunked\r\n\r\n11000\r\n${'x'.repeat(0x11000)}\r\n`, want: /^HTTP\/1\.1 413 /, times: long },
    { name: 'headers without bounds', send: `GET /plain HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`, want: /^HTTP\/1\.1 431 /, times: long },
    { name: 'no HTTP at all', send: '\x16\x03\x01\x02\x00', want: /^HTTP\/1\.1 400 /, times: long },
    { name: 'a connection that is kept and idle', send: 'GET /plain HTTP/1.1\r\nhost: x\r\n\r\n', want: /^HTTP\/1\.1 200 [^]*plain\n$/, times: { ...long, keepAliveMs: 200 } }
  ] // prettier-ignore
  for (const { name, send, want, times } of rows) {
    const { url, port } = await open(t, { connections: 2, ...times })
    const { socket, all } = rawClient(t, port)
    socket.write(send, 'latin1')
    t.match(await all, want, name)
    // Where times are short, a busy machine may take as long as a client that says nothing.
    const isServed = async (): Promise<boolean> => (await fetch(`${url}/plain`)).status === 200
    t.ok(await until(isServed), `${name}, and the next one is served`)
  }
})

test('HttpListener at its limit of connections cuts the one that has been without a complete request for longest', async (t) => {
  const isOpen = new Map<Socket, boolean>()
  const hold = async (port: number, send: string): Promise<ReturnType<typeof rawClient>> => {
    const client = rawClient(t, port)
    isOpen.set(client.socket, true)
    client.socket.on('close', () => isOpen.set(client.socket, false))
    await new Promise((done) => void client.socket.once('connect', done))
    client.socket.write(send)
    await sleep(50)
    return client
  }
  const patient = { headersTimeoutMs: 60_000, requestTimeoutMs: 60_000, keepAliveMs: 60_000 }
  const halves = [
    '',
    'GET /plain HTTP/1.1\r\n',
    'GET /plain HTTP/1.1\r\nhost: x\r\n',
    'POST /echo HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{'
  ]
  for (const half of halves) {
    const { url, port } = await open(t, { ...patient, connections: 3 })
    const held = [await hold(port, half), await hold(port, half), await hold(port, half)]
    for (let probe = 0; probe < 3; probe++) {
      const response = await fetch(`${url}/plain`, { headers: { connection: 'close' } })
      t.equal(response.status, 200, `a probe behind ${half.length} octets of a request`)
      await response.text()
      await sleep(50)
    }
    t.same(held.map(({ socket }) => isOpen.get(socket)), [false, true, true], 'one made room, the oldest') // prettier-ignore
  }

  const { port } = await open(t, { ...patient, connections: 2 })
  const kept = await hold(port, 'GET /plain HTTP/1.1\r\nhost: x\r\n\r\n')
  const half = await hold(port, 'GET /plain HTTP/1.1\r\n')
  kept.socket.write('GET /plain HTTP/1.1\r\nhost: x\r\n\r\n')
  await sleep(50)
  const working = await hold(port, 'GET /slow HTTP/1.1\r\nhost: x\r\n\r\n')
  t.same([kept, half].map(({ socket }) => isOpen.get(socket)), [true, false], 'who asks again is younger') // prettier-ignore
  const alsoWorking = await hold(port, 'GET /slow HTTP/1.1\r\nhost: x\r\n\r\n')
  t.equal(isOpen.get(kept.socket), false, 'an idle one goes before one that waits for its answer')
  t.equal(await rawClient(t, port).all, '', 'where all of them do, the new one is closed at once')
  t.same([working, alsoWorking].map(({ socket }) => isOpen.get(socket)), [true, true]) // prettier-ignore
})

test('HttpListener answers only to its own names where it must', async (t) => {
  const where = { address: '127.0.0.1', port: 0 }
  const parts = { where, router: new Router(routes), clock: systemClock, log: silentLog }
  const strict = await HttpListener.open({ ...parts, refusesForeignHosts: true })
  const open = await HttpListener.open(parts)
  t.teardown(async () => Promise.all([strict.close(), open.close()]))
  const rows: { host: string | null; status: number }[] = [
    { host: '127.0.0.1', status: 200 },
    { host: '127.0.0.1:9154', status: 200 },
    { host: '10.1.2.3:80', status: 200 },
    { host: '[::1]:9154', status: 200 },
    { host: '[::1]', status: 200 },
    { host: 'localhost:1', status: 200 },
    { host: 'LOCALHOST', status: 200 },
    { host: 'localhost.', status: 200 },
    { host: null, status: 200 },
    { host: 'rebound.example', status: 403 },
    { host: 'rebound.example:9154', status: 403 },
    { host: '127.0.0.1.rebound.example', status: 403 },
    { host: 'localhost.rebound.example', status: 403 },
    { host: 'rebound.example@127.0.0.1', status: 403 },
    { host: '[rebound.example]', status: 403 },
    { host: '::1', status: 403 },
    { host: '', status: 403 }
  ]
  for (const { host, status } of rows) {
    for (const [listener, want] of [
      [strict, status],
      [open, 200]
    ] as const) {
      const { socket, all } = rawClient(t, listener.address.port)
      const line = host === null ? '' : `host: ${host}\r\n`
      socket.write(`GET /plain HTTP/1.${host === null ? 0 : 1}\r\n${line}connection: close\r\n\r\n`)
      t.match(await all, new RegExp(`^HTTP/1\\.1 ${want} `), `host ${host}`)
    }
  }
  const { socket, all } = rawClient(t, strict.address.port)
  socket.write('GET /plain HTTP/1.1\r\nhost: rebound.example\r\nconnection: close\r\n\r\n')
  t.match(
    await all,
    /content-type: application\/json[^]*\{"error":"the Host header names `rebound\.example`: only an IP address/
  )
})

test('HttpListener.close', async (t) => {
  t.test('does not wait for kept connections, but for answers under way', async (t) => {
    const { url, port, listener } = await open(t, {
      keepAliveMs: 60_000,
      headersTimeoutMs: 60_000,
      requestTimeoutMs: 60_000
    })
    const idle = rawClient(t, port)
    idle.socket.write('GET /plain HTTP/1.1\r\nhost: x\r\n\r\n')
    await new Promise((done) => void idle.socket.once('data', done))
    const slow = fetch(`${url}/slow`)
    while (listener.stats.requestsTotal < 2) await sleep(5)
    const closed = listener.close()
    await idle.all
    t.pass('the idle connection is closed while an answer is under way')
    gate.resolve()
    const response = await slow
    t.equal(response.headers.get('connection'), 'close')
    t.equal(await response.text(), 'at last')
    await closed
    t.equal(listener.close(), closed, 'a second call waits for the same end')
  })
  t.test('cuts what takes too long, and what sent half a request', async (t) => {
    const { port, listener } = await open(t, {
      drainTimeoutMs: 100,
      headersTimeoutMs: 60_000,
      requestTimeoutMs: 60_000
    })
    const half = rawClient(t, port)
    half.socket.write('POST /echo HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{')
    while (listener.stats.requestsTotal < 1) await sleep(5)
    await listener.close()
    t.equal(await half.all, '')
  })
})

test('HttpListener.open says which address is taken', async (t) => {
  const { port } = await open(t)
  const where = { address: '127.0.0.1', port }
  const again = HttpListener.open({ where, router: new Router([]), clock: systemClock, log: silentLog })
  await t.rejects(again, { name: 'ListenError', port, transport: 'tcp', code: 'EADDRINUSE' })
  t.ok((await again.catch((error: unknown) => error)) instanceof ListenError)
})
