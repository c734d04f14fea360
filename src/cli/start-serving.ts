/** `peerdns serve` from its first moment on: a signal is heard while the server's code is still being loaded. */
import type { CommandIo } from './command-io.ts'
import { ServeSignals } from './serve-signals.ts'

/** @throws CommandFailure where the configuration is wrong, or an address cannot be listened on. */
export async function startServing(io: CommandIo, file: string): Promise<void> {
  const signals = new ServeSignals()
  try {
    // Only this command needs the server, and all of it takes a while to load.
    const { runServer } = await import('./run-server.ts')
    await runServer(io, file, signals)
  } catch (error) {
    signals.release()
    throw error
  }
}
