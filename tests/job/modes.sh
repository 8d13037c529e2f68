#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The modes of connecting, one after another: all ranks at start-up, on first use, and on first use with shared receive queues of
# few buffers, also with XRC. The programs are those of other tests, which run them in one mode, chosen for their use of the
# transport. MODES=all runs those other tests whole (make check-long).
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1
seed=${SEED:-$RANDOM}

all_programs()
{
    good 4 "$jobs/am-seq"
    good 3 "$jobs/negotiated-par"
    good 4 "$jobs/random_mix-par" --seconds 0 --seed "$seed" --threads 2
    good 3 "$jobs/nbi-par"
    good 3 "$jobs/teams-seq"
    good 2 "$jobs/put_visibility-seq"
    good 3 "$jobs/vector-seq" 12 "$seed"
    good 3 "$jobs/endpoint_am-par"
}

whole_tests()
{
    for test in am am_items negotiated nbi endpoint_am vector collectives teams credits random_mix stress putget rma barrier named_barrier; do
        "$top_srcdir/tests/job/$test.sh" >"$scratch/$test.log" 2>&1 && continue
        status=$?
        cat "$scratch/$test.log"
        [ "$status" -eq 77 ] || failed "$test.sh in the mode above: status $status"
    done
}

in_mode()
{
    echo "SEED=$seed $*"
    export "$@"
    if [ "${MODES:-few}" = all ]; then whole_tests; else all_programs; fi
}

static()
{
    in_mode GASNET_CONNECT_STATIC=1 GASNET_USE_SRQ=0
}

dynamic()
{
    in_mode GASNET_CONNECT_STATIC=0 GASNET_USE_SRQ=0
}

# Four ranks by several threads need 15.
shared()
{
    buffers=20
    [ "${MODES:-few}" != all ] || buffers=60
    in_mode GASNET_CONNECT_STATIC=0 GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=$buffers
}

# Two ranks share memory, so one queue pair reaches both. Tests of the network alone do not run with neighbours.
extended()
{
    MODES=few
    in_mode GASNET_CONNECT_STATIC=0 GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=20 GASNET_USE_XRC=1 GASNET_SUPERNODE_MAXSIZE=2
}

lane static static
lane dynamic dynamic
lane shared shared
lane extended extended
finish
