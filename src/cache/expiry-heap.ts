/**
 * Items in the order in which they stop being of any use: a binary heap in which each item knows its place, so that
 * any of them can be taken out.
 */

/** `heapIndex` belongs to the heap while the item is in it. */
export type Expiring = { readonly deadAtMs: number; heapIndex: number }

export class ExpiryHeap<Item extends Expiring> {
  readonly #items: Item[] = []

  get size(): number {
    return this.#items.length
  }

  /** The item that dies first. */
  first(): Item | null {
    return this.#items[0] ?? null
  }

  add(item: Item): void {
    this.#items.push(item)
    this.#rise(item, this.#items.length - 1)
  }

  /** The item must be in the heap. */
  remove(item: Item): void {
    const last = this.#items.pop()!
    if (last === item) return
    // The last item fills the hole, and goes up or down from there.
    this.#rise(last, item.heapIndex)
    this.#sink(last, last.heapIndex)
  }

  #rise(item: Item, from: number): void {
    let at = from
    while (at > 0) {
      const parent = this.#items[(at - 1) >>> 1]!
      if (parent.deadAtMs <= item.deadAtMs) break
      this.#place(parent, at)
      at = (at - 1) >>> 1
    }
    this.#place(item, at)
  }

  #sink(item: Item, from: number): void {
    let at = from
    for (;;) {
      const left = this.#items[at * 2 + 1]
      if (left === undefined) break
      const right = this.#items[at * 2 + 2]
      const child = right !== undefined && right.deadAtMs < left.deadAtMs ? right : left
      if (item.deadAtMs <= child.deadAtMs) break
      const childAt = child.heapIndex
      this.#place(child, at)
      at = childAt
    }
    this.#place(item, at)
  }

  #place(item: Item, at: number): void {
    this.#items[at] = item
    item.heapIndex = at
  }
}
