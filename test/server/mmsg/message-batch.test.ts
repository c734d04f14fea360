/** The memory of batches: where things lie by the machine's own headers, and that nothing leads outside. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { arch } from 'node:process'
import { test } from 'tap'
import {
  pollFd,
  rusage,
  schedAttr,
  schedSetattrNumber,
  sockFilter,
  sockFprog,
  cmsghdr,
  iovec,
  linux,
  mmsghdr,
  pktInfo,
  pktInfo6,
  sockaddrIn,
  sockaddrIn6,
  sockaddrUn,
  timeval,
  ucred
} from '../../../src/server/mmsg/layout.ts'
import { MessageBatch } from '../../../src/server/mmsg/message-batch.ts'
import { bpf } from '../../../src/server/mmsg/reuseport-group.ts'

/** An address that is no address: these tests call no kernel. It lies above 4 GiB, as real ones do. */
const base = 0x7f12_3456_7000
const made = (slots = 4) => {
  let buffer = new ArrayBuffer(0)
  const batch = new MessageBatch(slots, (given) => {
    buffer = given
    return base
  })
  return { batch, buffer, view: new DataView(buffer) }
}
const pointerAt = (view: DataView, at: number) => Number(view.getBigUint64(at, true)) - base

/** What recvmmsg would leave behind: a sender, and octets. */
function receive(
  view: DataView,
  heads: number,
  slot: number,
  options: { name: number[]; control?: number[]; octets: number }
) {
  const head = heads - base + slot * mmsghdr.size
  const name = pointerAt(view, head + mmsghdr.name)
  options.name.forEach((octet, at) => view.setUint8(name + at, octet))
  view.setUint32(head + mmsghdr.nameOctets, options.name.length, true)
  const control = pointerAt(view, head + mmsghdr.control)
  const given = options.control ?? []
  given.forEach((octet, at) => view.setUint8(control + at, octet))
  view.setUint32(head + mmsghdr.controlOctets, given.length, true)
  view.setUint32(head + mmsghdr.octets, options.octets, true)
}

const v4Sender = [2, 0, 0x12, 0x34, 192, 0, 2, 7, 0, 0, 0, 0, 0, 0, 0, 0]
const linkLocalSender = [10, 0, 0, 53, 0, 0, 0, 0, 0xfe, 0x80, ...Array.from({ length: 13 }, () => 0), 1, 3, 0, 0, 0]
const u32 = (value: number) => [...new Uint8Array(Uint32Array.of(value).buffer)]
const pktInfo4Control = [...u32(28), ...u32(0), ...u32(0), ...u32(8), ...u32(5), 127, 0, 0, 2, 127, 0, 0, 2, 0, 0, 0, 0]

void test('MessageBatch gives the kernel only addresses with the promised room behind them', async (t) => {
  for (const slots of [1, 4, 64]) {
    const { batch, buffer, view } = made(slots)
    const ranges: [from: number, to: number][] = []
    const heads = batch.prepareReceive() - base
    ranges.push([heads, heads + slots * mmsghdr.size])
    for (let slot = 0; slot < slots; slot++) {
      const head = heads + slot * mmsghdr.size
      const name = pointerAt(view, head + mmsghdr.name)
      ranges.push([name, name + view.getUint32(head + mmsghdr.nameOctets, true)])
      const control = pointerAt(view, head + mmsghdr.control)
      ranges.push([control, control + Number(view.getBigUint64(head + mmsghdr.controlOctets, true))])
      t.equal(view.getBigUint64(head + mmsghdr.iovCount, true), 1n)
      const vector = pointerAt(view, head + mmsghdr.iov)
      ranges.push([vector, vector + iovec.size])
      const octets = pointerAt(view, vector + iovec.base)
      ranges.push([octets, octets + Number(view.getBigUint64(vector + iovec.octets, true))])
      t.equal(batch.queries[slot]!.byteOffset, octets, 'the view is what the kernel writes to')
    }
    t.ok(
      ranges.every(([from, to]) => from >= 0 && to > from && to <= buffer.byteLength),
      'all inside'
    )
    ranges.sort(([a], [b]) => a - b)
    t.ok(
      ranges.every(([from], at) => at === 0 || from >= ranges[at - 1]![1]),
      'none overlaps another'
    )
  }
})

void test('MessageBatch answers whom it was asked by, from the address that was asked', async (t) => {
  const { batch, view } = made()
  const heads = batch.prepareReceive()
  receive(view, heads, 0, { name: v4Sender, octets: 20 })
  receive(view, heads, 1, { name: linkLocalSender, octets: 30 })
  receive(view, heads, 2, { name: v4Sender, control: pktInfo4Control, octets: 70_000 })
  batch.noteReceived(3)
  t.same(
    [0, 1, 2].map((slot) => batch.querySize(slot)),
    [20, 30, 65_535],
    'never more than there is room for'
  )
  t.same([0, 1].map((slot) => [batch.isIpv6(slot), batch.port(slot)]), [[false, 0x1234], [true, 53]]) // prettier-ignore
  t.same([...batch.addressOctets(0)], [192, 0, 2, 7])
  t.equal(batch.addressOctets(1).length, 16)
  batch.nextAnswer.set([1, 2, 3])
  batch.answer(2, 3)
  batch.nextAnswer.set([9])
  batch.answer(0, 1)
  t.equal(batch.answered, 2)
  const first = batch.copyOfAnswer(0)
  t.same([...first.octets], [1, 2, 3])
  t.same([...first.destination.name], v4Sender)
  const withoutInterface = pktInfo4Control.with(16, 0)
  t.same([...first.destination.control], withoutInterface, 'the routes choose the interface')
  const second = batch.copyOfAnswer(1)
  t.same([[...second.octets], [...second.destination.name], second.destination.control.length], [[9], v4Sender, 0])
  t.equal(batch.sendFrom(1) - batch.sendFrom(0), mmsghdr.size)
  t.same([...batch.destinationOf(1).name], linkLocalSender)
})

void test('MessageBatch sends answers that come later', async (t) => {
  const { batch } = made(2)
  batch.beginSend()
  const destination = { name: Uint8Array.from(v4Sender), control: Uint8Array.from(pktInfo4Control) }
  t.ok(batch.addAnswer(destination, Uint8Array.of(1)))
  t.ok(batch.addAnswer(destination, Uint8Array.of(2, 3)))
  t.notOk(batch.addAnswer(destination, Uint8Array.of(4)), 'no more than there are slots')
  t.same(
    [0, 1].map((answer) => [...batch.copyOfAnswer(answer).octets]),
    [[1], [2, 3]]
  )
  t.same(batch.copyOfAnswer(1).destination, destination)
})

void test('MessageBatch refuses what lies outside', async (t) => {
  const { batch, view } = made(2)
  receive(view, batch.prepareReceive(), 0, { name: v4Sender, octets: 20 })
  t.throws(() => batch.noteReceived(3), RangeError)
  t.throws(() => batch.noteReceived(-1), RangeError)
  batch.noteReceived(1)
  for (const slot of [-1, 1, 2, Number.NaN]) {
    t.throws(() => batch.querySize(slot), RangeError)
    t.throws(() => batch.port(slot), RangeError)
    t.throws(() => batch.answer(slot, 12), RangeError)
    t.throws(() => batch.destinationOf(slot), RangeError)
  }
  t.throws(() => batch.addressWord(0, 4), RangeError)
  for (const size of [0, -1, 65_536, Number.NaN]) t.throws(() => batch.answer(0, size), RangeError)
  t.throws(() => batch.sendFrom(0), RangeError, 'nothing was answered')
  batch.answer(0, 12)
  batch.answer(0, 12)
  t.throws(() => batch.answer(0, 12), RangeError)
  t.throws(() => batch.nextAnswer, RangeError)
  batch.beginSend()
  const tooLong = { name: new Uint8Array(33), control: new Uint8Array(0) }
  t.throws(() => batch.addAnswer(tooLong, Uint8Array.of(1)), RangeError)
  t.throws(() => batch.addAnswer({ ...tooLong, name: new Uint8Array(16) }, new Uint8Array(65_536)), RangeError)
  for (const slots of [0, -1, 1.5, 1025]) t.throws(() => made(slots), RangeError)
  for (const address of [0, -8, 4, 2 ** 53]) t.throws(() => new MessageBatch(1, () => address), RangeError)
})

void test('MessageBatch does not send control messages that it does not know', async (t) => {
  const { batch, view } = made()
  const rows: [name: string, control: number[]][] = [
    ['another level', pktInfo4Control.with(8, 1)],
    ['another type', pktInfo4Control.with(12, 9)],
    ['another length', pktInfo4Control.with(0, 29)],
    ['half a head', pktInfo4Control.slice(0, 12)]
  ]
  const heads = batch.prepareReceive()
  for (const [slot, [, control]] of rows.entries()) receive(view, heads, slot, { name: v4Sender, control, octets: 12 })
  batch.noteReceived(rows.length)
  for (const [slot, [name]] of rows.entries()) t.equal(batch.destinationOf(slot).control.length, 0, name)
})

const bpfInC: Record<keyof typeof bpf, string> = {
  loadWord: 'BPF_LD | BPF_W | BPF_ABS',
  modulo: 'BPF_ALU | BPF_MOD | BPF_K',
  jumpIfEqual: 'BPF_JMP | BPF_JEQ | BPF_K',
  returnValue: 'BPF_RET | BPF_K',
  random: '(unsigned)(SKF_AD_OFF + SKF_AD_RANDOM)'
}

/** C compilers that may be here, by the machine and C library that they are for. */
const compilers = ['cc', 'musl-gcc', 'aarch64-linux-gnu-gcc']

void test('the layout is that of the C headers', async (t) => {
  const checks = [
    ...fields('struct mmsghdr', {
      'msg_hdr.msg_name': mmsghdr.name,
      'msg_hdr.msg_namelen': mmsghdr.nameOctets,
      'msg_hdr.msg_iov': mmsghdr.iov,
      'msg_hdr.msg_iovlen': mmsghdr.iovCount,
      'msg_hdr.msg_control': mmsghdr.control,
      'msg_hdr.msg_controllen': mmsghdr.controlOctets,
      'msg_hdr.msg_flags': mmsghdr.flags,
      msg_len: mmsghdr.octets
    }),
    ...fields('struct iovec', { iov_base: iovec.base, iov_len: iovec.octets }),
    ...fields('struct sockaddr_in', { sin_family: 0, sin_port: sockaddrIn.port, sin_addr: sockaddrIn.address }),
    ...fields('struct sockaddr_in6', {
      sin6_family: 0,
      sin6_port: sockaddrIn6.port,
      sin6_flowinfo: sockaddrIn6.flowInfo,
      sin6_addr: sockaddrIn6.address,
      sin6_scope_id: sockaddrIn6.scope
    }),
    ...fields('struct cmsghdr', { cmsg_len: cmsghdr.octets, cmsg_level: cmsghdr.level, cmsg_type: cmsghdr.type }),
    ...fields('struct in_pktinfo', { ipi_ifindex: pktInfo.interface, ipi_spec_dst: pktInfo.localAddress }),
    ...fields('struct in6_pktinfo', { ipi6_addr: pktInfo6.address, ipi6_ifindex: pktInfo6.interface }),
    `sizeof(struct mmsghdr) == ${mmsghdr.size}`,
    `sizeof(struct iovec) == ${iovec.size}`,
    `sizeof(struct sockaddr_in) == ${sockaddrIn.size}`,
    `sizeof(struct sockaddr_in6) == ${sockaddrIn6.size}`,
    `sizeof(struct in_pktinfo) == ${pktInfo.octets}`,
    `sizeof(struct in6_pktinfo) == ${pktInfo6.octets}`,
    `sizeof(struct timeval) == ${timeval.size}`,
    `offsetof(struct timeval, tv_usec) == ${timeval.microseconds}`,
    ...fields('struct sockaddr_un', { sun_family: sockaddrUn.family, sun_path: sockaddrUn.path }),
    ...fields('struct ucred', { uid: ucred.uid }),
    `sizeof(struct sockaddr_un) == ${sockaddrUn.size}`,
    `sizeof(struct ucred) == ${ucred.size}`,
    `CMSG_LEN(0) == ${cmsghdr.data}`,
    ...fields('struct pollfd', { fd: pollFd.fd, events: pollFd.events, revents: pollFd.revents }),
    `sizeof(struct pollfd) == ${pollFd.size}`,
    ...fields('struct rusage', { ru_utime: rusage.user, ru_stime: rusage.system }),
    `sizeof(struct rusage) <= ${rusage.room}`,
    ...fields('struct sched_attr', {
      size: schedAttr.octets,
      sched_flags: schedAttr.flags,
      sched_nice: schedAttr.nice,
      sched_runtime: schedAttr.runtime
    }),
    `SCHED_ATTR_SIZE_VER0 == ${schedAttr.size}`,
    `SYS_sched_setattr == ${arch === 'arm64' ? schedSetattrNumber.arm64 : schedSetattrNumber.x64}`,
    ...Object.entries(linux).map(([name, value]) => `${name} == ${value}`)
  ]
  const folder = mkdtempSync(join(tmpdir(), 'layout-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'layout.c')
  const includes = [
    'errno.h',
    'fcntl.h',
    'poll.h',
    'stddef.h',
    'linux/sched.h',
    'linux/sched/types.h',
    'sys/resource.h',
    'sys/syscall.h',
    'sys/time.h',
    'sys/socket.h',
    'sys/un.h',
    'sys/uio.h',
    'netinet/in.h'
  ].map((name) => `#include <${name}>`)
  // Linux' own, which a C library may come without.
  const filter = [
    ...fields('struct sock_filter', {
      code: sockFilter.code,
      jt: sockFilter.ifTrue,
      jf: sockFilter.ifFalse,
      k: sockFilter.value
    }),
    ...fields('struct sock_fprog', { len: sockFprog.count, filter: sockFprog.filter }),
    `sizeof(struct sock_filter) == ${sockFilter.size}`,
    `sizeof(struct sock_fprog) == ${sockFprog.size}`,
    ...Object.entries(bpf).map(([name, value]) => `(${bpfInC[name as keyof typeof bpf]}) == ${value}u`)
  ]
  const assertsOf = (all: readonly string[]): string[] => all.map((check) => `_Static_assert(${check}, "${check}");`)
  const filterPart = [
    '#if __has_include(<linux/filter.h>)',
    '#include <linux/filter.h>',
    ...assertsOf(filter),
    '#endif'
  ]
  writeFileSync(file, ['#define _GNU_SOURCE', ...includes, ...assertsOf(checks), ...filterPart, ''].join('\n'))
  const found = compilers.filter((compiler) => {
    try {
      execFileSync(compiler, ['--version'], { stdio: 'ignore' })
      return true
    } catch {
      return false
    }
  })
  if (found.length === 0) t.comment('skipped: no C compiler here')
  for (const compiler of found) {
    t.doesNotThrow(
      () => execFileSync(compiler, ['-c', file, '-o', join(folder, 'layout.o')], { stdio: 'pipe' }),
      compiler
    )
  }
})

const fields = (struct: string, offsets: Record<string, number>) =>
  Object.entries(offsets).map(([field, offset]) => `offsetof(${struct}, ${field}) == ${offset}`)
