/** The command `peerdns`: hands the command line to run.ts, with this process's streams and environment. */
import { exitCode, type CommandIo } from './command-io.ts'
import { run } from './run.ts'

const { env, stdout, stderr } = process

// Whoever reads our output may have seen enough (`peerdns records list | head`).
for (const stream of [stdout, stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit(exitCode.done)
  })
}

const io: CommandIo = {
  out: (text) => void stdout.write(text),
  err: (text) => void stderr.write(text),
  env,
  colors: stdout.isTTY && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
}

process.exitCode = await run(process.argv.slice(2), io)
