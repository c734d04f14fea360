/** What is asked a second time is known, and little else. */
import { test } from 'tap'
import { AskedBefore, questionsEach } from '../../../src/pipeline/ready/asked-before.ts'

/** Numbers that are spread as hashes are. */
const hashOf = (number: number): number => {
  let hash = Math.imul(number + 1, 0x85eb_ca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35)
  return hash ^ (hash >>> 16)
}

void test('AskedBefore knows the last questions, however many were asked before', async (t) => {
  const asked = new AskedBefore()
  let known = 0
  for (let number = 0; number < questionsEach * 3; number++) if (asked.note(hashOf(number))) known++
  t.ok(known < questionsEach * 3 * 0.03, `${known} were taken for known that were new`)
  const last = Array.from({ length: questionsEach }, (_, at) => questionsEach * 3 - 1 - at)
  t.ok(last.every((number) => asked.note(hashOf(number))))
})

void test('AskedBefore knows as many questions as are asked in turn', async (t) => {
  const asked = new AskedBefore()
  const questions = Array.from({ length: questionsEach }, (_, at) => hashOf(at))
  for (const hash of questions) asked.note(hash)
  for (let round = 0; round < 3; round++) t.ok(questions.every((hash) => asked.note(hash)))
})

void test('AskedBefore forgets', async (t) => {
  const asked = new AskedBefore()
  asked.note(hashOf(-7))
  for (let number = 0; number < questionsEach * 2.2; number++) asked.note(hashOf(number))
  t.notOk(asked.note(hashOf(-7)))
})
