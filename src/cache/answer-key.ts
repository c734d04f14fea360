/**
 * What an answer is the answer to, as one string.
 *
 * The name comes first, in its wire form, which tells where it ends; then type, class and flags, one character an
 * octet; then the target. So no two questions share a key, a key takes one concatenation, and it can be read back: an
 * entry need not hold its question a second time.
 */
import type { DomainName } from '../wire/name.ts'

export type AnswerKey = string

/** A question as it is asked at one target: answers of two targets never mix. */
export type KeyQuestion = Readonly<{
  target: string
  name: DomainName
  type: number
  class: number
  dnssecOk: boolean
  checkingDisabled: boolean
}>

const dnssecOkFlag = 1
const checkingDisabledFlag = 2

export function answerKey(question: KeyQuestion): AnswerKey {
  const { name, type, target } = question
  const flags = (question.dnssecOk ? dnssecOkFlag : 0) | (question.checkingDisabled ? checkingDisabledFlag : 0)
  // Octets, not one character of 16 bits: that would make the string of two octets a character for types above 255.
  return (
    name + String.fromCharCode(type >>> 8, type & 0xff, question.class >>> 8, question.class & 0xff, flags) + target
  )
}

/** The question that a key was made from. */
export function questionOf(key: AnswerKey): KeyQuestion {
  let at = 0
  while (key.charCodeAt(at) !== 0) at += key.charCodeAt(at) + 1
  const name = key.slice(0, at + 1) as DomainName
  const u16 = (offset: number): number => (key.charCodeAt(at + offset) << 8) | key.charCodeAt(at + offset + 1)
  const flags = key.charCodeAt(at + 5)
  return {
    target: key.slice(at + 6),
    name,
    type: u16(1),
    class: u16(3),
    dnssecOk: (flags & dnssecOkFlag) !== 0,
    checkingDisabled: (flags & checkingDisabledFlag) !== 0
  }
}
