#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian's own clients of librdmacm, unmodified, on the software HCA: connections, datagrams, the synchronous
# interface, perftest by -R; and one end that is killed.
. "${top_srcdir:?}/tests/softhca/tools_common.sh"
prepare rdmacm-utils rping ucmatose udaddy rdma_client rdma_server rdma_xclient rdma_xserver
command -v ib_write_bw >/dev/null || {
    echo "ib_write_bw is missing (Debian package perftest); skipped"
    exit 77
}

# serving SPACE PORT: a server listens there (t: TCP, u: UDP). Between rdma_bind_addr and rdma_listen a client is
# refused, and a server without an address binds each of its own, and listens on one after the other: flags
# 00010000 (the kernel's __SO_ACCEPTCON) on all of them. The wildcard only keeps the number.
serving()
{
    awk -v name="[.]$SOFTHCA_FABRIC~.*cm$1........[.]$2\$" '$8 ~ name && $8 !~ /cm.00000000[.]/ { bound++; ready += $4 == "00010000" }
        END { exit !(bound > 0 && ready == bound) }' /proc/net/unix
}

# await_service SPACE PORT: until it serves, or ended
await_service()
{
    local tries
    for ((tries = 0; tries < 3000; tries++)); do
        serving $1 $2 && return
        kill -0 "$server" 2>/dev/null || return
        sleep 0.02
    done
}

# once SPACE "SERVER" "CLIENT": true if both ended well; sets status (the client's) and ended
once()
{
    local at=7174 number= # udaddy has one number, and -p for something else
    [ "${2%% *}" = udaddy ] || { at=$((port += 1)); number="-p $at"; }
    with_behind $2 $number >"$work/server" 2>&1 &
    server=$!
    await_service "$1" $at
    with $3 $number >"$work/client" 2>&1
    status=$?
    [ $status = 0 ] || kill $server 2>/dev/null
    ended=badly
    wait $server && [ $status = 0 ] && ended=well
}

# pair SPACE "SERVER" "CLIENT" [TEXT]: both end well, and the client's or the server's output has TEXT
pair()
{
    local tries=1
    # perftest connects twice. Its server closes its listener after the first connection and listens anew; a client that is
    # faster is refused, with any device, and ends with an error or by a segmentation fault.
    [[ $2 != ib_* ]] || tries=10
    until once "$1" "$2" "$3"; do
        [ $((tries -= 1)) -gt 0 ] && grep -q RDMA_CM_EVENT_REJECTED "$work/client" || break
    done
    if [ $ended = well ] && grep -q -- "${4:-}" "$work/client" "$work/server"; then
        return
    fi
    fail "$2; $3: $status"
    tail -n 20 "$work/server" "$work/client" | cut -c 1-200
}

pair t "rping -s -C 5 -v -S 200" "rping -c -a 10.83.0.1 -C 5 -v -S 200" 'server ping data: rdma-ping-0'
pair t "ucmatose -c 5" "ucmatose -c 5 -s 10.83.0.1" 'return status 0'
pair u "udaddy -c 5" "udaddy -c 5 -s 10.83.0.1" 'return status 0'
pair t "ib_write_bw -R -n 100" "ib_write_bw -R -n 100 10.83.0.1" '65536 *100'
pair t "ib_send_lat -R -n 100" "ib_send_lat -R -n 100 10.83.0.1" '2 *100'
SOFTHCA_LINK=roce pair t "rping -s -C 5 -v -S 200" "rping -c -a 10.83.0.1 -C 5 -v -S 200" "server ping data: rdma-ping-0"
SOFTHCA_LINK=roce pair u "udaddy -c 5" "udaddy -c 5 -s 10.83.0.1" "return status 0"
pair t rdma_server "rdma_client -s 127.0.0.1" 'rdma_client: end 0'
pair t rdma_xserver "rdma_xclient -s 127.0.0.1" 'rdma_xclient: end 0'
SOFTHCA_HCAS=2 SOFTHCA_PORTS=2 pair t "rping -s -C 5" "rping -c -a 10.83.1.2 -C 5"

# Packets reach other hosts, librdmacm's messages do not: one line says so, and only where packets are meant to.
for far in 10.83.0.1 192.0.2.7; do
    SOFTHCA_UDP=127.0.0.0/8 with rping -c -a $far -p $((port + 1)) -C 1 >"$work/client" 2>&1 && fail "rping -a $far"
    [ "$(grep -c 'connect by verbs (GASNET_IBV_CONNECT=verbs)' "$work/client")" = 1 ] || fail "rping -a $far: no reason"
done
with rping -c -a 10.83.0.1 -p $((port + 1)) -C 1 2>&1 | grep 'connect by verbs' && fail "a reason that is none"

# survives VICTIM: one end of an endless ping-pong is killed; true if the other end does not end by itself
survives()
{
    local pid runs_on=1
    next_port
    LD_PRELOAD=$lib timeout 20 rping -s -p $port -v >"$work/server" 2>&1 &
    server=$!
    await_service t $port
    LD_PRELOAD=$lib timeout 20 rping -c -a 10.83.0.1 -p $port -v >"$work/client" 2>&1 &
    client=$!
    for ((tries = 0; tries < 3000; tries++)); do
        ! grep -q rdma-ping-9 "$work/client" || break
        sleep 0.02
    done
    kill -KILL "$(pgrep -P ${!1} -x rping)"
    for pid in $server $client; do
        wait $pid
        [ $? != 124 ] || runs_on=0
    done
    return $runs_on
}

# Two threads of rping write one state: if the disconnect event and the last completion arrive together, it may miss
# the end, with any device.
for victim in server client; do
    ! survives $victim || ! survives $victim || fail "an rping runs on after the $victim was killed"
done

finish
