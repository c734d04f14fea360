/** Which handler a method and a path belong to. Few routes, so they are tried one by one. */
import type { Handler, HttpMethod } from './reply.ts'

export type Route = Readonly<{
  method: HttpMethod
  /** Segments between slashes; `:name` takes any one segment. */
  path: string
  handler: Handler
}>

export type RouteMatch =
  | Readonly<{ kind: 'found'; handler: Handler; params: Readonly<Record<string, string>> }>
  /** The path exists, with these methods. */
  | Readonly<{ kind: 'wrong-method'; allow: readonly string[] }>
  | Readonly<{ kind: 'unknown' }>

export class Router {
  readonly #routes: readonly Readonly<{ route: Route; segments: readonly string[] }>[]

  constructor(routes: readonly Route[]) {
    this.#routes = routes.map((route) => ({ route, segments: route.path.split('/') }))
  }

  /** HEAD is answered as GET; leaving out the body is the listener's part. */
  match(method: string, path: string): RouteMatch {
    const segments = path.split('/')
    const allow = new Set<string>()
    for (const { route, segments: wanted } of this.#routes) {
      const params = paramsOf(wanted, segments)
      if (params === null) continue
      if (route.method === (method === 'HEAD' ? 'GET' : method))
        return { kind: 'found', handler: route.handler, params }
      allow.add(route.method)
      if (route.method === 'GET') allow.add('HEAD')
    }
    return allow.size === 0 ? { kind: 'unknown' } : { kind: 'wrong-method', allow: [...allow] }
  }
}

/** The named segments, or null where the path is another one. */
function paramsOf(wanted: readonly string[], segments: readonly string[]): Record<string, string> | null {
  if (wanted.length !== segments.length) return null
  const params: Record<string, string> = {}
  for (const [at, segment] of wanted.entries()) {
    const found = segments[at]!
    if (!segment.startsWith(':')) {
      if (segment !== found) return null
      continue
    }
    const value = decoded(found)
    if (value === null || value === '') return null
    params[segment.slice(1)] = value
  }
  return params
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment)
  } catch (error) {
    if (error instanceof URIError) return null
    throw error
  }
}
