/** Runs one command line in this process, and collects what it prints. */
import type { CommandIo } from '../../src/cli/command-io.ts'
import { run } from '../../src/cli/run.ts'

export type Result = Readonly<{ code: number; out: string; err: string }>

export async function command(line: string, env: CommandIo['env'] = {}, colors = false): Promise<Result> {
  let out = ''
  let err = ''
  const io: CommandIo = { out: (text) => void (out += text), err: (text) => void (err += text), env, colors }
  const args = line === '' ? [] : line.split(' ')
  const code = await run(args, io)
  return { code, out, err }
}
