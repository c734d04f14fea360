/** Checks of TSIG keys: names, the files with their secrets, and who uses which. */
import { inBackticks, TextError } from '../base/errors.ts'
import { keySecretMinOctets } from '../base/transfer-limits.ts'
import { nameToText, type DomainName } from '../wire/name.ts'
import type { CheckOptions, FileDraft } from './file-draft.ts'
import { wordList } from './option.ts'

/** Keys that transfers into here are signed with have to be there. */
export function checkKeys(draft: FileDraft, options: CheckOptions): void {
  checkNames(draft, options)
  checkFiles(draft, options)
  const { report } = options
  const known = (draft.transfer?.keys ?? []).flatMap((key) => (key?.name === undefined ? [] : [key.name]))
  const check = (key: DomainName | undefined, path: string[]): void => {
    if (key === undefined || known.includes(key)) return
    const expected =
      known.length === 0 ? 'a key of `transfer.keys`, where there is none' : wordList(known.map(nameToText))
    report({ path, at: 'value', message: `\`transfer.keys\` has no key ${nameToText(key)}`, expected })
  }
  check(draft.cluster?.source?.key, ['cluster', 'source', 'key'])
  for (const [name, peer] of Object.entries(draft.peers ?? {})) check(peer?.key, ['peers', name, 'key'])
}

function checkNames({ transfer }: FileDraft, { report, lineOf }: CheckOptions): void {
  const seen = new Map<DomainName, number>()
  for (const [index, key] of (transfer?.keys ?? []).entries()) {
    if (key?.name === undefined) continue
    const other = seen.get(key.name)
    if (other === undefined) seen.set(key.name, index)
    else {
      const line = lineOf(['transfer', 'keys', other, 'name'])
      const message = `another key is called ${nameToText(key.name)} already, on line ${line}`
      report({ path: ['transfer', 'keys', index, 'name'], at: 'value', message, expected: 'a name of its own' })
    }
  }
}

function checkFiles({ transfer }: FileDraft, { report, warn, secretOf }: CheckOptions): void {
  if (secretOf === null) return
  for (const [index, key] of (transfer?.keys ?? []).entries()) {
    if (key?.file === undefined) continue
    const place = { path: ['transfer', 'keys', index, 'file'], at: 'value' } as const
    try {
      const { length } = secretOf(key.file)
      if (length >= keySecretMinOctets) continue
      warn({ ...place, message: `the secret has ${length} octets: fewer than ${keySecretMinOctets} can be guessed` })
    } catch (error) {
      if (!(error instanceof TextError)) throw error
      const message = `${inBackticks(key.file)}: ${error.message}`
      report({ ...place, message, expected: 'a file with the secret in base64' })
    }
  }
}
