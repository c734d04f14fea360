/** Where the API server is and who we are to it: tokens that are exchanged, kubeconfigs, certificates. */
import { execFileSync } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import type { Test } from 'tap'
import { inPodAccess, kubeconfigAccess, plainAccess } from '../../../src/cluster/sources/kubernetes/api-access.ts'
import type { ApiAccess } from '../../../src/cluster/sources/kubernetes/api-access.ts'
import { ApiConnection } from '../../../src/cluster/sources/kubernetes/api-requests.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { FakeApiServer, sendStatus } from '../../support/fake-api-server.ts'
import { sleep } from '../../support/loop-clock.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { paths, service, setUp } from './fixture.ts'

type Certificates = { folder: string; key: string; cert: string; ca: string; caFile: string }

/** A CA and a certificate of 127.0.0.1 that it signed, for server and client. */
function makeCertificates(t: Test): Certificates {
  const folder = t.testdir({
    'openssl.cnf': '[req]\ndistinguished_name=dn\n[dn]\n',
    'leaf.ext': 'subjectAltName=IP:127.0.0.1,DNS:api.test\n'
  })
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const newKey = ['-config', 'openssl.cnf', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  openssl('req', '-x509', ...newKey, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=ca', '-days', '2')
  openssl('req', ...newKey, '-keyout', 'tls.key', '-out', 'tls.csr', '-subj', '/O=peerdns/CN=tls')
  openssl('x509', '-req', '-in', 'tls.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'leaf.ext', '-out', 'tls.crt') // prettier-ignore
  const read = (name: string) => readFileSync(join(folder, name), 'utf8')
  return { folder, key: read('tls.key'), cert: read('tls.crt'), ca: read('ca.crt'), caFile: join(folder, 'ca.crt') }
}

async function tlsServer(t: Test, { key, cert, ca }: Certificates): Promise<FakeApiServer> {
  const server = await FakeApiServer.start({ tls: { key, cert, ca } })
  t.teardown(() => server.stop())
  return server
}

/** What the promise rejects with; null where it does not. */
const errorOf = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => null,
    (error: unknown) => error
  )

/** The headers with which one request arrives, or the error. */
async function ask(t: Test, server: FakeApiServer, access: ApiAccess): Promise<Record<string, unknown>> {
  const connection = new ApiConnection(access, systemClock)
  t.teardown(() => connection.close())
  await connection.document(paths.services)
  return server.requests.at(-1)!.headers
}

test('inPodAccess: a token that is exchanged, by time and by 401', async (t) => {
  const certificates = makeCertificates(t)
  const server = await tlsServer(t, certificates)
  const clock = new ManualClock()
  const tokenFile = join(certificates.folder, 'token')
  const { caFile } = certificates
  const access = inPodAccess({ host: '127.0.0.1', port: server.port, tokenFile, caFile, clock })
  t.match(await errorOf(access.target()), { kind: 'credentials', message: /ENOENT/ })
  writeFileSync(tokenFile, 'first\n')
  t.match(await ask(t, server, access), { authorization: 'Bearer first', 'user-agent': 'peerdns' })
  const { tls } = await access.target()
  writeFileSync(tokenFile, 'second\n')
  t.match(await ask(t, server, access), { authorization: 'Bearer first' }, 'within a minute')
  clock.advance(61_000)
  t.match(await ask(t, server, access), { authorization: 'Bearer second' }, 'after a minute')
  t.equal((await access.target()).tls, tls, 'the connection can stay')
  writeFileSync(tokenFile, 'third\n')
  server.fail(() => true, (_, response) => sendStatus(response, 401, 'Unauthorized')) // prettier-ignore
  t.match(await errorOf(ask(t, server, access)), { kind: 'status', status: 401 })
  t.match(await ask(t, server, access), { authorization: 'Bearer third' }, 'at once after a 401')
  clock.advance(61_000)
  writeFileSync(tokenFile, '')
  t.match(
    await ask(t, server, access),
    { authorization: 'Bearer third' },
    'the last good one while the file is exchanged'
  )
  writeFileSync(tokenFile, 'two words')
  access.forget(await access.target())
  t.match(await errorOf(access.target()), { kind: 'credentials', message: /no token/ })
})

test('inPodAccess: another CA, another connection; a server that it did not sign is refused', async (t) => {
  const [ours, theirs] = [makeCertificates(t), makeCertificates(t)]
  t.not(ours.ca, theirs.ca)
  const folder = t.testdir({ token: 'a', 'ca.crt': theirs.ca })
  const server = await tlsServer(t, ours)
  const clock = new ManualClock()
  const [tokenFile, caFile] = [join(folder, 'token'), join(folder, 'ca.crt')]
  const access = inPodAccess({ host: '127.0.0.1', port: server.port, tokenFile, caFile, clock })
  const connection = new ApiConnection(access, systemClock)
  t.teardown(() => connection.close())
  t.match(await errorOf(connection.document(paths.services)), { kind: 'network', message: /certificate/ })
  writeFileSync(caFile, ours.ca)
  clock.advance(61_000)
  t.match(await connection.document(paths.services), { kind: 'AnyList' })
})

test('a source: 401 once, and the exchanged token is used at once', async (t) => {
  const certificates = makeCertificates(t)
  const tokenFile = join(certificates.folder, 'token')
  const kubeconfig = (server: FakeApiServer, token: string) =>
    writeFileSync(tokenFile, kubeconfigText(server, { token }))
  const { server, resource, until, settled, model } = await setUp(t, {
    access: (server, clock) => {
      kubeconfig(server, 'old')
      return kubeconfigAccess({ file: tokenFile, context: null, clock })
    },
    prepare: (server) => {
      server.put(paths.services, service('web'))
      server.fail(
        ({ headers, path }) => path === paths.services && headers.authorization !== 'Bearer new',
        (_, response) => {
          kubeconfig(server, 'new')
          return sendStatus(response, 401, 'Unauthorized')
        },
        Infinity
      )
    }
  })
  t.match(resource('services'), { errors: 1, lists: 1 })
  server.put(paths.services, service('api'))
  await until(() => model.objects.size === 2, 'api')
  await settled()
})

/** A kubeconfig with one context `test` for this user. */
function kubeconfigText(server: FakeApiServer, user: object, cluster: object = {}): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    clusters: [{ name: 'test', cluster: { server: server.url.href, ...cluster } }],
    users: [{ name: 'test', user }],
    contexts: [
      { name: 'test', context: { cluster: 'test', user: 'test' } },
      { name: 'dangling', context: { cluster: 'none', user: 'test' } }
    ]
  })
}

test('kubeconfigAccess: every way to say who we are', async (t) => {
  const certificates = makeCertificates(t)
  const { folder, caFile } = certificates
  const server = await tlsServer(t, certificates)
  const file = join(folder, 'config')
  const plugin = join(folder, 'plugin.mjs')
  const credential =
    "{ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status: { token: process.env.SAY } }"
  writeFileSync(plugin, `#!${process.execPath}\nconsole.log(JSON.stringify(${credential}))\n`)
  chmodSync(plugin, 0o755)
  writeFileSync(join(folder, 'token'), 'from-file\n')
  const ca = { 'certificate-authority': 'ca.crt' }
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: plugin,
    args: [],
    env: [{ name: 'SAY', value: 'by-plug-in' }]
  }
  const rows = [
    { name: 'a token', user: { token: 'plain' }, cluster: ca, want: { authorization: 'Bearer plain' } },
    { name: 'a token file', user: { tokenFile: 'token', token: 'older' }, cluster: ca, want: { authorization: 'Bearer from-file' } },
    { name: 'a token file that is missing', user: { tokenFile: '/none' }, cluster: ca, error: { kind: 'credentials', message: /ENOENT/ } },
    { name: 'an exec plug-in', user: { exec }, cluster: ca, want: { authorization: 'Bearer by-plug-in' } },
    { name: 'a password', user: { username: 'me', password: 'p:w' }, cluster: ca, want: { authorization: `Basic ${btoa('me:p:w')}` } },
    { name: 'CA data', user: { token: 'b' }, cluster: { 'certificate-authority-data': btoa(certificates.ca) }, want: { authorization: 'Bearer b' } },
    { name: 'no verification', user: { token: 'c' }, cluster: { 'insecure-skip-tls-verify': true }, want: { authorization: 'Bearer c' } },
    { name: 'another server name', user: { token: 'd' }, cluster: { ...ca, 'tls-server-name': 'api.test' }, want: { authorization: 'Bearer d' } },
    { name: 'a wrong server name', user: { token: 'e' }, cluster: { ...ca, 'tls-server-name': 'other.test' }, error: { kind: 'network' } },
    { name: 'no CA', user: { token: 'f' }, cluster: {}, error: { kind: 'network' } },
    { name: 'a missing CA', user: {}, cluster: { 'certificate-authority': 'none' }, error: { kind: 'credentials', message: /ENOENT/ } },
    { name: 'a plug-in that fails', user: { exec: { ...exec, command: 'false' } }, cluster: ca, error: { kind: 'credentials' } },
    { name: 'a plug-in that is missing', user: { exec: { ...exec, command: '/none' } }, cluster: ca, error: { kind: 'credentials' } },
    { name: 'a proxy', user: {}, cluster: { ...ca, 'proxy-url': 'http://127.0.0.1:1' }, error: { kind: 'credentials', message: /proxy-url/ } },
    { name: 'http elsewhere', user: {}, cluster: { server: 'http://192.0.2.1' }, error: { kind: 'credentials', message: /expected https/ } },
    { name: 'no URL', user: {}, cluster: { server: 'nonsense' }, error: { kind: 'credentials' } },
    { name: 'an unknown context', user: {}, cluster: ca, context: 'other', error: { kind: 'credentials', message: /no context other/ } },
    { name: 'a context without cluster', user: {}, cluster: ca, context: 'dangling', error: { kind: 'credentials', message: /dangling/ } }
  ] // prettier-ignore
  for (const { name, user, cluster, context, want, error } of rows) {
    writeFileSync(file, kubeconfigText(server, user, cluster))
    const access = kubeconfigAccess({ file, context: context ?? null, clock: systemClock })
    if (want !== undefined) t.match(await ask(t, server, access), want, name)
    else t.match(await errorOf(ask(t, server, access)), error, name)
  }
  writeFileSync(file, 'clusters: [')
  t.match(await errorOf(kubeconfigAccess({ file, context: null, clock: systemClock }).target()), {
    kind: 'credentials'
  })
  t.match(await errorOf(kubeconfigAccess({ file: '/none', context: null, clock: systemClock }).target()), {
    kind: 'credentials'
  })

  const certificateFiles = { 'client-certificate': 'tls.crt', 'client-key': 'tls.key' }
  writeFileSync(file, kubeconfigText(server, certificateFiles, { 'certificate-authority': caFile }))
  const { tls } = await kubeconfigAccess({ file, context: null, clock: systemClock }).target()
  t.same(tls.cert, Buffer.from(certificates.cert), 'a client certificate')
  t.same(tls.key, Buffer.from(certificates.key))
  await ask(t, server, kubeconfigAccess({ file, context: null, clock: systemClock }))
  t.equal(server.requests.at(-1)!.isCertified, true)
})

test('plainAccess: only on this machine', async (t) => {
  for (const url of ['http://127.0.0.1:8001', 'http://[::1]:8001', 'http://localhost:8001', 'https://192.0.2.1']) {
    t.equal((await plainAccess(new URL(url)).target()).url.href, `${url}/`)
  }
  for (const url of ['http://192.0.2.1', 'http://127.example', 'ftp://127.0.0.1']) {
    t.throws(() => plainAccess(new URL(url)), /expected https/, url)
  }
})

test('ApiConnection: bounded in what it reads and waits for', async (t) => {
  const clock = new ManualClock()
  const server = await FakeApiServer.start({ clock })
  t.teardown(() => server.stop())
  const connection = new ApiConnection(plainAccess(server.url), clock)
  t.teardown(() => connection.close())
  const get = () => connection.document('/apis')
  const arrived = async (count: number) => {
    while (server.requests.length < count) await new Promise((resolve) => void setTimeout(resolve, 2))
  }
  server.fail(() => true, (_, response) => {
    response.writeHead(500)
    response.end('x'.repeat(1_000_000))
    return true
  }) // prettier-ignore
  t.match(await errorOf(get()), { kind: 'status', status: 500 }, 'a long error')
  server.fail(() => true, (_, response) => {
    response.end('x'.repeat(2_000_000))
    return true
  }) // prettier-ignore
  t.match(await errorOf(get()), { kind: 'format', message: /larger/ }, 'a long document')
  server.fail(() => true, (_, response) => {
    response.writeHead(302, { location: 'http://192.0.2.1/' })
    response.end()
    return true
  }) // prettier-ignore
  t.match(await errorOf(get()), { kind: 'status', status: 302 }, 'a redirect is not followed')
  server.fail(() => true, (_, response) => {
    response.socket?.end('no HTTP\r\n\r\n')
    return true
  }) // prettier-ignore
  t.match(await errorOf(get()), { kind: 'network' }, 'no HTTP')
  const count = server.requests.length
  server.fail(() => true, (_, response) => {
    response.writeHead(503)
    response.write('never ends')
    return true
  }) // prettier-ignore
  const endless = errorOf(get()).then((error) =>
    t.match(error, { kind: 'status', status: 503 }, 'an error that does not end')
  )
  await arrived(count + 1)
  await sleep(50)
  clock.advance(1_100)
  await endless
  server.fail(() => true, () => true) // prettier-ignore
  const silent = errorOf(get()).then((error) => t.match(error, { kind: 'timeout' }, 'no reply'))
  await arrived(count + 2)
  clock.advance(10_100)
  await silent
  t.match(await errorOf(get()), { status: 404 }, 'and it goes on')
  connection.close()
  t.match(await errorOf(get()), { kind: 'cut' }, 'closed')
})
