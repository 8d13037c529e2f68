#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The wire of RoCE v2 packets: Debian's ping-pongs check their data over it, with and without loss; foreign packets are dropped; the
# end of a peer is noticed in time; nothing listens outside of loopback; each packet has the IPv4
# identification that its ICRC was computed with.
. "${top_srcdir:?}/tests/softhca/tools_common.sh"
prepare ibverbs-utils ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong ibv_xsrq_pingpong
export SOFTHCA_WIRE=udp

# counter NAME: its sum over the processes that left a line in $work/stats
counter()
{
    awk -v name=" $1 " '{ at = index($0, name); if (at) { split(substr($0, at + length(name)), n, " "); sum += n[1] } }
        END { print sum + 0 }' "$work/stats"
}

# packets COMMAND...: a pair whose data went by packets, all of them good
packets()
{
    rm -f "$work/stats"
    SOFTHCA_STATS=$work/stats together "$@" || return
    [ "$(counter received)" -ge 100 ] || fail "$*: $(counter received) packets"
    [ "$(counter damaged)" = 0 ] || fail "$*: damaged packets"
}

expect_line 'GID\[ *0\].*fd53:4843:4100:1:.*12b7:0' ibv_devinfo -v
expect_line 'GID\[ *1\].*::ffff:127\.' ibv_devinfo -v
SOFTHCA_WIRE=tcp with ibv_devinfo >"$work/out" 2>&1 && fail "SOFTHCA_WIRE=tcp was taken"
grep -q 'SOFTHCA_WIRE=tcp is none of shm, udp and auto' "$work/out" || fail "SOFTHCA_WIRE=tcp: no reason"
for bad in no-such-if 10.0.0.0/33 auto,mtu=9 127.0.0.0/8x; do
    SOFTHCA_UDP=$bad with ibv_devinfo >"$work/out" 2>&1
    grep -q "SOFTHCA_UDP=$bad is neither auto" "$work/out" || fail "SOFTHCA_UDP=$bad: no reason"
done

packets ibv_rc_pingpong -n 300 -c -g 0
packets ibv_rc_pingpong -n 300 -c -g 1 -e
packets ibv_rc_pingpong -n 300 -N -c -g 1
packets ibv_rc_pingpong -n 20 -s 300000 -m 4096 -c -g 0
packets ibv_uc_pingpong -n 100 -c -g 0
packets ibv_ud_pingpong -n 100 -s 1024 -c -g 0
packets ibv_srq_pingpong -n 300 -q 4 -c -g 1
packets ibv_xsrq_pingpong -n 200 -g 0
packets ibv_xsrq_pingpong -n 200 -s 9000 -e -g 1
# An address that two processes share: one of them has a port of its own.
SOFTHCA_UDP=127.0.0.0/8,mtu=1024 packets ibv_rc_pingpong -n 100 -c -g 0
SOFTHCA_UDP=127.0.0.0/8 packets ibv_ud_pingpong -n 100 -s 1024 -c -g 0
# auto: the same fabric, so shared memory.
rm -f "$work/stats"
SOFTHCA_STATS=$work/stats SOFTHCA_WIRE=auto SOFTHCA_UDP=127.0.0.0/8 together ibv_rc_pingpong -n 100 -c -g 0
[ "$(counter sent)" = 0 ] || fail "auto sent $(counter sent) packets to this host"
# Other fabrics cannot meet in shared memory.
SOFTHCA_WIRE=shm SOFTHCA_UDP=auto expect_line 'link_layer:.*InfiniBand' ibv_devinfo

# Not to the end: if the last acknowledgement is lost, the other side has ended and can't repeat it, on any network.
SOFTHCA_FAULT="drop:p=0.05,count=25" packets ibv_rc_pingpong -n 100 -s 9000 -c -g 0
[ "$(counter lost)" -gt 0 ] || fail "no packet was lost"

# A server that waits, and what it has open.
start_server()
{
    next_port
    rm -f "$work/stats"
    SOFTHCA_STATS=$work/stats with stdbuf -oL ibv_rc_pingpong -p $port -g 1 "$@" >"$work/server" 2>&1 &
    server=$!
    await_server $server $port || fail "no server"
    address=$(sed -n 's/.*local address:.*::ffff://p' "$work/server")
}

start_server -n 200 -c
grep -E ' [0-9A-F]{8}:12B7 ' /proc/net/udp | grep -vqE ' [0-9A-F]{6}7F:12B7 ' && fail "a port listens outside of loopback"
for ((i = 0; i < 20; i++)); do
    head -c $((i * 5)) /dev/urandom >"/dev/udp/$address/4791"
done
# A packet of which all but the ICRC is right.
printf '\4\0\377\377\0\0\0\21\0\0\0\1AAAAAAAABBBB' >"/dev/udp/$address/4791"
with ibv_rc_pingpong -p $port -g 1 -n 200 -c localhost >"$work/client" 2>&1 || fail "a client beside garbage"
wait $server || fail "a server that got garbage"
[ "$(counter damaged)" -ge 15 ] || fail "$(counter damaged) of 20 packets of garbage were counted"
[ "$(counter strangers)" = 0 ] || fail "the ICRC was not looked at"

# The frames themselves, where that is allowed: identification 0, don't fragment.
if [ "$(id -u)" = 0 ] && command -v python3 >/dev/null; then
    start_server -n 100
    python3 - "$address" >"$work/frames" 2>&1 <<'EOF' &
import socket, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
s.bind(("lo", 0x0800))
s.settimeout(20)
print("ready", flush=True)
seen = 0
while seen < 50:
    f = s.recv(100)
    if f[9] == 17 and f[22:24] == b"\x12\xb7" and sys.argv[1] in (socket.inet_ntoa(f[12:16]), socket.inet_ntoa(f[16:20])):
        seen += 1
        if f[4:6] != b"\0\0" or f[6:8] != b"\x40\0":
            print("bad", f[:20].hex())
print("end")
EOF
    frames=$!
    for ((tries = 0; tries < 500; tries++)); do
        grep -qE 'ready|Error' "$work/frames" 2>/dev/null && break
        sleep 0.02
    done
    with ibv_rc_pingpong -p $port -g 1 -n 100 localhost >"$work/client" 2>&1 || fail "a client that is watched"
    wait $server $frames
    if ! grep -q PermissionError "$work/frames"; then
        [ "$(tr '\n' ' ' <"$work/frames")" = "ready end " ] || { fail "frames"; head "$work/frames"; }
    fi
fi

# softhca link and softhca fault in processes that run. While the port is down nothing is transferred and nothing is
# given up.
softhca()
{
    "$top_builddir/contrib/softhca/softhca" "$@" >"$work/out" 2>&1 || { fail "softhca $*"; cat "$work/out"; }
}
next_port
rm -f "$work/stats"
export SOFTHCA_STATS=$work/stats
LD_PRELOAD=$lib ibv_rc_pingpong -p $port -g 1 -n 4000 -c >"$work/server" 2>&1 &
server=$!
await_server $server $port || fail "no server"
softhca fault set "delay:ms=1,count=20;drop:p=0.02,count=20"
with ibv_rc_pingpong -p $port -g 1 -n 4000 -c localhost >"$work/client" 2>&1 &
client=$!
sleep 0.03
softhca link softhca0:1 down
sleep 0.1
softhca link softhca0:1 up
wait $client || { fail "a port that was down for a while"; cat "$work/client"; }
wait $server || fail "a server whose port was down for a while"
unset SOFTHCA_STATS
[ "$(counter lost)" -ge 20 ] || fail "softhca fault set: $(counter lost) packets were lost"

# An unplugged cable: nothing arrives, and the client ends by its retries.
next_port
LD_PRELOAD=$lib ibv_rc_pingpong -p $port -g 1 >"$work/server" 2>&1 &
server=$!
await_server $server $port || fail "no server"
"$top_builddir/contrib/softhca/softhca" plug softhca0:1 out >"$work/out" 2>&1 || fail "softhca plug"
with ibv_rc_pingpong -p $port -g 1 localhost >"$work/client" 2>&1 && fail "packets to a port whose cable is out"
grep -q 'transport retry counter exceeded' "$work/client" || { fail "a cable that is out"; cat "$work/client"; }
kill $server
wait $server

# The peer is killed: the client, which always has a request outstanding, ends by its own timers.
if command -v ib_write_bw >/dev/null; then
    next_port
    LD_PRELOAD=$lib ib_write_bw -F -x 1 -p $port -n 100000000 >"$work/server" 2>&1 &
    server=$!
    await_server $server $port || fail "no server"
    with ib_write_bw -F -x 1 -p $port -n 100000000 localhost >"$work/client" 2>&1 &
    client=$!
    sleep 0.7
    kill -9 $server
    started=$SECONDS
    wait $client && fail "a client whose server was killed ended well"
    [ $((SECONDS - started)) -lt 60 ] || fail "it took $((SECONDS - started)) s to notice"
    wait $server
fi
finish
