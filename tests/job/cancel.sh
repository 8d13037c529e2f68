#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A Cancel releases everything that its Prepare took: a million of them over each transport do not block, send nothing, and are
# counted; also with shared receive queues, XRC and failover, with one thread and several, and with so few credits, slots and
# buffers that a single leak would hang.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
million=1000000
[ "$sanitizer" = no ] || million=20000

# of NAME FILE
of()
{
    tr '{,}' '\n\n\n' <"$2" | sed -n "s/^\"$1\"://p"
}

# cancels RANKS PROGRAM COUNT [THREADS]: `waits` is how many Prepares may wait for credits and space, because threads
# compete.
cancels()
{
    rm -f "$scratch"/cancelled.* "$scratch"/stats-*.json
    SETTINGS="GASNET_STATSFILE=$scratch/stats-%.json $SETTINGS" good "$1" "$2" "$3" "${4:-1}" "$scratch/cancelled" || return
    for ((rank = 0; rank < $1; rank++)); do
        expected=$(cat "$scratch/cancelled.$rank")
        found=$(of messages_cancelled "$scratch/stats-$rank.json")
        [ "$found" = "$expected" ] || failed "rank $rank: messages_cancelled is $found, the program counted $expected"
        for name in medium_requests long_requests medium_replies long_replies message_bytes_network; do
            [ "$(of $name "$scratch/stats-$rank.json")" = 0 ] || failed "rank $rank sent something: $name"
        done
        [ "${4:-1}" -gt 1 ] || for name in credit_waits room_waits; do
            found=$(of $name "$scratch/stats-$rank.json")
            [ "$found" -lt 100 ] || failed "rank $rank: $name is $found"
        done
    done
}

shared()
{
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 cancels 2 "$jobs/cancel-seq" $million
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 cancels 2 "$jobs/cancel-par" $((million / 4)) 4
    cancels 1 "$jobs/cancel-seq" $million
    cancels 1 "$jobs/cancel-par" $((million / 4)) 4
}

network()
{
    cancels 2 "$jobs/cancel-seq" $million
    cancels 2 "$jobs/cancel-par" $((million / 4)) 4
    SETTINGS="GASNET_AM_CREDITS_PP=1 GASNET_NETWORKDEPTH_PP=2 GASNET_BBUF_COUNT=2" cancels 2 "$jobs/cancel-par" $((million / 50)) 4
}

kinds()
{
    for mode in seq par; do
        SETTINGS="GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=20" cancels 3 "$jobs/cancel-$mode" $million
        SETTINGS="GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=20 GASNET_USE_XRC=1 GASNET_SUPERNODE_MAXSIZE=2" \
            cancels 4 "$jobs/cancel-$mode" $million
        SETTINGS="SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2" cancels 2 "$jobs/cancel-$mode" $million
    done
}

lane shared shared
lane network network
lane kinds kinds
finish
