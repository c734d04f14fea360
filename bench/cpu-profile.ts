/** What `node --cpu-prof` wrote, as a list of functions and what they cost. */

type CallFrame = Readonly<{ functionName: string; url: string; lineNumber: number }>
type ProfileNode = Readonly<{ id: number; callFrame: CallFrame; children?: readonly number[] }>

export type CpuProfile = Readonly<{
  nodes: readonly ProfileNode[]
  /** The node that ran at each sample, and the microseconds since the sample before. */
  samples: readonly number[]
  timeDeltas: readonly number[]
  /** Monotonic time, in microseconds. */
  startTime: number
}>

/** A part of the profile, in microseconds of the same clock. */
export type ProfileWindow = Readonly<{ from: number; to: number }>

export type FunctionCost = Readonly<{
  name: string
  /** `src/wire/query.ts:40`, `node:dgram:600`, or empty for what is no JavaScript. */
  where: string
  /** Shares of the time in which the process was not idle: in the function itself, and with all that it called. */
  selfShare: number
  totalShare: number
}>

const idle = new Set(['(idle)', '(root)'])

/** Functions by their own cost, dearest first. @param root paths below it are shown relative to it */
export function costsOf(profile: CpuProfile, root: string, window: ProfileWindow): FunctionCost[] {
  const selfByNode = selfCosts(profile, window)
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
  const self = new Map<string, number>()
  const total = new Map<string, number>()
  let busy = 0

  /** @param open functions that are being counted already, so that recursion counts once */
  const walk = (id: number, open: ReadonlySet<string>): number => {
    const { callFrame, children = [] } = nodes.get(id)!
    if (callFrame.functionName === '(idle)') return 0
    const key = keyOf(callFrame, root)
    const own = idle.has(callFrame.functionName) ? 0 : (selfByNode.get(id) ?? 0)
    const inner = new Set(open).add(key)
    const all = children.reduce((sum, child) => sum + walk(child, inner), own)
    busy += own
    self.set(key, (self.get(key) ?? 0) + own)
    if (!open.has(key)) total.set(key, (total.get(key) ?? 0) + all)
    return all
  }
  const first = profile.nodes[0]
  if (first !== undefined) walk(first.id, new Set())

  return Array.from(self, ([key, microseconds]) => {
    const [name = '', where = ''] = key.split('\t')
    return { name, where, selfShare: microseconds / busy, totalShare: total.get(key)! / busy }
  })
    .filter(({ selfShare }) => selfShare > 0)
    .sort((a, b) => b.selfShare - a.selfShare)
}

function selfCosts({ samples, timeDeltas, startTime }: CpuProfile, { from, to }: ProfileWindow): Map<number, number> {
  const costs = new Map<number, number>()
  let now = startTime
  for (const [at, node] of samples.entries()) {
    const delta = timeDeltas[at]!
    now += delta
    if (now >= from && now <= to) costs.set(node, (costs.get(node) ?? 0) + delta)
  }
  return costs
}

/** The same by where the code is from: `src/wire`, `node:dgram`, `node_modules/lru-cache`. Dearest first. */
export function costsByPart(costs: readonly FunctionCost[]): { part: string; share: number }[] {
  const parts = new Map<string, number>()
  for (const { name, where, selfShare } of costs) {
    const part = partOf(name, where)
    parts.set(part, (parts.get(part) ?? 0) + selfShare)
  }
  return Array.from(parts, ([part, share]) => ({ part, share })).sort((a, b) => b.share - a.share)
}

/**
 * What has no file is Node in C++: `(program)` mostly reads sockets and calls back, the rest are built-in functions.
 */
function partOf(name: string, where: string): string {
  if (where === '') return name.startsWith('(') ? name : '(built in)'
  const path = where.slice(0, where.lastIndexOf(':'))
  return path.startsWith('node:') ? path : path.split('/').slice(0, 2).join('/')
}

function keyOf({ functionName, url, lineNumber }: CallFrame, root: string): string {
  const path = url.replace(`file://${root}/`, '')
  return `${functionName === '' ? '(anonymous)' : functionName}\t${path === '' ? '' : `${path}:${lineNumber + 1}`}`
}
