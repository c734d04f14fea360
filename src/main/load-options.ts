/** What the reader of a configuration has to know of this machine. */
import { homedir, networkInterfaces } from 'node:os'
import { readKeySecret } from '../config/key-secret.ts'
import type { LoadOptions } from '../config/load.ts'

export const loadOptions = (): LoadOptions => ({
  home: homedir(),
  readSecret: readKeySecret,
  localAddresses: Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address))
})
