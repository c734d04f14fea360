/** What a route of the admin side gets and gives: plain values, so that routes are tested without a socket. */

export type HttpMethod = 'GET' | 'POST'

export type AdminRequest = Readonly<{
  /** Parts of the path that the route names: `:name`. */
  params: Readonly<Record<string, string>>
  query: URLSearchParams
  /** The parsed JSON of a POST; null without a body. */
  body: unknown
  /** Where the request came from. */
  clientAddress: string
}>

export type Reply = Readonly<{ status: number; contentType: string; body: string }>

export type Handler = (request: AdminRequest) => Reply | Promise<Reply>

export const jsonReply = (status: number, value: unknown): Reply => ({
  status,
  contentType: 'application/json; charset=utf-8',
  body: `${JSON.stringify(value)}\n`
})

export const textReply = (status: number, text: string): Reply => ({
  status,
  contentType: 'text/plain; charset=utf-8',
  body: text
})

/** Every refusal has this form. */
export const errorReply = (status: number, error: string): Reply => jsonReply(status, { error })
