/**
 * Which of two resourceVersions is later. They are revisions of the storage and grow with every change anywhere in the
 * cluster; that one goes backwards means that the storage is another one.
 */

/** Below 0: `one` is earlier. 0 also where they cannot be compared. */
export function compareResourceVersions(one: string, other: string): number {
  if (!/^\d{1,30}$/.test(one) || !/^\d{1,30}$/.test(other)) return 0
  const [left, right] = [BigInt(one), BigInt(other)]
  return left < right ? -1 : left > right ? 1 : 0
}
