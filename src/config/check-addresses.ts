/** Checks that no two listeners want the same address, and that nobody we ask is ourselves. */
import { hostPortToText, type HostPort, type ListenAddress } from '../base/host-port.ts'
import type { CheckOptions, FileDraft } from './file-draft.ts'
import { listenersCollide, ownAddress } from './own-address.ts'
import type { PathStep } from './problem.ts'

type Placed<Value> = { path: readonly PathStep[]; value: Value }

export function checkAddresses(draft: FileDraft, options: CheckOptions): void {
  checkListeners(draft, options)
  const listen = (draft.listen ?? []).filter((address) => address !== undefined)
  checkNotified(draft, listen, options)
  for (const { path, value } of serversAsked(draft)) {
    const own = ownAddress(listen, value, options.localAddresses)
    if (own === null) continue
    const message = `\`${hostPortToText(value.host, value.port)}\` is a forward to ourselves: we listen on ${own}`
    options.report({ path, at: 'value', message, expected: 'the address of another server' })
  }
}

function checkNotified({ transfer }: FileDraft, listen: readonly ListenAddress[], options: CheckOptions): void {
  for (const [index, server] of (transfer?.notify ?? []).entries()) {
    const own = server === undefined ? null : ownAddress(listen, server, options.localAddresses)
    if (own === null || server === undefined) continue
    const message = `\`${hostPortToText(server.host, server.port)}\` is this server itself: we listen on ${own}`
    options.report({
      path: ['transfer', 'notify', index],
      at: 'value',
      message,
      expected: 'the address of a secondary'
    })
  }
}

/** All of them use TCP, so that HTTP and DNS collide too. */
function checkListeners(draft: FileDraft, { report, lineOf }: CheckOptions): void {
  const listeners: Placed<ListenAddress>[] = []
  const add = (path: readonly PathStep[], value: ListenAddress | null | undefined): void => {
    if (value === undefined || value === null) return
    const other = listeners.find((earlier) => listenersCollide(earlier.value, value))
    if (other === undefined) {
      listeners.push({ path, value })
      return
    }
    const taken = `${hostPortToText(other.value.address, other.value.port)} of line ${lineOf(other.path)}`
    const message = `\`${hostPortToText(value.address, value.port)}\` cannot be listened on beside ${taken}`
    report({ path, at: 'value', message, expected: 'an address or port of its own' })
  }
  for (const [index, address] of (draft.listen ?? []).entries()) add(['listen', index], address)
  add(['observe'], draft.observe)
  add(['admin'], draft.admin)
}

function serversAsked(draft: FileDraft): Placed<HostPort>[] {
  const asked: Placed<HostPort>[] = []
  const add = (path: readonly PathStep[], value: HostPort | undefined): void => {
    if (value !== undefined) asked.push({ path, value })
  }
  for (const [index, entry] of (draft.forward ?? []).entries()) {
    if (entry?.kind === 'server') add(['forward', index], entry.server)
  }
  for (const [name, peer] of Object.entries(draft.peers ?? {})) {
    for (const [index, server] of (peer?.servers ?? []).entries()) add(['peers', name, 'servers', index], server)
  }
  for (const [index, server] of (draft.cluster?.source?.mirror ?? []).entries()) {
    add(['cluster', 'source', 'mirror', index], server)
  }
  return asked
}
