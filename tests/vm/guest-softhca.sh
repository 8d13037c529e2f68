#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# On the first of two machines, which loses rdma_rxe: softhca's packets here meet the kernel's Soft-RoCE on the other, by IPv4, IPv6
# and link-local GIDs. Every program runs in both roles, jobs have a rank on each machine, and no
# received packet was malformed. Either side is killed, a cable goes out and in. Then the other
# machine loses rdma_rxe too, and our launcher starts a job on both over ssh, without a setting.
. "$(dirname "$0")/guest-lib.sh"
softhca=$top_builddir/contrib/softhca/libsofthca.so
by_softhca=(env "LD_PRELOAD=$softhca" SOFTHCA_WIRE=udp SOFTHCA_UDP=10.0.0.0/24 SOFTHCA_ONLY=1 SOFTHCA_STATS=2)
export JOB_DEADLINE=100

# One connection for all commands on the other machine.
command ssh -MNf -S /run/ssh-node2 node2 >/dev/null 2>&1
on_node2=(ssh -S /run/ssh-node2 node2)

# family WORD: sets plain, softhca's index of the GID of that kind, and row, that of rxe0.
family()
{
    local pattern
    case $1 in
    IPv4) plain=1 pattern=':ffff:' ;;
    link-local) plain=2 pattern='^fe80:' ;;
    IPv6) plain=3 pattern='^fd00:' ;;
    esac
    kind=$1
    row=$(grep -l "$pattern" /run/gids/* | head -n 1)
    row=${row##*/}
    [ -n "$row" ] || failed "rxe0 has no $1 GID: $(head /run/gids/*)"
}

read_gids()
{
    mkdir /run/gids
    # shellcheck disable=SC2016 # on the other machine
    "${on_node2[@]}" 'cd /sys/class/infiniband/rxe0/ports/1/gids && for i in 0 1 2 3; do echo "$i $(cat $i)"; done' |
        while read -r i gid; do echo "$gid" >"/run/gids/$i"; done
}

lossy=no
# pair NAME kernel|softhca PROGRAM [OPTION...]: whose side the server is. ROW in an option is the index of that side's GID.
pair()
{
    local name=$1 side=$2 word here=() there=() served=0
    shift 2
    for word; do
        here+=("${word/ROW/$plain}")
        there+=("${word/ROW/$row}")
    done
    name="$name, $kind"
    if [ "$side" = kernel ]; then
        serve kernel "${there[@]}"
        timed "$name, server: kernel" "${by_softhca[@]}" "${here[@]}" node2
    else
        serve softhca "${here[@]}"
        timed "$name, server: softhca" "${on_node2[@]}" "ulimit -l unlimited; timeout $JOB_DEADLINE ${there[*]} node1"
    fi
    wait $server || served=$?
    # If frames are lost, the last acknowledgement may be lost too: its sender has exited, and the
    # other side ends when its retries are used up.
    [ "$lossy" = no ] || { [ "$status" != 0 ] && [ $served != 0 ]; } || status=0 served=0
    [ $served = 0 ] || status="$status, server's $served"
    ! grep -q 'invalid data' $out.out $out.err $out.server || status="$status, wrong data"
    grep -h '^softhca:' $out.out $out.err $out.server
    [ "$lossy" = yes ] || ! grep -h '^softhca:' $out.out $out.err $out.server | grep -qv ' lost 0 .* damaged 0 strangers 0 ' ||
        status="$status, packets lost or wrong"
    [ "$status" = 0 ] && return
    failed "$name, server: $side: status $status"
    tail -n 30 $out.out $out.err $out.server
}

# Prints READY when something listens on the port of all these programs (18515 is 4853 in hexadecimal).
ready='for ((i = 0; i < 600; i++)); do grep -qE ":4853 0+:0000 0A" /proc/net/tcp /proc/net/tcp6 && echo READY && break; sleep 0.03; done'

await_ready()
{
    local i
    for ((i = 0; i < 600; i++)); do
        [[ $(<$out.server) != *READY* ]] || return 0
        sleep 0.03
    done
    failed "no server: $(tail -n 5 $out.server)"
}

# serve kernel|softhca COMMAND...: in the background, in $server, until it listens.
serve()
{
    local side=$1
    shift
    : >$out.server
    if [ "$side" = kernel ]; then
        "${on_node2[@]}" "ulimit -l unlimited; ($ready) & exec timeout $JOB_DEADLINE $*" </dev/null >$out.server 2>&1 &
        server=$!
    else
        timeout "$JOB_DEADLINE" "${by_softhca[@]}" "$@" </dev/null >$out.server 2>&1 &
        server=$!
        [ "$(eval "$ready")" = READY ] || failed "no server: $(tail -n 5 $out.server)"
        return
    fi
    await_ready
}

both()
{
    local name=$1
    shift
    pair "$name" kernel "$@"
    pair "$name" softhca "$@"
}


# The kernel device's counters. Its timer repeats every unanswered request when it expires, and
# softhca repeats after a few milliseconds, so on an emulated machine either may repeat a packet
# that was only slow: those two counters prove nothing.
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

# mixed NAME PROGRAM: a job whose ranks sit one on softhca and one on the kernel's device, by GIDs of the family.
mixed()
{
    local OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 pass=(-x GASNET_SOFTHCA -x JOB_DEADLINE) name="$1, $kind"
    export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
    shift
    timed "$name, a rank on each" mpirun --bind-to none -n 1 -H node1 "${pass[@]}" -x GASNET_IBV_GID_INDEX=$plain "${by_softhca[@]}" "$@" : \
        -n 1 -H node2 "${pass[@]}" -x GASNET_IBV_GID_INDEX=$row "$@"
    grep -h '^softhca:' $out.err
    [ $status = 0 ] || failed "$name, a rank on each: $(tail -n 20 $out.err $out.out)"
}

# The families differ only in the packet's head.
both_families()
{
    both "RC ping-pong" ibv_rc_pingpong -g ROW -c -n 100 -s 4000 -m 1024
    both "RDMA writes" ib_write_bw -F -x ROW -n 100 -s 65536
}

one_family()
{
    # Each side wants as many reads outstanding as the other's device has; softhca's has 16.
    both "RDMA reads" ib_read_lat -F -x ROW -n 100 -s 8192 -o 16
    both "datagrams" ib_send_bw -F -x ROW -n 100 -s 1024 -c UD
    both "atomics" ib_atomic_bw -F -x ROW -n 100 -o 16
}

# Waits until programs exchange a few hundred frames between two polls: more than ssh does.
await_traffic()
{
    local i last=0 now
    for ((i = 0; i < 300; i++)); do
        now=$(rxe-wire count)
        now=${now#*roce }
        now=${now%% *}
        [ $last = 0 ] || [ $((now - last)) -lt 300 ] || return
        last=$now
        sleep 0.1
    done
    failed "no traffic"
}

# traffic SERVER: one that does not end by itself, in the background; -u 16: a time-out of 0.27 s, eight times. The kernel's device
# takes 7 retries for "for ever", so that its side ends only because the other's process does.
traffic()
{
    local bw="ib_write_bw -F -n 100000000 -s 4096 -u 16 -x"
    if [ "$1" = kernel ]; then
        serve kernel $bw $row
        timeout 60 "${by_softhca[@]}" $bw $plain node2 </dev/null >$out.client 2>&1 &
    else
        serve softhca $bw $plain
        "${on_node2[@]}" "ulimit -l unlimited; exec timeout 60 $bw $row node1" </dev/null >$out.client 2>&1 &
    fi
    client=$!
    await_traffic
}

# The kernel's side is killed: softhca's requests end by their time-outs.
kernel_killed()
{
    local began=$SECONDS
    traffic kernel
    "${on_node2[@]}" "pkill -9 -x ib_write_bw"
    wait $client && failed "softhca's client outlived its server"
    wait $server
    grep -q 'Completion with error\|transport retry counter exceeded' $out.client || failed "no error: $(tail -n 5 $out.client)"
    echo "kernel's side killed: $((SECONDS - began)) s"
}

# softhca's side is killed: the kernel keeps sending to a closed port and does not crash; its
# process can be ended.
softhca_killed()
{
    local began=$SECONDS
    traffic softhca
    kill -9 "$(pgrep -x -P "$server" ib_write_bw)"
    wait $server 2>/dev/null
    sleep 1
    "${on_node2[@]}" "pkill -9 -x ib_write_bw" || failed "the kernel's client has ended without its server: $(tail -n 5 $out.client)"
    wait $client
    echo "softhca's side killed: $((SECONDS - began)) s"
}

# A cable out for a second in the middle of traffic, which goes on then.
cable()
{
    serve kernel ib_write_bw -F -D 4 -s 4096 -u 18 -x $row
    (
        await_traffic
        rxe-wire cut 2 >/dev/null
        sleep 1
        rxe-wire join 2 >/dev/null
    ) &
    timed "cable out and in, $kind" "${by_softhca[@]}" ib_write_bw -F -D 4 -s 4096 -u 18 -x $plain node2
    wait $server || failed "cable out and in: $(tail -n 5 $out.server)"
    [ $status = 0 ] || failed "cable out and in: $(tail -n 5 $out.err)"
    ! grep -q ' repeated 0 ' $out.err || failed "the cable was not out"
    grep -h '^softhca:' $out.err
    wait
}

unload node1
read_gids
family IPv4
both_families
one_family
both "UC ping-pong" ibv_uc_pingpong -g ROW -c -n 100 -s 4000 -m 1024
both "UD ping-pong" ibv_ud_pingpong -g ROW -c -n 100 -s 1000
command -v mpirun >/dev/null || echo "left out: jobs, no mpirun (Debian package openmpi-bin)"
! command -v mpirun >/dev/null || mixed "AM matrix" "$jobs/am-seq"
family IPv6
both_families
both "datagrams" ib_send_bw -F -x ROW -n 100 -s 1024 -c UD
! command -v mpirun >/dev/null || mixed "mix of all calls" "$jobs/random_mix-seq" --seconds 1
family link-local
both "RC ping-pong" ibv_rc_pingpong -g ROW -c -n 100 -s 4000 -m 1024
nothing_wrong
family IPv6
rxe-wire "loss 2" >/dev/null
rxe-wire "on roce" >/dev/null
lossy=yes JOB_DEADLINE=25
both "RC ping-pong, 2 % lost" ibv_rc_pingpong -g ROW -c -n 200 -s 4000 -m 1024
[[ $(rxe-wire count) != *" lost 0 "* ]] || failed "nothing was lost"
rxe-wire clear >/dev/null
JOB_DEADLINE=100 lossy=no
kernel_killed
softhca_killed
cable
both "RC ping-pong after all that" ibv_rc_pingpong -g ROW -c -n 100 -s 4000 -m 1024
unload node2
portless
finish
