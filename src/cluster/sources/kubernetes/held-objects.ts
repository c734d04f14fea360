/**
 * What is known of one resource: for each object its uid and resourceVersion, and a fingerprint of what DNS saw of it.
 * The objects themselves are held by whoever gets the events, and only there.
 *
 * Everything that comes in, by list or by watch, becomes the exact difference to what was known.
 */
import { crc32 } from 'node:zlib'
import { eventForReduced } from '../../object-event.ts'
import type { ObjectEvent, ObjectKind } from '../../object-event.ts'
import { reduceObject } from '../../objects.ts'
import type { Identity } from '../../objects.ts'
import { ApiError } from './api-error.ts'

/** `list` is the number of the list that last had the object. */
type Held = { uid: string; resourceVersion: string; fingerprint: number; list: number }
export type Version = Readonly<{ uid: string; resourceVersion: string }>

export const keyOf = (namespace: string, name: string): string => `${namespace}/${name}`
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** What the metadata says; the parts that are missing are ''. */
export function metadataOf(
  raw: unknown
): Readonly<{ namespace: string; name: string; uid: string; resourceVersion: string }> {
  const metadata = ((raw as { metadata?: unknown } | null)?.metadata ?? {}) as Record<string, unknown>
  return {
    namespace: textOf(metadata['namespace']),
    name: textOf(metadata['name']),
    uid: textOf(metadata['uid']),
    resourceVersion: textOf(metadata['resourceVersion'])
  }
}

export class HeldObjects {
  readonly kind: ObjectKind
  readonly #held = new Map<string, Held>()
  #list = 0
  /** The objects that changed since an audit began; null: there is none. */
  #touched: Set<string> | null = null

  constructor(kind: ObjectKind) {
    this.kind = kind
  }

  get size(): number {
    return this.#held.size
  }

  /**
   * Takes an object as it is now, and adds what follows to `events`: nothing if it is known like this; a deletion first
   * if another object of this name was known.
   * @throws ApiError `format` for an object without a name, which no API server can have.
   */
  put(raw: unknown, events: ObjectEvent[]): void {
    const event = eventForReduced(reduceObject(raw, this.kind))
    if (event === null || event.type === 'delete') throw new ApiError('format', `no ${this.kind}`)
    const { namespace, name } = event.type === 'put' ? event.object : event.identity
    if (name === '') throw new ApiError('format', `a ${this.kind} without a name`)
    const key = keyOf(namespace, name)
    const { uid, resourceVersion } = metadataOf(raw)
    // Storage that was rolled back may give the same resourceVersion to another state: what DNS sees is compared too.
    // As a signed number it needs no memory of its own.
    const fingerprint = crc32(JSON.stringify(event)) | 0
    const known = this.#held.get(key)
    if (known === undefined) {
      this.#held.set(key, { uid, resourceVersion, fingerprint, list: this.#list })
    } else {
      known.list = this.#list
      const isSame = known.uid === uid && known.resourceVersion === resourceVersion
      if (isSame && known.fingerprint === fingerprint) return
      if (known.uid !== uid) events.push({ type: 'delete', kind: this.kind, namespace, name })
      known.uid = uid
      known.resourceVersion = resourceVersion
      known.fingerprint = fingerprint
    }
    this.#touched?.add(key)
    events.push(event)
  }

  /** Takes the deletion of an object; adds nothing if it is not known. */
  remove(raw: unknown, events: ObjectEvent[]): void {
    const reduced = reduceObject(raw, this.kind)
    const identity: Identity | null = 'ok' in reduced ? reduced.ok : 'invalid' in reduced ? reduced.identity : null
    if (identity === null || identity.name === '') throw new ApiError('format', `a ${this.kind} without a name`)
    this.#drop(keyOf(identity.namespace, identity.name), events)
  }

  /** Says that a whole list follows: what it does not have is found by `vanished`. */
  beginList(): void {
    this.#list++
  }

  /** The objects that the list did not have, one at a time; `drop` each of them. */
  *vanished(): Generator<string> {
    for (const [key, { list }] of this.#held) if (list !== this.#list) yield key
  }

  drop(key: string, events: ObjectEvent[]): void {
    this.#drop(key, events)
  }

  beginAudit(): void {
    this.#touched = new Set()
  }

  endAudit(): void {
    this.#touched = null
  }

  /**
   * The objects that differ from a list that was begun together with the audit, one at a time. Those that changed since
   * are left out: the list may be older or newer.
   */
  *differences(
    listed: ReadonlyMap<string, Version>
  ): Generator<{ key: string; what: 'ghost' | 'missed' | 'other' } | null> {
    const touched = this.#touched
    if (touched === null) return
    for (const [key, held] of this.#held) {
      const version = listed.get(key)
      if (touched.has(key)) yield null
      else if (version === undefined) yield { key, what: 'ghost' }
      else if (version.uid !== held.uid || version.resourceVersion !== held.resourceVersion)
        yield { key, what: 'other' }
      else yield null
    }
    for (const key of listed.keys()) {
      yield this.#held.has(key) || touched.has(key) ? null : { key, what: 'missed' }
    }
  }

  #drop(key: string, events: ObjectEvent[]): void {
    this.#touched?.add(key)
    if (!this.#held.delete(key)) return
    const slash = key.indexOf('/')
    events.push({ type: 'delete', kind: this.kind, namespace: key.slice(0, slash), name: key.slice(slash + 1) })
  }
}
