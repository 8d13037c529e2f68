#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# On the first of three machines: the test of broadcasts on each, with plain verbs and as a job, without and with loss.
# usage: guest-mcswitch.sh CONTROLLER DIRECTORY      mcswitch.sh leaves a file there when it has read counters or set the loss
. "$(dirname "$0")/guest-lib.sh"
controller=$1 answers=$2 meeting=10.0.0.1:7777
program=$top_builddir/tests/mcswitch/broadcast
export GASNET_MCAST=require GASNET_MCAST_CTRL=$controller GASNET_VERBOSEENV=1
# As guest-machines.sh has it.
export GASNET_QP_TIMEOUT=21

# members TIMEOUT OPTION...
members()
{
    local pids=() status=0 rank
    for rank in 2 1; do
        ssh "node$((rank + 1))" timeout 200 "$program" $rank 3 $meeting "$controller" device=rxe0 gid=-1 "$@" &
        pids+=($!)
    done
    timeout 200 "$program" 0 3 $meeting "$controller" device=rxe0 gid=-1 "$@" || status=1
    for rank in "${pids[@]}"; do
        wait "$rank" || status=1
    done
    return $status
}

# job NAME OPTION...: testbcast on the three
job()
{
    local name=$1
    shift
    good "$name" 3 node1,node2,node3 "$jobs/testbcast-seq" "$@" || exit 1
    cat $out.out
    grep 'broadcasts go by trees' $out.err
}

# ready FOR: until mcswitch.sh, which reads this line, has done its part, for a minute at most
ready()
{
    local i name=${1// /-}
    echo "ready for $1"
    for ((i = 0; i < 600; i++)); do
        [ ! -e "$answers/$name" ] || return 0
        sleep 0.1
    done
    failed "mcswitch.sh does not answer '$1'"
    exit 1
}

members mtu=1024 timeout=19 most=1000000 rounds=10 || exit 1
ready jobs
# An emulated machine may stand still for long: nothing may be sent twice because of that.
export GASNET_MCAST_TIMEOUT=21
job "testbcast" -i 10 -m switch,binomial -k fresh,kept -s 8:32768
ready loss
# With this count Soft-RoCE repeats for ever.
members mtu=1024 timeout=14 retries=7 most=20000 rounds=5 || exit 1
ready "jobs with loss"
# A lost packet may cost this time, 0.5 s with the switch and 1.1 s along a tree; a machine that stands still for 7 times as long ends the job.
export GASNET_MCAST_TIMEOUT=17 GASNET_QP_TIMEOUT=18
job "testbcast, 1 % loss" -i 10 -m switch,binomial -k fresh,kept -s 64:64
job "testbcast, large, 1 % loss" -i 5 -m switch -k fresh,kept -s 16384:16384
finish
