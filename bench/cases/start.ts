/**
 * From executing the program to its first right answer, with what two real clusters hold.
 *
 * CoreDNS does not read manifests, so it gets a zone file with the very records that peerdns makes of them.
 */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseAllDocuments } from 'yaml'
import type { RecordsJson } from '../../src/admin/api-types.ts'
import { RCODE } from '../../src/wire/iana.ts'
import { Asker, isAsExpected } from '../ask.ts'
import { startChild } from '../children.ts'
import { cpuSecondsBetween, readCpu } from '../process-usage.ts'
import { hostNameOf, zone, zoneFileOf, type BenchQuestion } from '../dataset.ts'
import type { Place, ServerPlan } from '../rivals/server-plan.ts'
import { spreadOf, type Spread } from '../statistics.ts'
import type { Workspace } from '../workspace.ts'

const expected = { rcode: RCODE.NOERROR, answers: 1 }
const giveUpAfterMs = 20_000
const nothingUsed = { tickSeconds: 0, threadNanoseconds: new Map<string, number>() }

/** `cpuMs`: what the process itself used until then; other programs on the machine lengthen `tookMs` more than this. */
export type StartRow = Readonly<{
  title: string
  setUp: string
  input: string
  tookMs: Spread | null
  cpuMs: Spread | null
}>

export type StartPlanners = Readonly<{
  peerdns: (place: Place, manifestFile: string) => ServerPlan
  /** A start that finds nothing which an earlier one has compiled. */
  peerdnsAtFirst: (place: Place, manifestFile: string) => ServerPlan
  /** Null: not on this machine. */
  coredns: ((place: Place, zoneFile: string) => ServerPlan) | null
  echo: (place: Place) => ServerPlan
}>

type Starter = { input: string; plan: ServerPlan; question: BenchQuestion; tookMs: number[]; cpuMs: number[] }

export async function measureStart(
  workspace: Workspace,
  manifestFiles: readonly string[],
  planners: StartPlanners,
  starts: number
): Promise<StartRow[]> {
  const starters: Starter[] = []
  for (const file of manifestFiles) {
    const input = basename(file)
    const question: BenchQuestion = { name: lastClusterIpHost(file), type: 'A' }
    const place = await workspace.place()
    const plan = planners.peerdns(place, file)
    starters.push({ input, plan, question, tookMs: [], cpuMs: [] })
    const atFirst = planners.peerdnsAtFirst(await workspace.place(), file)
    starters.push({ input, plan: atFirst, question, tookMs: [], cpuMs: [] })
    if (planners.coredns === null) continue
    const records = await recordsFromServer(workspace, plan, place.adminPort, question)
    const zonePlan = planners.coredns(await workspace.place(), zoneFileOf(records, 5))
    starters.push({ input: `zone file, ${records.length} records`, plan: zonePlan, question, tookMs: [], cpuMs: [] })
  }
  const echo = planners.echo(await workspace.place())
  starters.push({ input: 'none', plan: echo, question: { name: zone, type: 'A' }, tookMs: [], cpuMs: [] })
  // Uncounted: files are read from disk, and code is compiled that later starts find.
  for (const starter of starters) await startOnce(workspace, { ...starter, tookMs: [], cpuMs: [] })
  for (let round = 1; round <= starts; round++) {
    workspace.say(`start ${round} of ${starts}`)
    for (const starter of starters) await startOnce(workspace, starter)
  }
  return starters.map(({ input, plan: { title, setUp }, tookMs, cpuMs }) => ({
    title,
    setUp,
    input,
    tookMs: spreadOf(tookMs),
    cpuMs: spreadOf(cpuMs)
  }))
}

/** The last Service with an address: it is there only when the whole file has been read. */
function lastClusterIpHost(file: string): string {
  type Item = { kind: string; metadata: { name: string; namespace: string }; spec?: { clusterIP?: string } }
  const documents = parseAllDocuments(readFileSync(file, 'utf8'))
  const items = documents.flatMap((document) => (document.toJS() as { items: Item[] }).items)
  const service = items.findLast(({ kind, spec }) => kind === 'Service' && /^\d/.test(spec?.clusterIP ?? ''))
  if (service === undefined) throw new Error(`${file} has no Service with an address`)
  return hostNameOf(service.metadata)
}

/** What peerdns makes of the manifests, without its own SOA and NS, which every zone file has. */
async function recordsFromServer(
  workspace: Workspace,
  plan: ServerPlan,
  adminPort: number,
  question: BenchQuestion
): Promise<{ owner: string; type: string; data: string }[]> {
  const child = await workspace.start(plan, { question, expected })
  const url = `http://127.0.0.1:${adminPort}/api/v1/records?zone=${zone}&limit=10000`
  const { records } = (await (await fetch(url)).json()) as RecordsJson
  await child.stop()
  const nameServer = `ns.dns.${zone}`
  return records
    .map(({ name, type, data }) => ({ owner: name.replace(/\.$/, ''), type, data }))
    .filter(({ owner, type }) => type !== 'SOA' && type !== 'NS' && owner !== nameServer)
}

/** @throws Error when no right answer comes. */
async function startOnce(workspace: Workspace, { plan, question, tookMs, cpuMs }: Starter): Promise<void> {
  await workspace.untilQuiet()
  const asker = await Asker.to(plan.port)
  const logFile = join(workspace.folder, 'start.log')
  const startedAtMs = performance.now()
  const child = await startChild(plan.command, plan.args, {
    core: workspace.cores.server,
    cwd: workspace.folder,
    logFile
  })
  try {
    while (performance.now() - startedAtMs < giveUpAfterMs && !child.hasEnded()) {
      const answer = await asker.ask(question, 200)
      const isRight = answer !== null && (plan.id === 'echo' || isAsExpected(answer.message, expected))
      if (isRight) {
        tookMs.push(performance.now() - startedAtMs)
        cpuMs.push(cpuSecondsBetween(nothingUsed, readCpu(child.pid)) * 1000)
        return
      }
      await sleep(1)
    }
    throw new Error(`${plan.title} did not answer ${question.name} after its start`)
  } finally {
    asker.close()
    await child.stop()
  }
}
