/**
 * The memory that recvmmsg and sendmmsg work on: a fixed number of slots for messages that come, and as many for
 * answers.
 *
 * All pointer arithmetic is in this file. The kernel is only ever given addresses inside the one ArrayBuffer held here,
 * with the room there is behind them; slots, sizes and lengths are checked before they are used or written. The buffer
 * is made once and never handed on, so its address stays what it is.
 */
import { maxMessageOctets } from '../../base/limits.ts'
import { cmsghdr, iovec, linux, mmsghdr, pktInfo, pktInfo6, sockaddrIn, sockaddrIn6 } from './layout.ts'

/** Room for a socket address, and for one control message with our own address. */
const nameRoom = 32
const controlRoom = 64
/**
 * Room for any message. The odd rest keeps the slots' beginnings out of one another's way in the processor's caches.
 */
const messageRoom = maxMessageOctets + 1 + 192

/** Who is to get an answer later, and from which of our addresses: octets as the kernel gave them. */
export type Destination = Readonly<{ name: Uint8Array; control: Uint8Array }>

/** The address of a client as four words: of IPv6, or for IPv4 what no address of IPv6 is. */
export type ClientWords = { a: number; b: number; c: number; d: number }

/** Tells the address of a buffer's first octet; it must stay there as long as the buffer lives. */
export type AddressOf = (buffer: ArrayBuffer) => number

export class MessageBatch {
  readonly slots: number
  /** The slot of each message that came: as long as the room there is, whatever came. */
  readonly queries: readonly Uint8Array[]
  readonly #answers: readonly Uint8Array[]
  readonly #octets: Uint8Array
  readonly #words: Uint32Array
  readonly #address: number
  readonly #receiveHeads: number
  readonly #sendHeads: number
  readonly #sendVectors: number
  readonly #names: number
  readonly #controls: number
  /** Messages that the last receive may have altered. */
  #received = 0
  #answered = 0

  constructor(slots: number, addressOf: AddressOf) {
    if (!Number.isInteger(slots) || slots < 1 || slots > 1024) throw new RangeError(`no number of slots: ${slots}`)
    this.slots = slots
    let octets = 0
    const reserve = (each: number): number => {
      const start = octets
      octets += Math.ceil((slots * each) / 64) * 64
      return start
    }
    this.#receiveHeads = reserve(mmsghdr.size)
    this.#sendHeads = reserve(mmsghdr.size)
    const receiveVectors = reserve(iovec.size)
    this.#sendVectors = reserve(iovec.size)
    this.#names = reserve(nameRoom)
    this.#controls = reserve(controlRoom)
    const queries = reserve(messageRoom)
    const answers = reserve(messageRoom)
    const buffer = new ArrayBuffer(octets)
    this.#octets = new Uint8Array(buffer)
    this.#words = new Uint32Array(buffer)
    this.#address = addressOf(buffer)
    if (!Number.isSafeInteger(this.#address + octets) || this.#address <= 0 || this.#address % 8 !== 0) {
      throw new RangeError(`no address to count with: ${this.#address}`)
    }
    const views = (start: number): Uint8Array[] =>
      Array.from({ length: slots }, (_, slot) => new Uint8Array(buffer, start + slot * messageRoom, maxMessageOctets))
    this.queries = views(queries)
    this.#answers = views(answers)
    for (let slot = 0; slot < slots; slot++) {
      const receiveHead = this.#receiveHeads + slot * mmsghdr.size
      const receiveVector = receiveVectors + slot * iovec.size
      this.#setPointer(receiveHead + mmsghdr.name, this.#nameAt(slot))
      this.#setPointer(receiveHead + mmsghdr.control, this.#controlAt(slot))
      this.#setPointer(receiveHead + mmsghdr.iov, receiveVector)
      this.#setNumber(receiveHead + mmsghdr.iovCount, 1)
      this.#setPointer(receiveVector + iovec.base, queries + slot * messageRoom)
      this.#setNumber(receiveVector + iovec.octets, maxMessageOctets)
      const sendHead = this.#sendHeads + slot * mmsghdr.size
      const sendVector = this.#sendVectors + slot * iovec.size
      this.#setPointer(sendHead + mmsghdr.iov, sendVector)
      this.#setNumber(sendHead + mmsghdr.iovCount, 1)
      this.#setPointer(sendVector + iovec.base, answers + slot * messageRoom)
    }
    this.#received = slots
  }

  /**
   * Address of the heads for recvmmsg, made ready for `slots` messages. Forgets what was received and not sent before.
   */
  prepareReceive(): number {
    const words = this.#words
    for (let slot = 0; slot < this.#received; slot++) {
      const head = (this.#receiveHeads + slot * mmsghdr.size) >> 2
      words[head + (mmsghdr.nameOctets >> 2)] = nameRoom
      words[head + (mmsghdr.controlOctets >> 2)] = controlRoom
      words[head + (mmsghdr.flags >> 2)] = 0
    }
    this.#received = 0
    this.#answered = 0
    return this.#address + this.#receiveHeads
  }

  /** Notes what recvmmsg returned. */
  noteReceived(count: number): void {
    if (!(count >= 0 && count <= this.slots)) throw new RangeError(`not a number of messages: ${count}`)
    this.#received = count
  }

  /** Octets of a message that came. */
  querySize(slot: number): number {
    const octets = this.#words[this.#receiveHead(slot) + (mmsghdr.octets >> 2)]!
    return octets > maxMessageOctets ? maxMessageOctets : octets
  }

  /** Whether the message comes from an address of IPv6. */
  isIpv6(slot: number): boolean {
    return this.#octets[this.#name(slot)] === linux.AF_INET6
  }

  port(slot: number): number {
    const at = this.#name(slot) + sockaddrIn.port
    return (this.#octets[at]! << 8) | this.#octets[at + 1]!
  }

  /** One word of the sender's address, in network order as the machine reads it: word 0 for IPv4, 0 to 3 for IPv6. */
  addressWord(slot: number, word: number): number {
    const at = this.isIpv6(slot) ? sockaddrIn6.address : sockaddrIn.address
    if (!(word >= 0 && word < 4)) throw new RangeError(`not a word of an address: ${word}`)
    return this.#words[(this.#name(slot) + at + word * 4) >> 2]!
  }

  /** Puts a message that was received elsewhere into the next slot. Only after `prepareReceive`. */
  addReceived(name: Uint8Array, control: Uint8Array, octets: Uint8Array): void {
    const slot = this.#received
    if (slot >= this.slots) throw new RangeError('more messages than slots')
    if (name.length > nameRoom || control.length > controlRoom) throw new RangeError('no destination of this batch')
    this.#received = slot + 1
    const head = this.#receiveHead(slot)
    this.#octets.set(name, this.#nameAt(slot))
    this.#octets.set(control, this.#controlAt(slot))
    this.queries[slot]!.set(octets)
    this.#words[head + (mmsghdr.nameOctets >> 2)] = name.length
    this.#words[head + (mmsghdr.controlOctets >> 2)] = control.length
    this.#words[head + (mmsghdr.octets >> 2)] = octets.length
  }

  /** Messages that are in the batch. */
  get received(): number {
    return this.#received
  }

  /** Who sent a message, octets as the kernel gave them: valid until the next message is received. */
  nameOf(slot: number): Uint8Array {
    const octets = this.#words[this.#receiveHead(slot) + (mmsghdr.nameOctets >> 2)]!
    const at = this.#nameAt(slot)
    return this.#octets.subarray(at, at + Math.min(octets, nameRoom))
  }

  /** What came with a message besides its octets, likewise. */
  controlOf(slot: number): Uint8Array {
    const octets = this.#words[this.#receiveHead(slot) + (mmsghdr.controlOctets >> 2)]!
    const at = this.#controlAt(slot)
    return this.#octets.subarray(at, at + Math.min(octets, controlRoom))
  }

  /** Writes the sender's address into `words`. */
  clientWords(slot: number, words: ClientWords): void {
    const isV6 = this.isIpv6(slot)
    words.a = isV6 ? this.addressWord(slot, 0) : 0
    words.b = isV6 ? this.addressWord(slot, 1) : 0
    // No IPv6 address begins like this: the family is told apart by the first three words.
    words.c = isV6 ? this.addressWord(slot, 2) : 0xffff_0000
    words.d = this.addressWord(slot, isV6 ? 3 : 0)
  }

  /** Octets of the sender's address: 4 or 16. */
  addressOctets(slot: number): Uint8Array {
    const at = this.#name(slot)
    return this.isIpv6(slot)
      ? this.#octets.slice(at + sockaddrIn6.address, at + sockaddrIn6.address + 16)
      : this.#octets.slice(at + sockaddrIn.address, at + sockaddrIn.address + 4)
  }

  /** Answers that wait to be sent. */
  get answered(): number {
    return this.#answered
  }

  /** Where the next answer is to be written. There is one for each message of a batch. */
  get nextAnswer(): Uint8Array {
    return this.#answers[this.#free()]!
  }

  /** Takes what was written to `nextAnswer` as the answer to a message. */
  answer(slot: number, size: number): void {
    const free = this.#free()
    if (!(size > 0 && size <= maxMessageOctets)) throw new RangeError(`not a size of a message: ${size}`)
    const receiveHead = this.#receiveHead(slot)
    const control = this.#replyControl(slot, this.#words[receiveHead + (mmsghdr.controlOctets >> 2)]!)
    this.#fillHead(free, slot, size, this.#words[receiveHead + (mmsghdr.nameOctets >> 2)]!, control)
    this.#answered = free + 1
  }

  /** Who sent a message, for an answer that comes later. */
  destinationOf(slot: number): Destination {
    const head = this.#receiveHead(slot)
    const nameOctets = Math.min(this.#words[head + (mmsghdr.nameOctets >> 2)]!, nameRoom)
    const controlOctets = this.#replyControl(slot, this.#words[head + (mmsghdr.controlOctets >> 2)]!)
    const [name, control] = [this.#nameAt(slot), this.#controlAt(slot)]
    return {
      name: this.#octets.slice(name, name + nameOctets),
      control: this.#octets.slice(control, control + controlOctets)
    }
  }

  /** Lets only the answers be sent that are added from now on. Messages that came are forgotten. */
  beginSend(): void {
    this.#received = this.slots
    this.#answered = 0
  }

  /**
   * Adds an answer that had to wait; false where no slot is free. Only after `beginSend`: it takes the place of
   * messages.
   */
  addAnswer(destination: Destination, octets: Uint8Array): boolean {
    const slot = this.#answered
    if (slot >= this.slots) return false
    if (destination.name.length > nameRoom || destination.control.length > controlRoom) {
      throw new RangeError('no destination of this batch')
    }
    if (octets.length > maxMessageOctets) throw new RangeError(`not a size of a message: ${octets.length}`)
    this.#octets.set(destination.name, this.#nameAt(slot))
    this.#octets.set(destination.control, this.#controlAt(slot))
    this.#answers[slot]!.set(octets)
    this.#fillHead(slot, slot, octets.length, destination.name.length, destination.control.length)
    this.#answered = slot + 1
    return true
  }

  /** Address of the heads for sendmmsg, from one answer on. */
  sendFrom(answer: number): number {
    if (!(answer >= 0 && answer < this.#answered)) throw new RangeError(`no such answer: ${answer}`)
    return this.#address + this.#sendHeads + answer * mmsghdr.size
  }

  /** A copy of an answer that the kernel did not take. */
  copyOfAnswer(answer: number): Readonly<{ destination: Destination; octets: Uint8Array }> {
    if (!(answer >= 0 && answer < this.#answered)) throw new RangeError(`no such answer: ${answer}`)
    const head = (this.#sendHeads + answer * mmsghdr.size) >> 2
    const words = this.#words
    const name = this.#offsetIn(head + (mmsghdr.name >> 2))
    const nameOctets = words[head + (mmsghdr.nameOctets >> 2)]!
    const controlOctets = words[head + (mmsghdr.controlOctets >> 2)]!
    const control = controlOctets === 0 ? 0 : this.#offsetIn(head + (mmsghdr.control >> 2))
    const size = words[(this.#sendVectors + answer * iovec.size + iovec.octets) >> 2]!
    return {
      destination: {
        name: this.#octets.slice(name, name + nameOctets),
        control: this.#octets.slice(control, control + controlOctets)
      },
      octets: this.#answers[answer]!.slice(0, size)
    }
  }

  /** Fills the head of an answer: who gets it (the name and control message of a slot), and its octets. */
  #fillHead(answer: number, slot: number, size: number, nameOctets: number, controlOctets: number): void {
    const words = this.#words
    const head = this.#sendHeads + answer * mmsghdr.size
    this.#setPointer(head + mmsghdr.name, this.#nameAt(slot))
    words[(head + mmsghdr.nameOctets) >> 2] = nameOctets > nameRoom ? nameRoom : nameOctets
    words[(head + mmsghdr.controlOctets) >> 2] = controlOctets
    if (controlOctets > 0) this.#setPointer(head + mmsghdr.control, this.#controlAt(slot))
    words[(this.#sendVectors + answer * iovec.size + iovec.octets) >> 2] = size
  }

  /**
   * Turns the control message that says which of our addresses was asked into one that answers from it, and returns its
   * octets; 0 where there is none. The interface is left for the routes to choose, but for link-local addresses.
   */
  #replyControl(slot: number, octets: number): number {
    const at = this.#controlAt(slot)
    if (octets < cmsghdr.data || octets > controlRoom) return 0
    const words = this.#words
    const length = words[(at + cmsghdr.octets) >> 2]!
    const level = words[(at + cmsghdr.level) >> 2]!
    const type = words[(at + cmsghdr.type) >> 2]!
    if (level === linux.IPPROTO_IP && type === linux.IP_PKTINFO && length === cmsghdr.data + pktInfo.octets) {
      words[(at + cmsghdr.data + pktInfo.interface) >> 2] = 0
      return Math.ceil(length / 8) * 8
    }
    if (level === linux.IPPROTO_IPV6 && type === linux.IPV6_PKTINFO && length === cmsghdr.data + pktInfo6.octets) {
      const sender = this.#nameAt(slot) + sockaddrIn6.address
      const isLinkLocal = this.#octets[sender] === 0xfe && (this.#octets[sender + 1]! & 0xc0) === 0x80
      if (!isLinkLocal) words[(at + cmsghdr.data + pktInfo6.interface) >> 2] = 0
      return Math.ceil(length / 8) * 8
    }
    return 0
  }

  #free(): number {
    if (this.#answered >= this.slots) throw new RangeError('more answers than slots')
    return this.#answered
  }

  /** Index of the word that a received message's head begins with. */
  #receiveHead(slot: number): number {
    this.#check(slot)
    return (this.#receiveHeads + slot * mmsghdr.size) >> 2
  }

  #name(slot: number): number {
    this.#check(slot)
    return this.#nameAt(slot)
  }

  #check(slot: number): void {
    if (!(slot >= 0 && slot < this.#received)) throw new RangeError(`no such message: ${slot}`)
  }

  #nameAt(slot: number): number {
    return this.#names + slot * nameRoom
  }

  #controlAt(slot: number): number {
    return this.#controls + slot * controlRoom
  }

  /** Writes the address of an offset in our own buffer. */
  #setPointer(at: number, offset: number): void {
    const pointer = this.#address + offset
    this.#words[at >> 2] = pointer >>> 0
    this.#words[(at >> 2) + 1] = Math.floor(pointer / 0x1_0000_0000)
  }

  /** Writes a small number into a field of 64 bits. */
  #setNumber(at: number, value: number): void {
    this.#words[at >> 2] = value
    this.#words[(at >> 2) + 1] = 0
  }

  /** The offset that a pointer of ours stands for. */
  #offsetIn(word: number): number {
    const offset = this.#words[word]! + this.#words[word + 1]! * 0x1_0000_0000 - this.#address
    if (!(offset >= 0 && offset < this.#octets.length)) throw new RangeError('a pointer that leads outside')
    return offset
  }
}
