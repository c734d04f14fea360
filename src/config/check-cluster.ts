/** Checks of the section `cluster`: its source and its zones. */
import { maxReverseZones } from '../base/limits.ts'
import type { Network } from '../base/network.ts'
import type { CheckOptions, FileDraft } from './file-draft.ts'
import { wordList } from './option.ts'
import { hasUnknownKey } from './read-draft.ts'

const sourceKinds = ['manifests', 'kubernetes', 'mirror'] as const

export function checkCluster(draft: FileDraft, { report }: CheckOptions): void {
  const { source, leases, zone, clustersetZone, reverse } = draft.cluster ?? {}
  if (source !== undefined) {
    const given = sourceKinds.filter((kind) => Object.hasOwn(source, kind))
    const expected = `exactly one of ${wordList(sourceKinds)}`
    const path = ['cluster', 'source']
    if (given.length === 0 && !hasUnknownKey(source))
      report({ path, at: 'key', message: 'there is no source', expected })
    for (const kind of given.slice(1)) {
      report({ path: [...path, kind], at: 'key', message: `a second source beside \`${given[0]}\``, expected })
    }
  }
  const unusedKey = source?.key !== undefined && !Object.hasOwn(source, 'mirror')
  if (unusedKey) {
    report({ path: ['cluster', 'source', 'key'], at: 'key', message: 'only `mirror` signs its requests' })
  }
  // In a file nobody renews anything, and what comes by transfer has been sifted already.
  const other = source === undefined ? undefined : sourceKinds.find((kind) => Object.hasOwn(source, kind))
  if (leases !== undefined && leases !== null && other !== undefined && other !== 'kubernetes') {
    const message = `Leases are renewed in an API server, and the source is \`${other}\``
    report({ path: ['cluster', 'leases'], at: 'value', message, expected: 'off, or the source `kubernetes`' })
  }
  if (zone !== undefined && zone === clustersetZone) {
    const message = 'the zone of Services and that of ServiceImports are the same one'
    report({ path: ['cluster', 'clustersetZone'], at: 'value', message, expected: 'another name' })
  }
  const networks = (reverse ?? []).flatMap((entry) => entry ?? [])
  const zones = networks.reduce((sum, network) => sum + reverseZoneCount(network), 0)
  if (zones > maxReverseZones) {
    const message = `these networks are ${zones} reverse zones, and ${maxReverseZones} are the most`
    report({ path: ['cluster', 'reverse'], at: 'value', message, expected: 'prefix lengths that end at an octet' })
  }
}

/** Reverse zones end at octets (RFC 1035 §3.5) or nibbles (RFC 3596 §2.5). */
const reverseZoneCount = ({ family, prefixLength }: Network): number => {
  const step = family === 4 ? 8 : 4
  return 2 ** ((step - (prefixLength % step)) % step)
}
