/**
 * Serial numbers of a zone: 32 bits that wrap (RFC 1982), made from the time so that they also rise across restarts.
 */

/** One step of the wall clock in serials. A zone that changes more often than this for long runs ahead of the clock. */
export const serialStepMs = 50

const modulus = 2 ** 32
const half = 2 ** 31

/** Whether `serial` is later than `other`. RFC 1982 §3.2; two that are exactly 2^31 apart are in no order: false. */
export function isLaterSerial(serial: number, other: number): boolean {
  const distance = (serial - other + modulus) % modulus
  return distance > 0 && distance < half
}

/** The serial that the wall clock stands for; it wraps every 6.8 years. */
export const serialFromTime = (epochMs: number): number => Math.floor(epochMs / serialStepMs) % modulus

/**
 * The serial after `previous`: the clock's where that is later, else one more.
 *
 * So it strictly increases when the clock stands still or steps back too.
 */
export function nextSerial(previous: number, epochMs: number): number {
  const next = (previous + 1) % modulus
  const fromTime = serialFromTime(epochMs)
  return isLaterSerial(fromTime, next) ? fromTime : next
}
