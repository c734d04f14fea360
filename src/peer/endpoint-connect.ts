/** Checks one address: whether a TCP connection comes about, or a web server says that it is well. */
import { connect, type Socket } from 'node:net'
import type { Clock } from '../base/clock.ts'
import type { EndpointCheck } from '../base/endpoint-check.ts'
import { hostPortToText } from '../base/host-port.ts'
import { endpointReplyOctets } from '../base/endpoint-limits.ts'

export type EndpointOutcome = Readonly<{ isSuccess: boolean; reason: string }>

/** Well is a connection, or a status from 200 to 399 as the kubelet has it. Never rejects. */
export function checkEndpoint(
  address: string,
  check: EndpointCheck,
  timeoutMs: number,
  clock: Clock
): Promise<EndpointOutcome> {
  return new Promise((resolve) => {
    const { kind, port, path } = check
    // A virtual address has no name of its own that a certificate could speak of.
    const socket: Socket =
      kind === 'https'
        ? // Takes 17 ms to load, and few need it.
          process.getBuiltinModule('node:tls').connect({ host: address, port, rejectUnauthorized: false })
        : connect({ host: address, port })
    const end = (isSuccess: boolean, reason: string): void => {
      cancel()
      socket.destroy()
      resolve({ isSuccess, reason })
    }
    const cancel = clock.after(timeoutMs, () => end(false, 'timeout'))
    let reply = ''
    socket.on('error', (error: NodeJS.ErrnoException) => end(false, error.code ?? error.message))
    socket.on('close', () => end(false, 'closed without an answer'))
    socket.on(kind === 'https' ? 'secureConnect' : 'connect', () => {
      if (kind === 'tcp') {
        end(true, 'connected')
        return
      }
      const host = hostPortToText(address, port)
      socket.write(
        `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nUser-Agent: peerdns\r\nAccept: */*\r\nConnection: close\r\n\r\n`
      )
    })
    socket.on('data', (chunk: Buffer) => {
      reply += chunk.toString('latin1')
      const status = /^HTTP\/1\.[01] (\d{3})[ \r\n]/.exec(reply)?.[1]
      if (status !== undefined) end(/^[23]/.test(status), `status ${status}`)
      else if (reply.length > endpointReplyOctets) end(false, 'no HTTP')
    })
  })
}
