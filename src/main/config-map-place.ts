/** Overrides in a ConfigMap: all replicas watch it, so that what an operator tells one of them holds for each. */
import type { Clock } from '../base/clock.ts'
import type { ApiAccess } from '../cluster/sources/kubernetes/api-access.ts'
import { ApiError } from '../cluster/sources/kubernetes/api-error.ts'
import { ConfigMapText } from '../cluster/sources/kubernetes/config-map-text.ts'
import { OverridePlaceError, type OverridePlace, type PlaceListener } from '../operator/override-store.ts'

const key = 'overrides.json'

export type ConfigMapPlaceOptions = Readonly<{
  access: ApiAccess
  clock: Clock
  random: () => number
  /** null: the namespace that we run in, or that of the kubeconfig. */
  namespace: string | null
  name: string
}>

export class ConfigMapPlace implements OverridePlace {
  readonly where: string
  readonly #text: ConfigMapText

  constructor(options: ConfigMapPlaceOptions) {
    const { namespace, name } = options
    this.where = `the ConfigMap ${namespace === null ? '' : `${namespace}/`}${name}`
    this.#text = new ConfigMapText({ ...options, key })
  }

  async start({ onText, onUnreadable }: PlaceListener): Promise<void> {
    await this.#text.start({
      onText,
      onUnreadable: (reason) => onUnreadable(reason === null ? null : `${this.where} cannot be read: ${reason}`)
    })
  }

  async change(edit: (text: string | null) => string): Promise<void> {
    try {
      await this.#text.change(edit)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      throw new OverridePlaceError(`${this.where} cannot be written: ${error.message}; nothing was changed`)
    }
  }

  async close(): Promise<void> {
    await this.#text.close()
  }
}
