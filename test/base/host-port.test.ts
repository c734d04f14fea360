import { test } from 'tap'
import { hostPortToText, parseHostPort, parseListenAddress } from '../../src/base/host-port.ts'

void test('parseHostPort reads addresses and names', async (t) => {
  const rows: [text: string, host: string, port: number][] = [
    ['127.0.0.1:5301', '127.0.0.1', 5301],
    ['127.0.0.1', '127.0.0.1', 53],
    ['[FD00::53]:5353', 'fd00::53', 5353],
    ['[fd00:0::53]', 'fd00::53', 53],
    ['fd00::53', 'fd00::53', 53],
    ['[fe80::1%eth0]:53', 'fe80::1%eth0', 53],
    ['[::ffff:192.0.2.1]:53', '192.0.2.1', 53],
    ['dns.Example.org:53', 'dns.example.org', 53],
    ['peer-dns.kube-system.svc.', 'peer-dns.kube-system.svc.', 53],
    ['localhost', 'localhost', 53],
    ['1.2.3.4.example:65535', '1.2.3.4.example', 65535]
  ]
  for (const [text, host, port] of rows) t.same(parseHostPort(text, 53), { host, port }, text)
  const bad: [text: string, want: RegExp][] = [
    ['', /not an address or host name/],
    ['10.1:53', /not an address or host name/],
    ['010.0.0.1:53', /not an address or host name/],
    ['256.0.0.1', /not an address or host name/],
    ['53', /not an address or host name/],
    ['a b:53', /not an address or host name/],
    ['-a.example', /not an address or host name/],
    ['a..b', /not an address or host name/],
    ['a.example:0', /port is a number from 1 to 65535/],
    ['a.example:65536', /port is a number/],
    ['a.example:', /port is a number/],
    ['a.example:5x', /port is a number/],
    ['fd00::53:99999', /in brackets/],
    ['[1.2.3.4]:53', /only an IPv6 address stands in brackets/],
    ['[::1', /in brackets/],
    ['https://a.example:53', /in brackets|not an address/],
    ['127.0.0.1:53\n', /not an address|port/]
  ]
  for (const [text, want] of bad) t.throws(() => parseHostPort(text, 53), want, JSON.stringify(text))
})

void test('parseListenAddress takes addresses only', async (t) => {
  t.same(parseListenAddress('0.0.0.0:53'), { address: '0.0.0.0', port: 53 })
  t.same(parseListenAddress('[::]:0'), { address: '::', port: 0 })
  t.same(parseListenAddress('[fe80::1%eth0]:53'), { address: 'fe80::1%eth0', port: 53 })
  t.throws(() => parseListenAddress('localhost:53'), /needs an IP address/)
  t.throws(() => parseListenAddress(':53'), /needs an IP address/)
  t.throws(() => parseListenAddress('127.0.0.1'), /no port/)
  t.throws(() => parseListenAddress('::1'), /no port/)
  t.equal(hostPortToText('::1', 53), '[::1]:53')
  t.equal(hostPortToText('127.0.0.1', 53), '127.0.0.1:53')
})
