/** How a server is run for one benchmark: each of the files beside this one makes such plans for one server. */
import type { BenchService } from '../dataset.ts'

export type ServerId = 'peerdns' | 'coredns' | 'unbound' | 'knot' | 'dnsdist' | 'dnsmasq' | 'dns2' | 'echo' | 'c-echo'

/** Servers that answer nothing: how cheap any answer can be at all. */
export const isEcho = (id: ServerId): boolean => id === 'echo' || id === 'c-echo'

/** As they stand in the tables; `echo` is on node:dgram. */
export const serverTitles: Readonly<Record<ServerId, string>> = {
  peerdns: 'peerdns',
  coredns: 'CoreDNS',
  unbound: 'Unbound',
  knot: 'Knot DNS',
  dnsdist: 'dnsdist',
  dnsmasq: 'dnsmasq',
  dns2: 'dns2',
  echo: 'node:dgram echo',
  'c-echo': 'C echo'
}

export type ServerPlan = Readonly<{
  id: ServerId
  /** As it stands in the tables. */
  title: string
  /** How it was set up, in a few words. */
  setUp: string
  command: string
  args: readonly string[]
  /** On 127.0.0.1. */
  port: number
  /** Workloads that it is not measured in, and why. */
  leftOut?: Readonly<Record<string, string>>
  /** The only workloads that it is for; where it is missing: all that its fleet is asked. */
  onlyIn?: readonly string[]
}>

/** Where a server may write its files, and which ports are its own. */
export type Place = Readonly<{ folder: string; port: number; adminPort: number }>

/** Answering for these Services from memory. */
export type ZoneRole = Readonly<{ services: readonly BenchService[]; ttlSeconds: number }>

/** Asking a server of the other cluster for some suffixes, and keeping what it says. */
export type ForwardRole = Readonly<{ suffixes: readonly string[]; peerPort: number }>
