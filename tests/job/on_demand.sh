#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks are connected when one first uses the other, and not before: whichever begins, if both begin, however many datagrams are
# lost, over one rail or several, by librdmacm and by datagrams. With GASNET_CONNECT_STATIC=1 or GASNET_CONNECT_DYNAMIC=0 all are
# connected at start-up. What a first message asks of the device is counted. In a crowd no rank is asked twice.
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
    # Besides the next and the last rank these are connections that start, barriers and exit need: 46 together. A rank that leaves
    # long before others, as on a busy machine, asks more ranks whether they leave too, so one job of three must keep to few.
    is_cheap 16 || return
    for try in 1 2 3; do
        SETTINGS= good 16 "$first" ring
        connected 2 15
        total=$(($(paste -sd+ <<<"$counts")))
        [ $total -gt 64 ] || return 0
    done
    failed "ranks of a ring were connected to $total peers together, of 240, as in two jobs before"
}

# A rank that waits for its CPU is not asked again: three datagrams make a connection. Where other work keeps all ranks from the CPU,
# one of three jobs must do.
crowd()
{
    local sums
    is_cheap 48 || return
    for try in 1 2 3; do
        SETTINGS= good 48 taskset -c 0 "$first" ring
        sums=$(sed -n 's/.*on demand: .* this rank; \([0-9]*\) datagrams, \([0-9]*\) of them again.*/\1 \2/p' "$scratch/err" |
            awk '{ sent += $1; again += $2 } END { print NR, sent, again }')
        [ "${sums%% *}" = 48 ] || failed "not 48 ranks counted datagrams: $sums"
        [ "${sums##* }" != 0 ] || return 0
    done
    failed "48 ranks of a CPU repeated datagrams, as in two jobs before (ranks, datagrams, repeats): $sums"
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

# The first sends of each rank are datagrams; a short timeout repeats other lost packets.
lossy()
{
    SETTINGS="SOFTHCA_FAULT=drop:op=send,count=4 GASNET_QP_TIMEOUT=8 GASNET_CONNECT_RETRANS_MIN=1000" good 4 "$first" "$seed"
    connected 3 3
    again=$(sed -n 's/.*connections on demand: .* datagrams, \([0-9]*\) of them again.*/\1/p' "$scratch/err" | paste -sd+)
    [ $((${again:-0})) -gt 0 ] || failed "no datagram was sent again although some got lost"
    SETTINGS="SOFTHCA_FAULT=drop:op=send,p=0.05 GASNET_QP_TIMEOUT=8" good 6 "$first" "$seed"
    connected 5 5
}

# When a datagram has come, the job waits for a rank that computes for longer than GASNET_CONNECT_TIMEOUT.
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

# The queue pair of the first connection is made ahead, except with a bound; if that fails, it is made later.
ahead()
{
    SETTINGS= good 2 "$first" "$seed"
    says ' 1 made ahead' 2
    SETTINGS=GASNET_USE_SRQ=1 good 2 "$first" "$seed"
    says ' 1 made ahead' 2
    SETTINGS=GASNET_CONNECT_MAX=2 good 2 "$first" "$seed"
    says ' 0 made ahead' 2
    SETTINGS="SOFTHCA_FAULT=enomem:call=create_qp,nth=3" good 2 "$first" "$seed"
    says ' 0 made ahead' 2
}

# A rank that answers the answer needs no other address handle than for its question.
handles()
{
    SETTINGS="SOFTHCA_FAULT=enomem:call=create_ah,after=1" good 2 "$first" "$seed"
    says ' [2-9] datagrams'
}

# A first message is three datagrams, a question, an answer and its confirmation. Each end changes a queue pair twice and makes an
# address handle; the queue pair, its buffers and each page that is touched were there before. The kernel may move a page of an
# idle process, so one job of five without a fault is enough.
parts()
{
    local end faults=
    for i in 1 2 3 4 5; do
        SETTINGS="GASNET_CONNECT_RETRANS_MIN=5000000 GASNET_CONNECT_RETRANS_MAX=5000000" good 2 "$top_builddir/tests/bench/first_parts"
        for end in 'asker: datagrams 2' 'asked: datagrams 1'; do
            grep -q "^count $end queue-pairs-made 0 modified 2 handles 1 addresses 0 registered 0 receives [123] sends 1 faults [0-9]" "$scratch/out" ||
                failed "not $end and so on: $(grep '^count' "$scratch/out")"
        done
        [ "$(grep -c '^part' "$scratch/out")" -eq 8 ] || failed "not eight parts: $(cat "$scratch/out")"
        faults=$(sed -n 's/^count .* faults \([0-9]*\).*/\1/p' "$scratch/out" | paste -sd+)
        [ "$sanitizer" = no ] && [ $((faults)) -gt 0 ] || return 0
    done
    failed "each of five first messages met page faults: $faults"
}

by_rdmacm()
{
    export GASNET_IBV_CONNECT=rdmacm
    plain
    SETTINGS="SOFTHCA_HCAS=2 GASNET_NUM_QPS=2 SOFTHCA_LINK=ib" good 4 "$first" "$seed"
    connected 3 3
    SETTINGS="SOFTHCA_HCAS=2 GASNET_NUM_QPS=3 GASNET_IBV_FAILOVER=0 GASNET_AM_CREDITS_PP=1" good 3 "$jobs/first_contact-par" "$seed"
    connected 2 2
    # A rank whose receive buffers are all lent makes the other wait.
    SETTINGS="GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=14" good 5 "$first" "$seed"
    connected 4 4
    says 'is not connected by librdmacm' 0
}

# For longer than librdmacm waits for an answer: the rank is asked again.
rdmacm_computing()
{
    export GASNET_IBV_CONNECT=rdmacm
    is_cheap 9 || return
    SETTINGS="GASNET_CONNECT_TIMEOUT=6" good 9 "$first" computes "$scratch/computes" 6.5
    connected 1 8
}

# A rank dies while others connect to it: the job ends, and no rank hangs.
lost()
{
    for how in verbs rdmacm; do
        SETTINGS="GASNET_IBV_CONNECT=$how" job 6 "$first" lost
        fails_with 137 "a rank that is killed while others connect to it"
    done
}

bounded_by_rdmacm()
{
    SETTINGS="GASNET_IBV_CONNECT=rdmacm GASNET_CONNECT_MAX=2" job 4 "$first" "$seed"
    fails_with 1 "a bound that librdmacm's connections can't keep"
    says 'GASNET_CONNECT_MAX=2 is less than the 3 queue pairs to 3 peers, and what librdmacm connected' 1
    SETTINGS="GASNET_IBV_CONNECT=rdmacm GASNET_CONNECT_MAX=3" good 4 "$first" "$seed"
    connected 3 3
}

lane plain plain
lane crowd crowd
lane rails rails
lane lossy lossy static ahead handles parts
lane computing computing
lane rdmacm by_rdmacm
lane rdmacm_computing rdmacm_computing
lane lost lost bounded_by_rdmacm
finish
