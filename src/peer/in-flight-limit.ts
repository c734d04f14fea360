/** Counts what is in flight against a bound; one instance may be shared by all peers. */
export class InFlightLimit {
  readonly max: number
  current = 0
  /** How often there was no room. */
  refused = 0

  constructor(max: number) {
    this.max = max
  }

  /** Takes a place, which must be given back by leave(); false where there is none. */
  tryEnter(): boolean {
    if (this.current >= this.max) {
      this.refused++
      return false
    }
    this.current++
    return true
  }

  leave(): void {
    this.current--
  }
}
