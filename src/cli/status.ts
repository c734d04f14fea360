/** `peerdns status`: whether the server is ready, and what it serves, on one screen. */
import type { Command } from 'commander'
import type { StatusJson, ZonesJson } from '../admin/api-types.ts'
import { problemToText } from '../config/problem.ts'
import { AdminClient } from './admin-client.ts'
import { answerIsNo, type CommandIo } from './command-io.ts'
import { print, withAdmin, withExamples, withOutput, type ListOptions } from './shared-options.ts'
import { counted, elapsed, fields, percent, printable, table } from './table.ts'

export function addStatus(program: Command, io: CommandIo): void {
  const status = program
    .command('status')
    .description('what a running server is, serves and has done; exit code 1 while it is not ready')
  withExamples(withAdmin(withOutput(status)), 'status', 'status --admin http://127.0.0.1:9302').action(
    async (options: ListOptions) => {
      const client = AdminClient.from(options.admin, io)
      const [answer, { zones }] = await Promise.all([
        client.get<StatusJson>('/status'),
        client.get<ZonesJson>('/zones')
      ])
      print(io, options, { ...answer, zones }, (it) => `${statusText(it)}\n${zonesText({ zones: it.zones })}`)
      if (!answer.isReady) throw answerIsNo(`not ready: ${missing(answer)}`)
    }
  )
}

const missing = ({ conditions }: Pick<StatusJson, 'conditions'>): string =>
  conditions
    .filter(({ isMet }) => !isMet)
    .map(({ name, detail }) => `${name} (${detail})`)
    .join(', ')

type Shown = Omit<StatusJson, 'zones'> & ZonesJson

function statusText(status: Shown): string {
  const { source, cache, queries, config, zones } = status
  const lookUps = cache.hits + cache.misses
  const objects =
    source.kind === 'mirror'
      ? zones.filter(({ peer }) => peer === null).map(({ zone, serial }) => `${zone} ${serial}`)
      : Object.entries(source.objects).map(([kind, count]) => `${count} ${kind}`)
  const lastSign =
    source.lastSignOfLifeAgeMs === null ? 'never heard of' : `heard of ${elapsed(source.lastSignOfLifeAgeMs)} ago`
  return fields([
    ['cluster', `${status.cluster}${status.region === '' ? '' : ` in ${status.region}`}`],
    ['version', `${status.version}, up ${elapsed(status.uptimeMs)}`],
    ['ready', status.isReady ? 'yes' : `no: ${missing(status)}`],
    ['DNS', status.dnsAddresses.join(', ')],
    ['source', `${source.kind}: ${objects.join(', ') || 'nothing'}; ${lastSign}; ${source.problemsTotal} problems`],
    ['config', `${config.file}; ${counted(config.reloadsTaken, 'reload')} taken, ${config.reloadsRefused} refused`],
    ...config.problems.map((problem) => ['', printable(problemToText(problem))] as const),
    ['peers', status.peers.map(({ name, health }) => `${name} ${health}`).join(', ') || 'none'],
    ...status.mirrors.map((mirror, index) => [index === 0 ? 'mirrors' : '', mirrorText(mirror)] as const),
    ['threads', threadsText(status)],
    ['queries', `${queries.udp} UDP, ${queries.tcp} TCP, ${queries.misses} had to wait, ${queries.inFlight} do now`],
    [
      'cache',
      `${counted(cache.entries, 'answer')}, ${percent(lookUps === 0 ? null : cache.hits / lookUps) ?? '-'} of look-ups hit`
    ]
  ])
}

function threadsText({ workers }: Pick<StatusJson, 'workers'>): string {
  const { wanted, reading, whyNone, answered, forwarded } = workers
  if (wanted === 0) return 'one for everything'
  if (whyNone !== null) return `one for everything: ${printable(whyNone)}`
  const share = percent(answered + forwarded === 0 ? null : answered / (answered + forwarded))
  const missing = reading < wanted ? ` of ${wanted}` : ''
  return `${reading}${missing} answer from memory${share === null ? '' : ` (${share} of UDP)`}, one does all else`
}

function mirrorText({ peer, zone, state, serial, ageMs, lastFault }: StatusJson['mirrors'][number]): string {
  const why = lastFault === null ? '' : ` (${printable(lastFault)})`
  return `${peer} ${zone} ${state}${why}${serial === null ? '' : `, serial ${serial}, age ${elapsed(ageMs)}`}`
}

const zonesText = ({ zones }: ZonesJson): string =>
  table(
    ['ZONE', 'OF', 'SERIAL', 'RRSETS', 'NAMES', 'LAST CHANGE'],
    zones.map(({ zone, peer, serial, rrsets, names, lastChangeAgeMs }) => [
      zone,
      peer ?? 'us',
      String(serial),
      String(rrsets),
      String(names),
      `${elapsed(lastChangeAgeMs)} ago`
    ])
  )
