#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# RoCE v2 packets over IPv6, between two machines that are network namespaces: Debian's ping-pongs by link-local and other
# addresses, also from a process that has not got port 4791; one line is printed for GIDs that can't work, for what ICMP reports
# about a peer that does not answer, and for a path whose MTU is too small.
if [ "${1-}" != inside ]; then
    if ! why=$(unshare -rn ip link add type veth 2>&1); then
        echo "SKIP: no network namespaces here: $why"
        exit 77
    fi
    exec unshare -rn "$0" inside
fi
. "${top_srcdir:?}/tests/softhca/tools_common.sh"
prepare "ibverbs-utils, iproute2, util-linux or procps" ibv_devinfo ibv_rc_pingpong ibv_ud_pingpong ip ss nsenter pgrep
export SOFTHCA_WIRE=udp

# The other machine.
unshare -n sleep 300 &
other=$!
trap 'kill $other 2>/dev/null; rm -rf "$work"' EXIT
for ((i = 0; i < 200; i++)); do
    [ "$(readlink /proc/$other/ns/net)" = "$(readlink /proc/self/ns/net)" ] || break
    sleep 0.02
done
on_other=(nsenter -t $other -n)
ip link add e0 type veth peer name e0 netns $other
# All of its packets fit: 4096 and headers.
up="ip link set lo up; ip link set e0 mtu 4200 addrgenmode eui64 up; echo 0 >/proc/sys/net/ipv6/conf/e0/accept_dad"
sh -c "echo 0 >/proc/sys/net/ipv6/conf/e0/accept_dad; $up; ip addr add fd00::1/64 dev e0 nodad; ip addr add 10.0.0.1/24 dev e0"
"${on_other[@]}" sh -c "echo 0 >/proc/sys/net/ipv6/conf/e0/accept_dad; $up; ip addr add fd00::2/64 dev e0 nodad; ip addr add 10.0.0.2/24 dev e0"

# counter NAME: its sum over the processes that left a line in $work/stats
counter()
{
    awk -v name=" $1 " '{ at = index($0, name); if (at) { split(substr($0, at + length(name)), n, " "); sum += n[1] } }
        END { print sum + 0 }' "$work/stats"
}

# start_server COMMAND...: on the other machine, where it listens by IPv4
start_server()
{
    next_port
    "${on_other[@]}" env SOFTHCA_STATS="$work/stats" SOFTHCA_UDP="${other_udp-e0}" LD_PRELOAD="$lib" timeout 60 "$@" -p $port >"$work/server" 2>&1 &
    server=$!
    for ((i = 0; i < 500; i++)); do
        "${on_other[@]}" ss -Hltn "sport = :$port" | grep -q . && return
        sleep 0.02
    done
    fail "no server: $*"
}

# pair COMMAND...: ends well on both sides, by packets that are all good
pair()
{
    rm -f "$work/stats"
    start_server "$@"
    SOFTHCA_STATS=$work/stats SOFTHCA_UDP=${udp-e0} with "$@" -p $port 10.0.0.2 >"$work/client" 2>&1 || fail "$*: $(cat "$work/client")"
    wait $server || fail "$*, the server: $(cat "$work/server")"
    [ "$(counter received)" -ge 100 ] && [ "$(counter damaged)" = 0 ] || fail "$*: $(cat "$work/stats")"
}

# client_fails TEXT COMMAND...: the client does, with one line that has the text
client_fails()
{
    local text=$1
    shift
    SOFTHCA_UDP=e0 with "$@" -p $port 10.0.0.2 >"$work/client" 2>&1 && fail "$*: not expected to work"
    [ "$(grep -c "$text" "$work/client")" = 1 ] || fail "$*: not one line '$text': $(cat "$work/client")"
}

table=$(SOFTHCA_UDP=fd00::/64 with ibv_devinfo -v | sed -n 's/.*GID\[ *\([0-9]\)\]:[[:space:]]*\([^,]*\),.*/\1=\2/p')
for row in '0=fd53:4843:4100:1:a00:1:12b7:0' '1=::ffff:10.0.0.1' '2=fe80::[0-9a-f:]*' '3=fd00::1'; do
    grep -qx "$row" <<<"$table" || fail "no GID $row: $table"
done
for bad in fd00::/129 fd00::/0 fd00::1 fd00:::/64 ::/x fd00::/64,mtu=5000; do
    SOFTHCA_UDP=$bad with ibv_devinfo >"$work/out" 2>&1
    grep -q "SOFTHCA_UDP=$bad is neither auto.*X:Y::/N" "$work/out" || fail "SOFTHCA_UDP=$bad: no reason"
done
SOFTHCA_UDP=fd07::/64 with ibv_devinfo >"$work/out" 2>&1
grep -q "SOFTHCA_UDP=fd07::/64: this host has no address there" "$work/out" || fail "another network: no reason"

pair ibv_rc_pingpong -g 3 -n 200 -c -s 9000 -m 4096
pair ibv_rc_pingpong -g 2 -n 200 -c -e
pair ibv_ud_pingpong -g 3 -n 100 -c -s 1024
pair ibv_ud_pingpong -g 2 -n 100 -c -s 1024
SOFTHCA_FAULT="drop:p=0.05,count=25" pair ibv_rc_pingpong -g 3 -n 100 -s 9000 -c
# Off loopback a packet that is only late is not repeated at once: 4 ms at least.
# On a busy machine many packets are later than that, so one run of three must pass.
for tries in 1 2 3; do
    SOFTHCA_FAULT="delay:us=2500,every=10" pair ibv_rc_pingpong -g 3 -n 200 -c
    [ "$(counter repeated)" -gt 20 ] || break
done
[ "$(counter repeated)" -le 20 ] || fail "packets that were late were repeated: $(cat "$work/stats")"
# Port 4791 is taken on this machine. Link-local addresses have a form with another one, row 3 has not, and the line says so.
udp=e0
SOFTHCA_UDP=e0 LD_PRELOAD=$lib timeout 60 ibv_rc_pingpong -g 3 -p 9999 >"$work/first" 2>&1 &
first=$!
await_server $first 9999 || fail "no first process"
list=$("$top_builddir/contrib/softhca/softhca" list --interval 0.01)
grep -q 'softhca0:1: 10.0.0.1:4791 by packets of 4096 bytes (wire udp)' <<<"$list" && grep -q 'softhca0:1: \[fd00::1\]:4791 ' <<<"$list" &&
    grep -q 'packets: sent 0, received 0, lost 0,' <<<"$list" || fail "list: $list"
pair ibv_rc_pingpong -g 2 -n 100 -c
grep -q 'remote address:.*fe80::[0-9a-f]*:' "$work/server" || fail "not from a port of its own: $(cat "$work/server")"
start_server ibv_rc_pingpong -g 3
client_fails 'a GID of this process is empty: .*4791, .*rdma_rxe' ibv_rc_pingpong -g 3
kill $first
wait $server $first
start_server ibv_rc_pingpong -g 1
SOFTHCA_UDP=e0 with ibv_rc_pingpong -g 3 -p $port 10.0.0.2 >"$work/client" 2>&1 && fail "IPv4 and IPv6 in one connection"
wait $server
grep -q "GID [13] of port 1 and the peer's GID are addresses of different kinds" "$work/client" "$work/server" ||
    fail "different kinds: $(cat "$work/client" "$work/server")"

# What rdma_rxe does to others: its sockets have the port of every address.
if command -v python3 >/dev/null; then
    exec {kernel}< <(exec python3 -u -c 'import socket, time
holder = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
holder.bind(("::", 4791))
print("bound")
time.sleep(60)')
    python=$!
    read -r -t 30 -u $kernel bound || fail "no socket at port 4791"
    SOFTHCA_UDP=e0 with ibv_devinfo -v >"$work/out" 2>&1
    [ "$(grep -c 'UDP port 4791 is in use on every address, by the kernel if the module rdma_rxe is loaded' "$work/out")" = 1 ] ||
        fail "port 4791 is taken: $(cat "$work/out")"
    grep -q 'GID\[ *2\].*fe80::b[0-9a-f]*:' "$work/out" || fail "no port of its own: $(cat "$work/out")"
    kill $python
    exec {kernel}<&-
fi

# What the kernels say about peers that do not answer.
# interrupted ACTION...: done while a client has traffic, of which something is always outstanding
interrupted()
{
    start_server ib_write_bw -F -x 3 -s 4096 -n 100000000
    SOFTHCA_UDP=e0 with stdbuf -oL ib_write_bw -F -x 3 -s 4096 -n 100000000 -p $port 10.0.0.2 >"$work/client" 2>&1 &
    client=$!
    for ((i = 0; i < 500; i++)); do
        grep -q '#bytes' "$work/client" && break
        sleep 0.02
    done
    sleep 0.1
    "$@"
    wait $client
    status=$?
    [ $status = 1 ] || fail "$*: the client ends with $status: $(cat "$work/client")"
    kill $server 2>/dev/null
    wait $server 2>/dev/null
}

kill_server()
{
    kill -9 "$(pgrep -P "$server")"
}

command -v ib_write_bw >/dev/null || {
    echo "left out: errors in traffic, no ib_write_bw (Debian package perftest)"
    finish
}
interrupted kill_server
grep -qx "softhca: queue pair 0x[0-9a-f]* gives up on \[fd00::2\]:4791: port unreachable, .*" "$work/client" || fail "killed: $(cat "$work/client")"
interrupted ip -6 route add unreachable fd00::2/128
grep -qx "softhca: queue pair 0x[0-9a-f]* gives up on \[fd00::2\]:4791: No route to host" "$work/client" || fail "no route: $(cat "$work/client")"
ip -6 route del unreachable fd00::2/128
interrupted ip -6 route add fd00::2/128 dev e0 mtu 1280
[ "$(grep -c "packets to \[fd00::2\]:4791 are too long: their path carries 1280 bytes; use a path MTU of at most 1024 (SOFTHCA_UDP=...,mtu=1024)" \
    "$work/client")" = 1 ] || fail "a narrow path: $(cat "$work/client")"
finish
