#!/bin/sh
# Gives this node the local addresses of the resolver: node-address.sh INTERFACE ADDRESS...
#
# The interface is made where it is missing. An address that it has already is left as it is, so that this may run any
# number of times, also beside a resolver that is serving. An address that another interface has is somebody else's
# (NodeLocal DNSCache's, for instance): that is refused, and nothing is changed. Nothing is ever taken away: a client
# that still asks an old address is refused at once, where it would otherwise wait for a time-out.
set -eu

interface=$1
shift

refuse() {
  echo "node-address: $*" >&2
  exit 1
}

# The interface that has this address, or nothing. The kernel writes addresses in their shortest form; so must we.
holder_of() {
  ip -o addr show | while read -r _ name _ address _; do
    if [ "${address%%/*}" = "$1" ]; then echo "${name%%@*}"; fi
  done
}

# All of them are looked at before anything is changed.
for address in "$@"; do
  holder=$(holder_of "$address")
  case $holder in
    '' | "$interface") ;;
    *) refuse "$address is taken: the interface $holder has it. Give this resolver an address of its own." ;;
  esac
done

if [ ! -e "/sys/class/net/$interface" ]; then
  ip link add "$interface" type dummy || refuse "the interface $interface cannot be made (is NET_ADMIN there?)"
fi
ip link set "$interface" up

for address in "$@"; do
  if [ "$(holder_of "$address")" = "$interface" ]; then
    echo "node-address: $address is on $interface already"
    continue
  fi
  case $address in
    *:*) length=128 ;;
    *) length=32 ;;
  esac
  ip addr add "$address/$length" dev "$interface" || refuse "$address cannot be added to $interface"
  echo "node-address: $address is now on $interface"
done
