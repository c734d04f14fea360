/**
 * Where the fields of the kernel's socket structures lie on 64-bit Linux, x86_64 and aarch64.
 *
 * glibc and musl agree with the kernel here: where musl has a 32-bit field and a pad, a small number written as 64
 * bits, little end first, is the same. A test compiles these numbers against the machine's own headers.
 */

/** `struct mmsghdr`: a `struct msghdr` and how many octets came. */
export const mmsghdr = {
  name: 0,
  nameOctets: 8,
  iov: 16,
  iovCount: 24,
  control: 32,
  controlOctets: 40,
  flags: 48,
  octets: 56,
  size: 64
} as const

export const iovec = { base: 0, octets: 8, size: 16 } as const

/** `struct sockaddr_in`; the port is in network order, the family in the machine's. */
export const sockaddrIn = { family: 0, port: 2, address: 4, size: 16 } as const
export const sockaddrIn6 = { family: 0, port: 2, flowInfo: 4, address: 8, scope: 24, size: 28 } as const

/** `struct sockaddr_un`: the family, then the path. */
export const sockaddrUn = { family: 0, path: 2, size: 110 } as const
/** `struct ucred`, as SO_PEERCRED gives it. */
export const ucred = { uid: 4, size: 12 } as const

/** `struct cmsghdr` and what follows it. */
export const cmsghdr = { octets: 0, level: 8, type: 12, data: 16 } as const
/** `struct in_pktinfo` as data of a cmsghdr: the interface, and our address that was asked. */
export const pktInfo = { interface: 0, localAddress: 4, octets: 12 } as const
/** `struct in6_pktinfo`. */
export const pktInfo6 = { address: 0, interface: 16, octets: 20 } as const

/** `struct pollfd`. */
export const pollFd = { fd: 0, events: 4, revents: 6, size: 8 } as const
/** `struct rusage` begins with the time spent in the process and in the kernel, each a `struct timeval`. */
export const rusage = { user: 0, system: 16, room: 512 } as const
/** `struct sock_filter` and `struct sock_fprog`, for a program of classic BPF. */
export const sockFilter = { code: 0, ifTrue: 2, ifFalse: 3, value: 4, size: 8 } as const
export const sockFprog = { count: 0, filter: 8, size: 16 } as const

/** `struct sched_attr`, of which this is the first version; and the number of the system call that takes it. */
export const schedAttr = { octets: 0, flags: 8, nice: 16, runtime: 24, size: 48 } as const
export const schedSetattrNumber = { x64: 314, arm64: 274 } as const

/** `struct timeval`. */
export const timeval = { seconds: 0, microseconds: 8, size: 16 } as const

/** Numbers of Linux that these two architectures share. */
export const linux = {
  AF_UNIX: 1,
  AF_INET: 2,
  AF_INET6: 10,
  SOCK_STREAM: 1,
  SOCK_DGRAM: 2,
  SOCK_SEQPACKET: 5,
  SOCK_NONBLOCK: 0o4000,
  SOCK_CLOEXEC: 0o2000000,
  SOL_SOCKET: 1,
  SO_REUSEADDR: 2,
  SO_RCVBUF: 8,
  SO_REUSEPORT: 15,
  SO_PEERCRED: 17,
  SO_RCVTIMEO: 20,
  SO_ATTACH_REUSEPORT_CBPF: 51,
  SCM_RIGHTS: 1,
  IPPROTO_IP: 0,
  IP_PKTINFO: 8,
  IPPROTO_IPV6: 41,
  IPV6_V6ONLY: 26,
  IPV6_RECVPKTINFO: 49,
  IPV6_PKTINFO: 50,
  MSG_DONTWAIT: 0x40,
  MSG_WAITFORONE: 0x10000,
  F_GETFL: 3,
  F_SETFL: 4,
  MSG_NOSIGNAL: 0x4000,
  MSG_CMSG_CLOEXEC: 0x4000_0000,
  F_DUPFD_CLOEXEC: 1030,
  POLLIN: 1,
  POLLOUT: 4,
  RUSAGE_THREAD: 1,
  SCHED_FLAG_KEEP_POLICY: 0x08,
  EINTR: 4,
  EAGAIN: 11
} as const
