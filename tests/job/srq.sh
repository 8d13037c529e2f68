#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Shared receive queues: floods of many senders to one, active messages in all forms, among puts and gets, with any legal number of
# buffers, connected on demand and at start-up. All end, each message arrives once, and there are no RNR events (common.sh checks
# the device's count).
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1 GASNET_USE_SRQ=1 GASNET_CONNECT_STATIC=0
flood=$jobs/many_to_one
seed=${SEED:-$RANDOM}
echo "SEED=$seed"

# The minimum: a request and an exit notice of each peer, a reply and a payload in its handler.
many()
{
    senders=64
    [ "$sanitizer" = no ] || senders=8
    SETTINGS="GASNET_RBUF_COUNT=$((2 * senders + 2))" good $((senders + 1)) "$flood-seq" 10
}

# A connection waits for a buffer that was lent to another: barriers connect rank 0 to all but the 3rd and the 6th, and the
# 8th borrows all free buffers. All senders together could use more than the 40 buffers.
floods()
{
    SETTINGS="GASNET_RBUF_COUNT=18 GASNET_IBV_PORTS_VERBOSE=2" good 9 "$flood-seq" 20
    grep -q '[1-9][0-9]* waits for receive buffers' "$scratch/err" || failed "no connection waited for receive buffers"
    for how in GASNET_CONNECT_STATIC=0 GASNET_CONNECT_STATIC=1; do
        ! is_cheap 9 || SETTINGS="GASNET_RBUF_COUNT=40 $how" good 9 "$flood-seq" 20
    done
    SETTINGS="GASNET_RBUF_COUNT=60" good 9 "$flood-par" 20
    for drop in "" "SOFTHCA_FAULT=drop:op=send,p=0.05 GASNET_QP_TIMEOUT=8"; do
        SETTINGS="GASNET_RBUF_COUNT=14 $drop" good 7 "$jobs/first_contact-seq" "$seed"
    done
}

credits()
{
    for count in 8 12 0; do
        SETTINGS="GASNET_RBUF_COUNT=$count" good 4 "$jobs/credits-seq" 60
    done
    SETTINGS="GASNET_RBUF_COUNT=16 GASNET_CONNECT_STATIC=1" good 3 "$jobs/credits-par" 60
    SETTINGS="GASNET_RBUF_COUNT=12 GASNET_NETWORKDEPTH_PP=2 GASNET_INLINESEND_LIMIT=0" good 4 "$jobs/credits-seq" 60
    SETTINGS="GASNET_RBUF_COUNT=10 GASNET_AM_CREDITS_SLACK=1000 GASNET_AM_CREDITS_TOTAL=0" good 4 "$jobs/credits-seq" 60
}

mixes()
{
    SETTINGS="GASNET_RBUF_COUNT=12 GASNET_CONNECT_STATIC=1" good 4 "$jobs/am-seq"
    good 3 "$jobs/am-par"
    SETTINGS="GASNET_RBUF_COUNT=20" good 4 "$jobs/random_mix-par" --seconds 1 --seed "$seed" --threads 2
}

# An impossible setting is one line: an error, or a warning if the job can run without shared queues.
refused()
{
    SETTINGS="GASNET_RBUF_COUNT=7" job 4 "$jobs/hello-seq"
    fails_with 1
    says 'GASNET_RBUF_COUNT=7 is too few for the peers of rank 0: 8 to ' 1
    SETTINGS="SOFTHCA_MAX_SRQ_WR=7" good 4 "$jobs/hello-seq"
    says 'no shared receive queues, because the device has none, or too small ones' 1
    two="SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2"
    for how in 0 1; do # with failover each peer has two more, for notices
        SETTINGS="$two GASNET_IBV_FAILOVER=$how GASNET_RBUF_COUNT=10" good 3 "$jobs/am-seq"
        says 'no shared receive queues' 0
    done
    SETTINGS="$two GASNET_RBUF_COUNT=9" job 3 "$jobs/hello-seq"
    fails_with 1
    says 'GASNET_RBUF_COUNT=9 is too few for the peers of rank 0: 10 to ' 1
}

if [ "$sanitizer" = thread ]; then
    export TSAN_OPTIONS="suppressions=$top_srcdir/tests/job/random_mix.supp ${TSAN_OPTIONS:-}"
    SETTINGS="GASNET_RBUF_COUNT=20" good 3 "$jobs/random_mix-par" --seconds 2 --seed "$seed"
    SETTINGS="GASNET_RBUF_COUNT=20 GASNET_CONNECT_MAX=1" good 3 "$jobs/random_mix-par" --seconds 2 --seed "$seed"
    SETTINGS="GASNET_RBUF_COUNT=24" good 4 "$flood-par" 10
    SETTINGS="GASNET_RBUF_COUNT=30 SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2 GASNET_QP_TIMEOUT=10 SOFTHCA_FAULT=unplug:port=2,op=send,nth=30" \
        good 3 "$jobs/random_mix-par" --seconds 2 --seed "$seed"
    finish
fi
lane many many mixes
lane floods floods
lane credits credits refused
finish
