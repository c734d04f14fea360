/**
 * A slow and lossy way between two network namespaces, as a process of its own: packets of two TUN devices are passed
 * on, each later, and some never. What TCP and UDP make of that is the kernel's own.
 *
 *     node bench/staleness/packet-link.ts NAMESPACE DELAY_MS LOSS_SHARE
 *
 * Needs root and the package koffi, for the one ioctl that Node lacks. The devices go with the process.
 */
import { execFileSync } from 'node:child_process'
import { constants, openSync, read, writeSync } from 'node:fs'
import { DelayLine } from '../relay.ts'
import { linkAddresses } from './link-addresses.ts'

/** linux/if_tun.h */
const tunSetInterface = 0x4004_54ca
const isTun = 0x0001
const hasNoPacketInformation = 0x1000
const nameOctets = 16
const interfaceRequestOctets = 40
const packetOctets = 65_536

type Koffi = Readonly<{
  // The function is what its C prototype says, which no type can know.
  load(library: null): { func(prototype: string): (...values: readonly unknown[]) => number }
}>

const ip = (...args: string[]): void => void execFileSync('ip', args)

async function openTun(name: string): Promise<number> {
  const packageName: string = 'koffi'
  const { default: koffi } = (await import(packageName)) as { default: Koffi }
  const ioctl = koffi.load(null).func('int ioctl(int, unsigned long, uint8_t *)')
  const fd = openSync('/dev/net/tun', constants.O_RDWR)
  const request = Buffer.alloc(interfaceRequestOctets)
  request.write(name, 'latin1')
  request.writeUInt16LE(isTun | hasNoPacketInformation, nameOctets)
  if (ioctl(fd, tunSetInterface, request) !== 0) throw new Error(`no TUN device ${name} can be made here`)
  return fd
}

/** Reads one packet after the other, for as long as this process lives. */
function passOn(from: number, onto: number, delayMs: number, lossShare: number): void {
  const way = new DelayLine(delayMs)
  const buffer = Buffer.alloc(packetOctets)
  const readNext = (): void =>
    read(from, buffer, 0, packetOctets, null, (error, octets) => {
      if (error === null && Math.random() >= lossShare) {
        const packet = Buffer.from(buffer.subarray(0, octets))
        way.push(() => void writeSync(onto, packet))
      }
      readNext()
    })
  readNext()
}

const [namespace = '', delayText = '0', lossText = '0'] = process.argv.slice(2)
const { a, b } = linkAddresses
// Names of devices are short, and those of another run must not be in the way.
const [deviceOfA, deviceOfB] = [`pa${process.pid}`, `pb${process.pid}`]
const [fdOfA, fdOfB] = [await openTun(deviceOfA), await openTun(deviceOfB)]
ip('link', 'set', deviceOfB, 'netns', namespace)
ip('addr', 'add', a, 'peer', b, 'dev', deviceOfA)
ip('link', 'set', deviceOfA, 'up')
ip('-n', namespace, 'addr', 'add', b, 'peer', a, 'dev', deviceOfB)
ip('-n', namespace, 'link', 'set', deviceOfB, 'up')
passOn(fdOfA, fdOfB, Number(delayText), Number(lossText))
passOn(fdOfB, fdOfA, Number(delayText), Number(lossText))
process.send?.('ready')
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
