/** What a reload changed, for the list of events. */
import type { Config } from '../config/config.ts'
import { NetworkSet } from '../base/network.ts'
import type { NewEvent } from '../operator/event-ring.ts'

/** More changed policies and peers than this are told as a number. */
const maxNamed = 20

type Named = Readonly<{ name: string }>

/** One event for each policy and peer that is not what it was, and one for the reload as a whole. */
export function reloadEvents(before: Config, after: Config): NewEvent[] {
  const changes = [
    ...changesOf(before.policies, after.policies).map(([name, what]) => ({
      policy: name,
      text: `policy ${name} ${what}`
    })),
    ...changesOf(before.peers, after.peers).map(([name, what]) => ({ peer: name, text: `peer ${name} ${what}` }))
  ]
  const named: NewEvent[] = changes.length > maxNamed ? [] : changes.map((change) => ({ kind: 'reload', ...change }))
  const hash = after.hash.slice(0, 12)
  const count = changes.length === 1 ? '1 policy or peer' : `${changes.length || 'no'} policies and peers`
  const text = `configuration ${hash} is in use: ${count} changed`
  return [{ kind: 'reload', text }, ...named]
}

function changesOf<Item extends Named>(
  before: readonly Item[],
  after: readonly Item[]
): [name: string, what: string][] {
  const known = new Map(before.map((item) => [item.name, printOf(item)]))
  const changes: [string, string][] = []
  for (const item of after) {
    const print = known.get(item.name)
    if (print === undefined) changes.push([item.name, 'added'])
    else if (print !== printOf(item)) changes.push([item.name, 'changed'])
    known.delete(item.name)
  }
  for (const name of known.keys()) changes.push([name, 'removed'])
  return changes
}

/** Equal for equal settings, wherever they stand in the file. */
const printOf = (item: object): string =>
  JSON.stringify(item, (key, value: unknown) => {
    if (key === 'position') return undefined
    if (value instanceof NetworkSet) return value.networks.map(({ text }) => text)
    return value instanceof Set ? [...value] : value
  })

/** What is bound at the start and stays so. */
export const addressesOf = ({ listen, admin, observe, threads, batching, takeover }: Config): string =>
  JSON.stringify([listen, admin, observe, threads, batching, takeover])
