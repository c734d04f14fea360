/**
 * The one state of each server of a peer that people are shown: probes and the doubt from clients' questions together.
 * What is told of it chains: each change begins with what the last one ended with.
 */
import type { Clock } from '../base/clock.ts'
import type { ServerHealth } from '../peer/server-table.ts'

type Shown = Readonly<{ health: ServerHealth; sinceMs: number }>

export class ShownHealth {
  readonly #clock: Clock
  readonly #shown = new Map<string, Shown>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Takes the state of a server, and forgets servers that are gone; the state before, or null where it is the same. */
  take(server: string, health: ServerHealth, servers: readonly string[]): ServerHealth | null {
    for (const other of this.#shown.keys()) if (!servers.includes(other)) this.#shown.delete(other)
    const before = this.#shown.get(server)?.health ?? 'unknown'
    if (before === health) return null
    this.#shown.set(server, { health, sinceMs: this.#clock.nowMs() })
    return before
  }

  /** For how long a server has been what it is, in milliseconds; null where it was never anything else. */
  heldForMs(server: string): number | null {
    const shown = this.#shown.get(server)
    return shown === undefined ? null : this.#clock.nowMs() - shown.sinceMs
  }
}
