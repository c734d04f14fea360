/** The version of this peerdns, as package.json has it. */
import { readFileSync } from 'node:fs'

export const readVersion = (): string => {
  const file = new URL('../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
