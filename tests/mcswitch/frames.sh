#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mcswitchd between network interfaces: two hosts (network namespaces) reach each other through it, and it answers ARP for its two
# addresses. Needs namespaces without root and raw sockets in them, else it is skipped.
if [ "${1-}" != inside ]; then
    command -v ip >/dev/null && command -v unshare >/dev/null && command -v nsenter >/dev/null ||
        { echo "ip, unshare or nsenter is missing (Debian packages iproute2, util-linux); skipped"; exit 77; }
    unshare -Urn ip link add name va type veth peer name vb 2>/dev/null ||
        { echo "no network namespaces with veth here; skipped"; exit 77; }
    exec unshare -Urn "$0" inside
fi
. "${top_srcdir:?}/tests/mcswitch/common.sh"
ip link set lo up

# host N: a namespace with the address 10.9.0.N on the other end of interface pN; its holder's pid is ${others[N - 1]}
host()
{
    local n=$1 holder
    unshare -n sh -c 'echo up; exec sleep 600' >"$work/host$n" &
    holder=$!
    others+=($holder)
    until grep -q up "$work/host$n" || ! kill -0 $holder 2>/dev/null; do sleep 0.01; done
    ip link add p$n type veth peer name e0 netns $holder
    ip link set p$n up mtu 4200
    # Switches off IPv6, whose own multicasts would be counted.
    nsenter -t $holder -n sh -c "echo 1 2>/dev/null >/proc/sys/net/ipv6/conf/all/disable_ipv6
        ip addr add 10.9.0.$n/24 dev e0; ip link set e0 address 02:00:00:00:00:0$n up mtu 4200"
}

# on N COMMAND...
on()
{
    local holder=${others[$1 - 1]}
    shift
    nsenter -t "$holder" -n "$@"
}

# resolves N ADDRESS MAC: host N finds the MAC of an address
resolves()
{
    local tries
    for ((tries = 0; tries < 500; tries++)); do
        on "$1" bash -c "echo x >/dev/udp/$2/9" 2>/dev/null
        on "$1" ip neigh show "$2" | grep -q "lladdr $3" && return
        sleep 0.01
    done
    fail "host $1 does not find $2 at $3: $(on "$1" ip neigh)"
}

host 1
host 2
start --vip 10.9.0.250,10.9.0.251 --port packet:p1 --port packet:p2
resolves 1 10.9.0.2 02:00:00:00:00:02
resolves 2 10.9.0.1 02:00:00:00:00:01
resolves 1 10.9.0.250 02:4d:0a:09:00:fa
resolves 2 10.9.0.251 02:4d:0a:09:00:fa
[ "$(counter core neighbours)" -ge 2 ] || fail "ARP: $(stat)"
[ "$(counter bridge to_core)" -ge 4 ] || fail "nothing came to the core: $(stat)"
# Learned addresses are not flooded.
flooded=$(counter bridge flooded) forwarded=$(counter bridge forwarded)
for ((i = 0; i < 20; i++)); do
    on 1 bash -c "echo x >/dev/udp/10.9.0.2/9" 2>/dev/null
done
for ((i = 0; i < 500 && $(counter bridge forwarded) < forwarded + 20; i++)); do
    sleep 0.01
done
[ "$(counter bridge forwarded)" -ge $((forwarded + 20)) ] || fail "frames between hosts: $(stat)"
[ "$(counter bridge flooded)" -le $((flooded + 4)) ] || fail "frames to known hosts go to all: $(stat)"
stop
finish
