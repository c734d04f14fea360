/** The known word that a misspelt one was meant to be. */

/** Edits that one word may be away from another one and still be suggested: a third of its letters. */
const maxDistance = (word: string): number => Math.max(1, Math.floor(word.length / 3))

/** Longer words are not compared: nobody misspells a key of that length, and the work grows with its square. */
const maxComparedLength = 64

/**
 * Edits (insert, delete, replace, exchange of two neighbours) that make one word of the other, case left out.
 */
function editDistance(one: string, other: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let i = 1; i <= one.length; i++) {
    const row = [i]
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1]
      let least = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (isSame ? 0 : 1))
      const isExchange = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      if (isExchange) least = Math.min(least, beforeLast[j - 2]! + 1)
      row.push(least)
    }
    beforeLast = last
    last = row
  }
  return last[other.length]!
}

/** `max-ttl`, `max_ttl` and `maxTTL` are all `maxttl`. */
const plain = (word: string): string => word.toLowerCase().replaceAll(/[-_ ]/g, '')

/** The most similar one of the known words, or null where none is similar enough to be meant. */
export function nearestWord(word: string, known: readonly string[]): string | null {
  if (word.length > maxComparedLength) return null
  let nearest: string | null = null
  let least = Number.POSITIVE_INFINITY
  for (const candidate of known) {
    const distance = editDistance(plain(word), plain(candidate))
    const isNear = distance <= maxDistance(candidate) || isBeginning(word, candidate)
    if (isNear && distance < least) [nearest, least] = [candidate, distance]
  }
  return nearest
}

/** `server` for `servers`, `neg` for nothing: at least four letters that one word begins or ends with. */
function isBeginning(word: string, candidate: string): boolean {
  const [shorter, longer] = [plain(word), plain(candidate)].sort((a, b) => a.length - b.length) as [string, string]
  return shorter.length >= 4 && (longer.startsWith(shorter) || longer.endsWith(shorter))
}
