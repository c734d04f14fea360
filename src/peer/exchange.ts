/** One question sent to one server over one transport: what udp-ports and tcp-pool both give. */

export type ExchangeEnd =
  | Readonly<{ kind: 'response'; octets: Uint8Array }>
  | Readonly<{ kind: 'failed'; outcome: 'network' | 'nonsense' | 'overload'; detail: string }>

/**
 * Hears how an exchange ended: once, never before the call that began it has returned, and not at all once it is
 * cancelled. It is called by whoever reads the socket, and throws nothing.
 */
export type OnExchangeEnd = (end: ExchangeEnd) => void

/** An exchange knows no deadline: whoever began it waits as long as it likes and then cancels it. */
export type Exchange = Readonly<{
  /**
   * Sends the same octets once more, from the same port: a second question with another id would double the chances of
   * who guesses (RFC 5452 §5). False where that makes no sense, since the transport does it by itself.
   */
  resend(): boolean
  /** Silence has lasted too long: a connection that has brought nothing since gets no more questions. */
  markSlow(): void
  /** Stops waiting. Calling it again, or after the end, does nothing. */
  cancel(): void
}>

export const failedExchange = (outcome: 'network' | 'nonsense' | 'overload', detail: string): ExchangeEnd => ({
  kind: 'failed',
  outcome,
  detail
})

/** A short word for a socket's error: its code where it has one. */
export const errorText = (error: Error): string =>
  'code' in error && typeof error.code === 'string' ? error.code : error.message
