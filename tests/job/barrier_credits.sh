#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Barriers as in jobs of 256 ranks and more: receive queues are shared and have 4 buffers for each rank, so that peers hold back no credits.
# A rank sends 3 messages in a barrier and none to acknowledge one; no buffer is ever lacking (common.sh looks at the device's count);
# with active messages between them, several barriers at once, connections that are closed for others; and two ports that replace each
# other, or a device without room for these buffers in one rank or all, where barriers take credits.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1 GASNET_CONNECT_STATIC=0 GASNET_USE_XRC=0
rounds=400
[ "$sanitizer" = no ] || rounds=60

# as_large RANKS
as_large()
{
    export GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=$((4 * $1))
}

messages()
{
    as_large 12
    is_cheap 12 || return 0
    good 12 "$top_builddir/tests/bench/growth" operations
    counts=$(sed -n 's/.* barrier.messages \([0-9.]*\).*/\1/p' "$scratch/out")
    [ "$(wc -l <<<"$counts")" = 12 ] || failed "$(wc -l <<<"$counts") of 12 ranks counted their messages"
    [ "$(sort -g <<<"$counts" | tail -1)" = 3.000 ] || failed "messages of a barrier: $(sort -g <<<"$counts" | tail -1) of a rank, not 3"
}

mixed()
{
    as_large 12
    ! is_cheap 12 || good 12 "$jobs/barrier_credits-seq" $((rounds / 2))
    as_large 4
    good 4 "$jobs/barrier_credits-seq" $rounds
    good 4 "$jobs/barrier_credits-par" $rounds
    as_large 2
    good 2 "$jobs/barrier_credits-seq" $rounds
}

# A rank of a tree has 3 partners and a place for 2.
closed()
{
    as_large 10
    export GASNET_CONNECT_MAX=2
    ! is_cheap 10 || good 10 "$jobs/barrier_credits-seq" $((rounds / 10))
    as_large 5
    good 5 "$jobs/barrier_credits-par" $((rounds / 4))
    unset GASNET_CONNECT_MAX
}

replaced()
{
    as_large 4
    SETTINGS="GASNET_NUM_QPS=2 GASNET_IBV_FAILOVER=1" good 4 "$jobs/barrier_credits-seq" $((rounds / 2))
}

# limited RANKS [COMMAND]: receive queues stay shared.
limited()
{
    good "$1" "${@:2}" "$jobs/barrier_credits-seq" $((rounds / 10))
    says 'no shared receive queues' 0
}

# The device's limit is for all buffers of a queue: of 4 ranks, 8 for credits at least, and 10 for barriers.
small_device()
{
    as_large 4
    for most in 8 17 24; do
        SETTINGS="SOFTHCA_MAX_SRQ_WR=$most" limited 4
    done
    by_rank one_small SOFTHCA_MAX_SRQ_WR=8 SOFTHCA_MAX_SRQ_WR=100
    limited 2 "$scratch/one_small"
}

messages
mixed
closed
replaced
small_device
finish
