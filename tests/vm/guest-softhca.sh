#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# On the first of two machines, which loses rdma_rxe: softhca's packets here meet the kernel's Soft-RoCE on the other. Every program
# runs both ways round, jobs have a rank on each, and nothing that came was wrong. Then the other machine loses it too, and our
# launcher starts a job on both over ssh, without a setting.
. "$(dirname "$0")/guest-lib.sh"
softhca=$top_builddir/contrib/softhca/.libs/libsofthca.so
by_softhca=(env "LD_PRELOAD=$softhca" SOFTHCA_WIRE=udp SOFTHCA_UDP=10.0.0.0/24 SOFTHCA_ONLY=1 SOFTHCA_STATS=2)
plain=1 # softhca's index of the GID with an IPv4 address alone
export JOB_DEADLINE=100

# The index of rxe0's GID that is its IPv4 address.
ipv4_row()
{
    # shellcheck disable=SC2016 # on the other machine
    ssh node2 'cd /sys/class/infiniband/rxe0/ports/1/gids && for i in 0 1 2 3; do case $(cat $i) in *:ffff:*) echo $i; break ;; esac; done'
}

lossy=no
# pair NAME kernel|softhca PROGRAM [OPTION...]: whose side the server is. ROW in an option is the index of that side's GID.
pair()
{
    local name=$1 server=$2 word here=() there=() pid served=0
    shift 2
    for word; do
        here+=("${word/ROW/$plain}")
        there+=("${word/ROW/$row}")
    done
    if [ "$server" = kernel ]; then
        ssh node2 "ulimit -l unlimited; timeout $JOB_DEADLINE ${there[*]}" </dev/null >$out.server 2>&1 &
        pid=$!
        await_port node2
        timed "$name, server: kernel" "${by_softhca[@]}" "${here[@]}" node2
    else
        timeout "$JOB_DEADLINE" "${by_softhca[@]}" "${here[@]}" </dev/null >$out.server 2>&1 &
        pid=$!
        await_port node1
        timed "$name, server: softhca" ssh node2 "ulimit -l unlimited; timeout $JOB_DEADLINE ${there[*]} node1"
    fi
    wait $pid || served=$?
    # Where frames are lost, so may be the last acknowledgement: its sender has gone, and the other side ends by its retries.
    [ "$lossy" = no ] || { [ "$status" != 0 ] && [ $served != 0 ]; } || status=0 served=0
    [ $served = 0 ] || status="$status, server's $served"
    ! grep -q 'invalid data' $out.out $out.err $out.server || status="$status, wrong data"
    grep -h '^softhca:' $out.out $out.err $out.server
    [ "$status" = 0 ] && return
    failed "$name, server: $server: status $status"
    tail -n 30 $out.out $out.err $out.server
}

await_port()
{
    local i
    for ((i = 0; i < 300; i++)); do
        if [ "$1" = node1 ]; then ss -tln; else ssh node2 ss -tln; fi | grep -q ':18515 ' && return
        sleep 0.1
    done
    failed "no server on $1"
}

both()
{
    local name=$1
    shift
    pair "$name" kernel "$@"
    pair "$name" softhca "$@"
}


# What the kernel's device counted. Its own timer repeats whatever has no answer yet when it ends, and softhca repeats after a
# few milliseconds, so on an emulated machine either may repeat what was only slow: those two counters say nothing.
nothing_wrong()
{
    local name value seen=0
    while read -r name value; do
        case $name in
        *rnr* | out_of_seq_request | rcvd_seq_err | retry_exceeded_err | send_err)
            seen=$((seen + 1))
            [ "$value" = 0 ] || failed "the kernel's $name is $value"
            ;;
        rcvd_pkts) [ "$value" -gt 2000 ] || failed "the kernel received $value packets only" ;;
        completer_retry_err | duplicate_request) echo "the kernel's $name: $value" ;;
        esac
    done < <(each_counter 2)
    [ $seen = 7 ] || failed "rxe0 has $seen of the counters, not 7"
    [[ $(rxe-wire count) == *" lost 0 "*" overflown 0" ]] || failed "the switch: $(rxe-wire count)"
}

unload()
{
    ssh "$1" "rdma link delete rxe0 && busybox rmmod rdma_rxe" || failed "rdma_rxe is still on $1"
}

# Two Ethernet machines, and nothing is set.
portless()
{
    unset GASNET_SOFTHCA
    good "hello, no RDMA ports" 4 node1,node2 "$jobs/hello-seq" && grep -q '^4 ranks over verbs softhca0:1 .*RoCE v2' $out.out ||
        failed "not over softhca: $(cat $out.out $out.err)"
    yes "to be or not to be" | head -n 100 >/run/text
    ssh node2 "cat >/run/text" </run/text
    good "wordcount, no RDMA ports" 4 node1,node2 "$top_builddir/tests/demo/wordcount" --all /run/text &&
        grep -qx '200 be' $out.out || failed "counted: $(cat $out.out)"
}

# A job whose ranks sit one on softhca and one on the kernel's device.
mixed()
{
    local OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 pass=(-x GASNET_SOFTHCA -x JOB_DEADLINE)
    export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
    timed "$1, a rank on each" mpirun --bind-to none -n 1 -H node1 "${pass[@]}" "${by_softhca[@]}" "$2" : \
        -n 1 -H node2 "${pass[@]}" "$2"
    grep -h '^softhca:' $out.err
    [ $status = 0 ] || failed "$1, a rank on each: $(tail -n 20 $out.err $out.out)"
}

unload node1
row=$(ipv4_row)
both "RC ping-pong" ibv_rc_pingpong -g ROW -c -n 100 -s 4000 -m 1024
both "UC ping-pong" ibv_uc_pingpong -g ROW -c -n 100 -s 4000 -m 1024
both "UD ping-pong" ibv_ud_pingpong -g ROW -c -n 100 -s 1000
# Each side wants as many reads outstanding as the other's device has; softhca's has 16.
both "RDMA writes" ib_write_bw -F -x ROW -n 100 -s 65536
both "RDMA reads" ib_read_lat -F -x ROW -n 100 -s 8192 -o 16
both "datagrams" ib_send_bw -F -x ROW -n 100 -s 1024 -c UD
both "atomics" ib_atomic_bw -F -x ROW -n 100 -o 16
if command -v mpirun >/dev/null; then
    mixed "hello" "$jobs/hello-seq"
    mixed "AM matrix" "$jobs/am-seq"
else
    echo "left out: jobs, no mpirun (Debian package openmpi-bin)"
fi
nothing_wrong
rxe-wire "loss 2" >/dev/null
rxe-wire "on roce" >/dev/null
lossy=yes JOB_DEADLINE=25
both "RC ping-pong, 2 % lost" ibv_rc_pingpong -g ROW -c -n 200 -s 4000 -m 1024
[[ $(rxe-wire count) != *" lost 0 "* ]] || failed "nothing was lost"
rxe-wire clear >/dev/null
JOB_DEADLINE=100
unload node2
portless
finish
