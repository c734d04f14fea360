/** Asks the admin API of a running server. */
import type { ErrorJson } from '../admin/api-types.ts'
import { answerIsNo, wrongUse, type CommandIo } from './command-io.ts'
import { printable } from './table.ts'

export const defaultUrl = 'http://127.0.0.1:9154'
const timeoutMs = 10_000

export type Parameters = Readonly<Record<string, string | readonly string[] | undefined>>

export class AdminClient {
  readonly url: string
  readonly #isDefault: boolean
  readonly #timeoutMs: number

  private constructor(url: string, isDefault: boolean, timeoutMs: number) {
    this.url = url
    this.#isDefault = isDefault
    this.#timeoutMs = timeoutMs
  }

  /** `--admin` before PEERDNS_ADMIN before the default. */
  static from(option: string | undefined, io: CommandIo): AdminClient {
    const written = writtenAdminUrl(option, io)
    if (written === null) return new AdminClient(defaultUrl, true, timeoutMs)
    return new AdminClient(readUrl(written), false, timeoutMs)
  }

  /** The same server, for what can be done without where it does not answer soon. */
  withTimeout(ms: number): AdminClient {
    return new AdminClient(this.url, this.#isDefault, ms)
  }

  get<Answer>(path: string, parameters: Parameters = {}): Promise<Answer> {
    const query = new URLSearchParams()
    for (const [key, value] of Object.entries(parameters)) {
      for (const one of typeof value === 'string' ? [value] : (value ?? [])) query.append(key, one)
    }
    return this.#ask(`${path}${query.size === 0 ? '' : `?${query.toString()}`}`, {})
  }

  post<Answer>(path: string, body: unknown): Promise<Answer> {
    return this.#ask(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body)
    })
  }

  async #ask<Answer>(path: string, request: RequestInit): Promise<Answer> {
    let status: number
    let text: string
    try {
      const signal = AbortSignal.timeout(this.#timeoutMs)
      const response = await fetch(`${this.url}/api/v1${path}`, { ...request, redirect: 'error', signal })
      status = response.status
      text = await response.text()
    } catch (error) {
      throw answerIsNo(this.#unreachable(error))
    }
    const answer = parseJson(text)
    if (typeof answer === 'object' && answer !== null) {
      if (status === 200) return answer as Answer
      // `error` is missing where something else than a peerdns answers.
      const { error } = answer as Partial<ErrorJson>
      if (status === 400 && error !== undefined) throw wrongUse(printable(error))
      if (error !== undefined) throw answerIsNo(printable(error))
    }
    throw answerIsNo(`what answers at ${this.url} (status ${status}) is not the admin API of a peerdns`)
  }

  #unreachable(error: unknown): string {
    const how = this.#isDefault ? ' (the default)' : ''
    const hint = 'is `peerdns serve` running? Another place is set by --admin URL or PEERDNS_ADMIN'
    return `cannot reach the admin API at ${this.url}${how}: ${reasonOf(error, this.#timeoutMs)}; ${hint}`
  }
}

/** An URL as it was written, and where. */
type WrittenUrl = Readonly<{ what: string; text: string }>

/** `--admin` before PEERDNS_ADMIN; null where neither is there, or empty. */
export function writtenAdminUrl(option: string | undefined, { env }: CommandIo): WrittenUrl | null {
  const text = option ?? env['PEERDNS_ADMIN'] ?? ''
  return text === '' ? null : { what: option === undefined ? 'PEERDNS_ADMIN' : '--admin', text }
}

/** The URL without a slash at its end; `http://` may be left out. @throws CommandFailure */
export function readUrl({ what, text }: WrittenUrl): string {
  const url = URL.parse(text.includes('://') ? text : `http://${text}`)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw wrongUse(`${what}: \`${text}\` is not a URL like ${defaultUrl}`)
  }
  return url.href.replace(/\/$/, '')
}

/** fetch says only "fetch failed"; why, its cause tells. */
function reasonOf(error: unknown, timeoutMs: number): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return `no answer within ${timeoutMs / 1000} s`
  const { cause } = error
  if (cause instanceof AggregateError) return reasonOf(cause.errors[0], timeoutMs)
  if (cause instanceof Error) return 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.message
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return null
  }
}
