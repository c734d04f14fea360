/** Where to listen, and why that may fail, in words an operator can act on. */
import { ListenError } from '../base/errors.ts'

export type ListenAddress = Readonly<{
  /** An address of this machine, `0.0.0.0` or `::`; never a host name. */
  address: string
  /** 0: a port that is free for UDP and for TCP. */
  port: number
}>

const causes: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process has this port',
  EADDRNOTAVAIL: 'no interface of this machine has this address',
  EACCES: 'not permitted; ports below 1024 need the capability NET_BIND_SERVICE',
  EPERM: 'not permitted',
  EAFNOSUPPORT: 'this machine does not speak this address family',
  EINVAL: 'not an address to listen on (a link-local one needs its zone, as in fe80::1%eth0)',
  EMFILE: 'too many open files'
}

/** The error for an operator, from what the socket said. */
export function listenError(where: ListenAddress, transport: 'udp' | 'tcp', error: NodeJS.ErrnoException): ListenError {
  const code = error.code ?? 'UNKNOWN'
  return new ListenError({ ...where, transport }, code, causes[code] ?? error.message)
}
