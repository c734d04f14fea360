/** The secrets of TSIG keys, in files. */
import { readFileSync, statSync } from 'node:fs'
import { TextError } from '../base/errors.ts'
import { keyFileOctets } from '../base/transfer-limits.ts'

/**
 * The secret that a file holds in base64.
 * @throws TextError where the file cannot be read, is too large, empty, or not base64.
 */
export function readKeySecret(file: string): Uint8Array {
  let text: string
  try {
    if (statSync(file).size > keyFileOctets) throw new TextError(`it is larger than ${keyFileOctets} octets`)
    text = readFileSync(file, 'latin1').replaceAll(/\s/g, '')
  } catch (error) {
    if (error instanceof TextError) throw error
    const { code } = error as NodeJS.ErrnoException
    throw new TextError(code === 'ENOENT' ? 'there is no such file' : `it cannot be read (${code})`)
  }
  if (text === '') throw new TextError('it is empty')
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) throw new TextError('it is not base64')
  return Uint8Array.from(Buffer.from(text, 'base64'))
}
