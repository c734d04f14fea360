/** What can go wrong with a request to the API server, as one typed error. */

/**
 * `status`: it answered with another status than 200, or a watch brought an ERROR. `network`: no connection, or a
 * broken one. `timeout`: it is silent. `credentials`: ours cannot be read or made. `format`: it sent what is no answer.
 * `history`: its resourceVersions went backwards. `cut`: we ended the request ourselves.
 */
export type ApiErrorKind = 'status' | 'network' | 'timeout' | 'credentials' | 'format' | 'history' | 'cut'

export class ApiError extends Error {
  readonly kind: ApiErrorKind
  /** The HTTP status, or the code of an ERROR event; 0 where there is none. */
  readonly status: number
  /** The machine-readable reason of a Status object (`Expired`, `NotFound`); may be empty. */
  readonly reason: string
  /** When the API server wants to be asked again; null where it does not say. */
  readonly retryAfterSeconds: number | null

  constructor(
    kind: ApiErrorKind,
    message: string,
    more: { status?: number; reason?: string; retryAfter?: string } = {}
  ) {
    super(message)
    this.name = 'ApiError'
    this.kind = kind
    this.status = more.status ?? 0
    this.reason = more.reason ?? ''
    // The other form of the header, a date, is not used by API servers.
    this.retryAfterSeconds = /^\d{1,9}$/.test(more.retryAfter ?? '') ? Number(more.retryAfter) : null
  }

  /** The history that we ask for is gone: everything has to be listed again. */
  get isExpired(): boolean {
    return this.kind === 'status' && (this.status === 410 || this.reason === 'Expired' || this.reason === 'Gone')
  }

  /** We know a later state than the API server does: its storage has been emptied or rolled back. */
  get isFromTheFuture(): boolean {
    return this.kind === 'status' && /too large resource version/i.test(this.message)
  }
}

/** The error for a Status object, as it comes with an error or in an ERROR event. */
export function errorOfStatus(raw: unknown, status: number, retryAfter?: string): ApiError {
  const fields = typeof raw === 'object' && raw !== null ? (raw as Record<string, unknown>) : {}
  const { message, reason, code, details } = fields
  const text = typeof message === 'string' ? message.slice(0, 500) : ''
  const seconds = (details as { retryAfterSeconds?: unknown } | null | undefined)?.retryAfterSeconds
  const wait = retryAfter ?? (typeof seconds === 'number' ? String(seconds) : undefined)
  const ownStatus = status !== 0 ? status : typeof code === 'number' ? code : 0
  return new ApiError('status', `${ownStatus}${text === '' ? '' : `: ${text}`}`, {
    status: ownStatus,
    reason: typeof reason === 'string' ? reason : '',
    ...(wait === undefined ? {} : { retryAfter: wait })
  })
}

/** Any thrown value as an ApiError; what is none already comes from the network. */
export function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown
  const { code, message } = thrown as { code?: unknown; message?: unknown }
  const text = typeof message === 'string' && message !== '' ? message : String(code ?? thrown)
  return new ApiError('network', typeof code === 'string' && !text.includes(code) ? `${text} (${code})` : text)
}
