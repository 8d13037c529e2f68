#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks are connected when one first uses the other, and not before: whoever begins, if both do, however many datagrams get lost,
# over one rail or several; all at start-up where GASNET_CONNECT_STATIC=1 or GASNET_CONNECT_DYNAMIC=0 asks for it.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1 GASNET_IBV_PORTS_VERBOSE=2 GASNET_CONNECT_STATIC=0
first=$jobs/first_contact-seq
seed=${SEED:-$RANDOM}

# connected LEAST MOST: so many peers each rank of the last job was connected to
connected()
{
    counts=$(sed -n 's/.*connections on demand: \([0-9]*\) of .*/\1/p' "$scratch/err")
    [ "$(wc -w <<<"$counts")" -eq "$job_size" ] || failed "$(wc -w <<<"$counts") of $job_size ranks said how many peers they were connected to"
    for count in $counts; do
        [ "$count" -ge "$1" ] && [ "$count" -le "$2" ] || failed "a rank was connected to $count peers, not $1 to $2"
    done
}

plain()
{
    SETTINGS= good 2 "$first" "$seed"
    connected 1 1
    SETTINGS= good 7 "$first" "$seed"
    connected 6 6
    # beside the next and the last one: what start, barriers and exit need
    is_cheap 16 || return
    SETTINGS= good 16 "$first" ring
    connected 2 4
}

rails()
{
    SETTINGS="SOFTHCA_HCAS=2 GASNET_NUM_QPS=2" good 4 "$first" "$seed"
    connected 3 3
    SETTINGS="SOFTHCA_WIRE=udp" good 3 "$first" "$seed"
    connected 2 2
    SETTINGS="GASNET_CONNECT_SNDS=1 GASNET_CONNECT_RCVS=1 GASNET_CONNECT_RETRANS_MIN=500" good 5 "$first" "$seed"
    connected 4 4
}

# The first sends of each rank are datagrams; a short timeout brings back what else gets lost.
lossy()
{
    SETTINGS="SOFTHCA_FAULT=drop:op=send,count=4 GASNET_QP_TIMEOUT=8 GASNET_CONNECT_RETRANS_MIN=1000" good 4 "$first" "$seed"
    connected 3 3
    again=$(sed -n 's/.*connections on demand: .* datagrams, \([0-9]*\) of them again.*/\1/p' "$scratch/err" | paste -sd+)
    [ $((${again:-0})) -gt 0 ] || failed "no datagram was sent again although some got lost"
    SETTINGS="SOFTHCA_FAULT=drop:op=send,p=0.05 GASNET_QP_TIMEOUT=8" good 6 "$first" "$seed"
    connected 5 5
}

# Once a datagram has come, one that computes for longer than GASNET_CONNECT_TIMEOUT is waited for.
computing()
{
    is_cheap 9 || return
    SETTINGS="GASNET_CONNECT_TIMEOUT=5" good 9 "$first" computes "$scratch/computes" 5.5
    connected 1 8
}

static()
{
    for how in GASNET_CONNECT_STATIC=1 GASNET_CONNECT_DYNAMIC=0; do
        SETTINGS=$how good 4 "$first" "$seed"
        says 'connections on demand' 0
    done
}

lane plain plain
lane rails rails
lane lossy lossy static
lane computing computing
finish
