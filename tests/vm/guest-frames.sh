#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# On the first of two machines: traffic of the kernel's Soft-RoCE for make record-frames, one file for each kind and each address
# family. usage: guest-frames.sh DIRECTORY
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=$1
python=/usr/bin/python3 # Debian's, which has pyverbs
failures=0
port=20000

failed()
{
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# record NAME CLIENT...: the server is the same with the other role; SERVER in its place where it differs.
record()
{
    local name=$1
    shift
    rxe-wire pcap "$out/$name.pcap" >/dev/null || failed "$name: no file"
    "$@" >/run/client 2>&1 || failed "$name: $(tail -n 3 /run/client) $(tail -n 3 /run/server)"
    rxe-wire pcap off >/dev/null
    printf '%-24s %6d bytes, %d s\n' "$name" "$(stat -c %s "$out/$name.pcap")" $SECONDS
}

peers()
{
    port=$((port + 1))
    ssh node2 timeout 60 $python "$here/frames_peer.py" server rxe0 "$1" 10.0.0.2 $port "$2" &
    timeout 60 $python "$here/frames_peer.py" client rxe0 "$1" 10.0.0.2 $port "$2" && wait $!
}

# Debian's programs listen for one client, which is started when they do.
tool()
{
    port=$((port + 1))
    ssh node2 timeout 20 "$@" -p $port >/run/server 2>&1 &
    ssh node2 "for i in \$(seq 100); do ss -Hltn 'sport = :$port' | grep -q . && exit; sleep 0.1; done; exit 1" || return
    timeout 20 "$@" -p $port node2 || return
    wait $!
}

lossy()
{
    rxe-wire loss 8
    rxe-wire reorder 5
    rxe-wire double 5
    tool ibv_rc_pingpong -d rxe0 -g "$1" -m 1024 -s 3000 -n 6
    local status=$?
    rxe-wire clear
    return $status
}

# The table of GIDs: 0 link-local IPv6, 1 IPv4, 2 another IPv6 (checked, as it is the kernel's affair).
check_gids()
{
    local gids=/sys/class/infiniband/rxe0/ports/1/gids
    grep -q '^fe80:' $gids/0 && grep -q ':ffff:' $gids/1 && grep -q '^fd00:' $gids/2 ||
        failed "the GIDs are not what is expected: $(head -n 1 $gids/[012])"
}

check_gids
for family in 1:ipv4 2:ipv6; do
    gid=${family%:*} family=${family#*:}
    for kind in rc uc ud bad_key too_long no_right; do
        record "$family-$kind" peers $gid $kind
    done
    record "$family-lossy" lossy $gid
    record "$family-write_bw" tool ib_write_bw -d rxe0 -x $gid -F -n 5 -t 1 -s 2000 -m 1024
    record "$family-read_lat" tool ib_read_lat -d rxe0 -x $gid -F -n 5 -s 2000 -m 1024
    record "$family-send_ud" tool ib_send_lat -c UD -d rxe0 -x $gid -F -n 5 -s 200
    record "$family-atomic_bw" tool ib_atomic_bw -d rxe0 -x $gid -F -n 5 -t 1
done
record link_local-rc peers 0 rc
[ $failures = 0 ]
