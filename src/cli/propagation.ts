/** `peerdns propagation NAME`. */
import type { Command } from 'commander'
import type { PropagationJson, PropagationStepJson } from '../admin/api-types.ts'
import { AdminClient } from './admin-client.ts'
import { answerIsNo, type CommandIo } from './command-io.ts'
import { print, withAdmin, withExamples, withOutput, type ListOptions } from './shared-options.ts'
import { elapsed, printable, table } from './table.ts'

export function addPropagation(program: Command, io: CommandIo): void {
  const propagation = program
    .command('propagation')
    .description('the last changes of a name: when each happened, when it was here, and who was told the old meanwhile')
    .argument('<name>', 'a name, whole')
  withExamples(
    withAdmin(withOutput(propagation)),
    'propagation api.backend.svc.cluster.local',
    'propagation api.backend.svc.cluster.local -o json'
  ).action(async (name: string, options: ListOptions) => {
    const answer = await AdminClient.from(options.admin, io).get<PropagationJson>('/propagation', { name })
    print(io, options, answer, propagationText)
    if (answer.changes.length === 0) throw answerIsNo(`nothing is known of a change of ${printable(answer.name)}`)
  })
}

const head = ['HAPPENED AT', 'WHERE', 'TYPES', 'CLOCKS', 'STORED', 'HERE', 'STALE ANSWERS', 'LAST STALE', 'FIRST RIGHT']

const propagationText = ({ changes }: PropagationJson): string =>
  changes.length === 0
    ? ''
    : table(head, changes.map(changeRow)) + (changes.some(({ cameWhole }) => cameWhole) ? wholeNote : '')

const wholeNote = "<= came with the whole zone: it happened at this time, the zone's last change, or before\n"

const changeRow = (change: PropagationStepJson): (string | null)[] => [
  `${change.cameWhole ? '<= ' : ''}${change.originAt}`,
  change.peer ?? 'own zone',
  change.types.join(',') || 'all',
  change.peer === null ? null : offsetText(change.clockOffsetMs),
  elapsed(change.storeMs),
  elapsed(change.hereMs),
  change.peer === null ? null : String(change.staleAnswers),
  elapsed(change.staleMs),
  elapsed(change.firstAnswerMs)
]

/** How far the other clock is ahead. */
const offsetText = (offsetMs: number | null): string | null =>
  offsetMs === null ? null : `${offsetMs < 0 ? '-' : '+'}${elapsed(Math.abs(offsetMs))}`
