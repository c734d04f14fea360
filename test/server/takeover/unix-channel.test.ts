import { fstatSync, openSync } from 'node:fs'
import { test, type Test } from 'tap'
import { takeoverMessageOctets } from '../../../src/base/socket-limits.ts'
import { linux } from '../../../src/server/mmsg/layout.ts'
import { loadLibc } from '../../../src/server/mmsg/libc.ts'
import { UnixChannel, UnixListener } from '../../../src/server/takeover/unix-channel.ts'
import { until } from '../clients.ts'

const libc = await loadLibc().catch(() => null)
let names = 0
const freshName = (): string => `peerdns test ${process.pid} ${names++}`

if (libc === null) {
  void test(
    'takeover: connections between processes',
    { skip: 'koffi is not installed, or this is no Linux' },
    () => {}
  )
} else {
  class End {
    readonly texts: string[] = []
    readonly fds: number[] = []
    closed = 0
    readonly channel: UnixChannel

    constructor(t: Test, channel: UnixChannel) {
      this.channel = channel
      channel.start({
        onMessage: (text, fd) => {
          this.texts.push(text)
          if (fd !== null) this.fds.push(fd)
        },
        onClose: () => (this.closed += 1)
      })
      t.teardown(() => {
        channel.close()
        for (const fd of this.fds) libc!.close(fd)
      })
    }
  }

  const connected = async (t: Test): Promise<[End, End]> => {
    const name = freshName()
    const accepted: UnixChannel[] = []
    const listener = new UnixListener(libc, name, (channel) => accepted.push(channel))
    t.teardown(() => listener.close())
    const channel = UnixChannel.connect(libc, name)
    t.ok(channel !== null)
    await until('a connection is accepted', () => accepted.length === 1)
    return [new End(t, channel!), new End(t, accepted[0]!)]
  }

  void test('UnixChannel carries texts as they were cut, both ways', async (t) => {
    const [one, other] = await connected(t)
    const longest = 'x'.repeat(takeoverMessageOctets)
    for (const text of ['a', 'ü and more', longest]) t.ok(one.channel.send(text))
    await until('three came', () => other.texts.length === 3)
    t.same(other.texts, ['a', 'ü and more', longest])
    t.ok(other.channel.send('back'))
    await until('one came back', () => one.texts.length === 1)
    t.same(one.texts, ['back'])
    t.throws(() => one.channel.send(`${longest}x`), RangeError)
  })

  void test('UnixChannel carries a descriptor: the same file', async (t) => {
    const [one, other] = await connected(t)
    const fd = openSync(import.meta.filename, 'r')
    t.ok(one.channel.send('with', fd))
    t.ok(one.channel.send('without'))
    libc.close(fd)
    await until('both came', () => other.texts.length === 2)
    t.equal(other.fds.length, 1)
    t.ok(fstatSync(other.fds[0]!).size > 0, 'it is open here, though it was closed there')
  })

  void test('UnixChannel tells once that the other side is gone', async (t) => {
    const [one, other] = await connected(t)
    one.channel.send('last')
    one.channel.close()
    await until('it is closed', () => other.closed === 1)
    t.same(other.texts, ['last'], 'after what was sent before')
    t.notOk(other.channel.send('nobody hears'))
    t.equal(one.closed, 0, 'who closes is not told')
  })

  void test('UnixChannel.connect: nobody has this name', async (t) => {
    t.equal(UnixChannel.connect(libc, freshName()), null)
    t.throws(() => UnixChannel.connect(libc, 'x'.repeat(200)), RangeError)
  })

  void test('UnixChannel.connect: one that accepts nobody any more holds nobody', async (t) => {
    const name = freshName()
    const fd = libc.socket(linux.AF_UNIX, linux.SOCK_SEQPACKET | linux.SOCK_CLOEXEC, 0)
    t.teardown(() => libc.close(fd))
    const octets = new Uint8Array([linux.AF_UNIX, 0, 0, ...new TextEncoder().encode(name)])
    t.equal(libc.bind(fd, octets, octets.length), 0)
    t.equal(libc.listen(fd, 0), 0)
    const channels = Array.from({ length: 8 }, () => UnixChannel.connect(libc, name))
    t.ok(channels.includes(null), 'it is as if nobody were there')
    for (const channel of channels) channel?.close()
  })

  void test('UnixListener: a name that is taken, and one that is free again', async (t) => {
    const name = freshName()
    const listener = new UnixListener(libc, name, () => {})
    t.throws(() => new UnixListener(libc, name, () => {}), { code: 'EADDRINUSE' })
    listener.close()
    const again = new UnixListener(libc, name, () => {})
    again.close()
    again.close()
    t.equal(UnixChannel.connect(libc, name), null)
  })

  void test('who is of another user is not spoken to', async (t) => {
    const foreign = {
      ...libc,
      getsockopt: (fd: number, level: number, option: number, value: Uint8Array, octets: Uint8Array): number => {
        const result = libc.getsockopt(fd, level, option, value, octets)
        value[4]! ^= 1
        return result
      }
    }
    const name = freshName()
    const accepted: UnixChannel[] = []
    const listener = new UnixListener(libc, name, (channel) => accepted.push(channel))
    t.teardown(() => listener.close())
    t.equal(UnixChannel.connect(foreign, name), null, 'neither by who connects')
    const wary = new UnixListener(foreign, `${name} wary`, (channel) => accepted.push(channel))
    t.teardown(() => wary.close())
    const end = new End(t, UnixChannel.connect(libc, `${name} wary`)!)
    await until('the connection is cut', () => end.closed === 1)
    for (const channel of accepted) channel.close()
  })
}
