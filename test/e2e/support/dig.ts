/** Questions to a DNS server by the dig command, for checks by eye and by a second codec. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

export type DigAnswer = Readonly<{
  rcode: string
  /** Of the answer section: `name TTL type data`, in sorted order. */
  answer: readonly string[]
  /** The data alone, in sorted order. */
  data: readonly string[]
}>

/** @throws Error where nobody answers. */
export async function dig(port: number, name: string, type = 'A', options: readonly string[] = []): Promise<DigAnswer> {
  const args = ['@127.0.0.1', '-p', String(port), '+tries=1', '+time=10', '+noall', '+comments', '+answer', ...options]
  const { stdout } = await run('dig', [...args, name, type])
  const rcode = /status: ([A-Z]+)/.exec(stdout)?.[1]
  if (rcode === undefined) throw new Error(`dig ${name} ${type}: ${stdout.trim()}`)
  const records = stdout
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith(';'))
    .map((line) => line.split(/\s+/))
  return {
    rcode,
    answer: records.map(([owner, ttl, , ...rest]) => [owner, ttl, ...rest].join(' ')).sort(),
    data: records.map((fields) => fields.slice(4).join(' ')).sort()
  }
}
