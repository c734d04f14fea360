/**
 * Thousands of questions from the names that there are, and from those changed by chance; the same for the same seed.
 */
import type { Question } from './live-client.ts'

const types = ['A', 'AAAA', 'SRV', 'TXT', 'CNAME', 'PTR', 'NS', 'SOA', 'MX', 'ANY']

/** Labels that mean something somewhere, or only look like it. */
const vocabulary = [
  'svc', 'pod', 'cluster', 'clusterset', 'local', 'odd', 'shop', 'backend', 'nothing-in-it', 'nowhere', 'dns', 'ns',
  'dns-version', '_http', '_tcp', '_udp', '_sctp', '_dns', 'http', 'tcp', '_', '__http', '_http_', 'peers', 'peers-0',
  'far', 'far-0', 'east', 'west', 'one', 'twin', 'a', 'x', '-', 'x-', '0', '10-0-0-1', '10-0-50-1', '10-0-51-4',
  '10-0-0-256', '10-0-0', '010-0-0-1', '10-0-0-1-', 'fd00--1', 'fd00-a--50-1', '--1', '1--', 'fe80--1-2', '*', 'any',
  '_any', 'example', 'com', 'in-addr', 'arpa', '0'.repeat(63)
] // prettier-ignore

/** Numbers from 0 to below 1 that look like chance (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }
}

/** Every name with every type, then `mutants` changed ones, without repetition. */
export function questionsOf(names: readonly string[], mutants: number, seed: number): Question[] {
  const random = seededRandom(seed)
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!
  const questions = names.flatMap((name) => types.map((type) => ({ name, type })))
  const known = new Set(questions.map(({ name, type }) => `${name} ${type}`))
  while (known.size < names.length * types.length + mutants) {
    let name = pick(names)
    const times = 1 + Math.floor(random() * 2)
    for (let time = 0; time < times; time++) name = changed(name, random, pick)
    const type = random() < 0.6 ? pick(['A', 'AAAA', 'SRV']) : pick(types)
    if (name === '' || name.length > 253 || known.has(`${name} ${type}`)) continue
    known.add(`${name} ${type}`)
    questions.push({ name, type })
  }
  return questions
}

function changed(name: string, random: () => number, pick: <T>(from: readonly T[]) => T): string {
  const labels = name.split('.')
  const at = Math.floor(random() * labels.length)
  // Names are decided at their front: most changes are there.
  const front = Math.min(labels.length - 1, Math.floor(random() * random() * labels.length))
  switch (Math.floor(random() * 8)) {
    case 0:
      return Array.from(name, (letter) => (random() < 0.5 ? letter.toUpperCase() : letter)).join('')
    case 1:
      return labels.toSpliced(front, 1).join('.')
    case 2:
      return labels.toSpliced(front, 0, pick(vocabulary)).join('.')
    case 3:
      return [pick(vocabulary), ...labels].join('.')
    case 4:
      return labels.with(at, pick(vocabulary)).join('.')
    case 5:
      return labels
        .with(front, labels[front]!.startsWith('_') ? labels[front]!.slice(1) : `_${labels[front]}`)
        .join('.')
    case 6:
      return labels.toSpliced(front, 0, labels[at]!).join('.')
    default:
      // Another digit or letter: a neighbouring address, a service that is not there.
      return labels
        .with(
          front,
          labels[front]!.replace(/[a-z0-9]$/, (last) => (/\d/.test(last) ? String((Number(last) + 1) % 10) : 'q'))
        )
        .join('.')
  }
}
