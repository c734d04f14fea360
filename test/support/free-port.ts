/**
 * Ports for what has to know its port before it listens, or listens on it again after a restart.
 *
 * A port that was bound once and closed may be anybody's a moment later: the kernel gives it to the next socket that
 * asks for none. So these come from below that range, and stay reserved among all processes of these tests while this
 * one lives: by an abstract socket, of which the kernel keeps one for each name, and which goes with its process.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

const lowest = 20_000
const count = 10_000

/** A port of 127.0.0.1 that is free for TCP and UDP on every address, and that nobody else here is given. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = lowest + Math.floor(Math.random() * count)
    if ((await isReserved(port)) && (await canListen(port))) return port
  }
}

async function isReserved(port: number): Promise<boolean> {
  const server = createServer()
  server.listen(`\0peerdns-test-port-${port}`)
  try {
    await once(server, 'listening')
    server.unref()
    return true
  } catch (error) {
    // Other systems have no abstract sockets; there the choice is left to chance.
    return (error as NodeJS.ErrnoException).code !== 'EADDRINUSE'
  }
}

async function canListen(port: number): Promise<boolean> {
  const server = createServer()
  const socket = createSocket('udp4')
  const both = [
    new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '0.0.0.0', resolve)),
    new Promise<void>((resolve, reject) => socket.once('error', reject).bind(port, '0.0.0.0', resolve))
  ]
  const outcomes = await Promise.allSettled(both)
  await Promise.all([
    new Promise<void>((resolve) => server.close(() => resolve())),
    new Promise<void>((resolve) => socket.close(() => resolve()))
  ])
  return outcomes.every(({ status }) => status === 'fulfilled')
}
