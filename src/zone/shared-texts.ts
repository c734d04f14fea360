/** Texts that many things have in common, held once each for as long as somebody has them. */

export type SharedText = { readonly text: string; uses: number }

export class SharedTexts {
  readonly #texts = new Map<string, SharedText>()

  get size(): number {
    return this.#texts.size
  }

  /** To be given back by each who took it. */
  take(text: string): SharedText {
    let shared = this.#texts.get(text)
    if (shared === undefined) this.#texts.set(text, (shared = { text, uses: 0 }))
    shared.uses += 1
    return shared
  }

  giveBack(shared: SharedText): void {
    shared.uses -= 1
    if (shared.uses === 0) this.#texts.delete(shared.text)
  }
}
