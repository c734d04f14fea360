/**
 * What must be true across options, beyond what each says for itself. Every check looks only at what was readable, so
 * that one mistake is told once, and none hides another one.
 */
import { checkAddresses } from './check-addresses.ts'
import { checkCluster } from './check-cluster.ts'
import { checkPolicies } from './check-policies.ts'
import { checkRecords } from './check-records.ts'
import { checkKeys } from './check-keys.ts'
import type { CheckOptions, FileDraft } from './file-draft.ts'
import { wordList } from './option.ts'
import { hasUnknownKey } from './read-draft.ts'

export function checkDraft(draft: FileDraft, options: CheckOptions): void {
  checkCluster(draft, options)
  checkRecords(draft, options)
  checkOverrides(draft, options)
  checkPeers(draft, options)
  checkKeys(draft, options)
  checkPolicies(draft, options)
  checkAddresses(draft, options)
}

const overrideKinds = ['file', 'configMap'] as const

function checkOverrides({ overrides, cluster }: FileDraft, { report }: CheckOptions): void {
  if (overrides === undefined || typeof overrides === 'string') return
  const given = overrideKinds.filter((kind) => Object.hasOwn(overrides, kind))
  const expected = `exactly one of ${wordList(overrideKinds)}`
  if (given.length === 0 && !hasUnknownKey(overrides))
    report({ path: ['overrides'], at: 'key', message: 'there is no place', expected })
  for (const kind of given.slice(1)) {
    report({ path: ['overrides', kind], at: 'key', message: `a second place beside \`${given[0]}\``, expected })
  }
  const source = cluster?.source
  if (
    given.length > 1 ||
    overrides.configMap === undefined ||
    source === undefined ||
    Object.hasOwn(source, 'kubernetes')
  )
    return
  const message = 'a ConfigMap needs an API server, which is only there with `source.kubernetes`'
  report({ path: ['overrides', 'configMap'], at: 'value', message, expected: '`file`, or another source' })
}

/** A probe that waits longer than this many probes take would never tell in time. */
const maxProbesWaiting = 10

function checkPeers(draft: FileDraft, { report, warn, isWritten }: CheckOptions): void {
  for (const [name, peer] of Object.entries(draft.peers ?? {})) {
    if (peer?.mirror === false && isWritten(['peers', name, 'lease'])) {
      warn({
        path: ['peers', name, 'lease'],
        at: 'key',
        message: 'without `mirror` there is nothing that `lease` is for'
      })
    }
    const hub = draft.cluster?.source?.mirror
    for (const [index, server] of (hub === undefined ? [] : (peer?.servers ?? [])).entries()) {
      if (server === undefined || hub?.some((of) => of?.host === server.host && of.port === server.port)) continue
      const message =
        'each node asks this peer itself; its questions stay in the cluster if the hub (`cluster.source.mirror`) is asked'
      warn({ path: ['peers', name, 'servers', index], at: 'value', message })
    }
    if (name === 'local') {
      const message = '`local` is this cluster itself, and no name for a peer'
      report({ path: ['peers', name], at: 'key', message })
    }
    const { every, timeout } = peer?.probe ?? {}
    if (every !== undefined && timeout !== undefined && timeout > every * maxProbesWaiting) {
      const message = `the timeout is more than ${maxProbesWaiting} times the ${every} ms of \`every\``
      report({ path: ['peers', name, 'probe', 'timeout'], at: 'value', message })
    }
  }
}
