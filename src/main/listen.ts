/** The sockets that DNS is served on. */
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { Listeners } from '../server/listeners.ts'
import type { Responder } from '../server/responder.ts'
import { chooseUdpIo } from '../server/mmsg/batched-io.ts'
import { dgramIo } from '../server/udp-listener.ts'

type ListenParts = Readonly<{ responder: Responder; clock: Clock; log: Logger }>

/** @throws ListenError where an address is taken or missing, with nothing left open. */
export async function openListeners(config: Config, { responder, clock, log }: ListenParts): Promise<Listeners> {
  const { udpIo, whyNotBatched } =
    config.batching === 'off' ? { udpIo: dgramIo, whyNotBatched: null } : await chooseUdpIo(clock)
  if (whyNotBatched !== null) log.info({ why: whyNotBatched }, 'UDP is read one datagram at a time')
  return Listeners.open({
    addresses: config.listen,
    responder,
    clock,
    udpIo,
    limits: {
      inFlightQueries: config.limits.inFlightQueries,
      tcpConnections: config.limits.tcpConnections,
      tcpIdleTimeoutMs: config.limits.tcpIdleTimeoutMs
    },
    onFault: (error) => log.error({ err: error }, 'a responder threw')
  })
}
