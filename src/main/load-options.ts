/** What the reader of a configuration has to know of this machine. */
import { homedir, networkInterfaces } from 'node:os'
import type { LoadOptions } from '../config/load.ts'

export const loadOptions = (): LoadOptions => ({
  home: homedir(),
  localAddresses: Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address))
})
