#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Vector, indexed and strided transfers against plain loops, at 1 to 9 ranks, over the network, by shared memory and mixed, with
# each path forced once. SEED=N repeats a day.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
seed=${SEED:-$(date +%Y%m%d)}
# The thread sanitizer checks only runs with several threads: each path once.
if [ "$sanitizer" = thread ]; then
    export TSAN_OPTIONS="suppressions=$top_srcdir/tests/job/random_mix.supp ${TSAN_OPTIONS:-}"
    good 2 "$jobs/vector-par" 12 "$seed"
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good 2 "$jobs/vector-par" 12 "$seed"
    SETTINGS="GASNET_VIS_GATHER_LIMIT=1G GASNET_VIS_AMPIPE=0" good 2 "$jobs/vector-par" 12 "$seed"
    SETTINGS="GASNET_VIS_LIST_MIN=0 GASNET_NETWORKDEPTH_PP=2" good 2 "$jobs/vector-par" 12 "$seed"
    finish
fi
for n in 1 2 3; do
    good $n "$jobs/vector-seq" 60 "$seed"
done
good 2 "$jobs/vector-par" 60 "$seed"
is_cheap 9 && SETTINGS=GASNET_SUPERNODE_MAXSIZE=2 good 9 "$jobs/vector-seq" 12 "$seed"
SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good 2 "$jobs/vector-par" 100 "$seed"
# Single pieces, some of which a device is slow to read; all in small messages; gathered, with a slow device.
SETTINGS="GASNET_VIS_AMPIPE=0 GASNET_VIS_REMOTECONTIG=0 SOFTHCA_FAULT=delay:us=500,op=write,p=0.2" good 2 "$jobs/vector-seq" 60 "$seed"
SETTINGS="GASNET_VIS_PACK_LIMIT=1G GASNET_VIS_MAXCHUNK=512 GASNET_VIS_REMOTECONTIG=0 GASNET_AM_CREDITS_PP=2" \
    good 2 "$jobs/vector-par" 30 "$seed"
SETTINGS="GASNET_VIS_GATHER_LIMIT=1G GASNET_VIS_AMPIPE=0 SOFTHCA_FAULT=delay:us=500,op=any,p=0.1" good 2 "$jobs/vector-seq" 40 "$seed"
SETTINGS="GASNET_VIS_LIST_MIN=0 GASNET_NETWORKDEPTH_PP=2 SOFTHCA_FAULT=delay:us=300,op=any,p=0.1" good 2 "$jobs/vector-par" 40 "$seed"
SETTINGS="SOFTHCA_HCAS=2 GASNET_NUM_QPS=2 GASNET_PUT_STRIPE_SZ=16" good 2 "$jobs/vector-seq" 40 "$seed"
SETTINGS="GASNET_VIS_PUT_MAXCHUNK=700 GASNET_VIS_GET_MAXCHUNK=5000 GASNET_NETWORKDEPTH_PP=2 GASNET_BBUF_COUNT=1" good 2 "$jobs/vector-seq" 30 "$seed"
VECTOR_PIECES=1000000 good 2 "$jobs/vector-seq" 1 "$seed"

# count WHAT: the number that the busiest rank posted.
count()
{
    sed -nE "s/^softhca: .* $1 ([0-9]+)( .*)?\$/\1/p" "$scratch/stats" | sort -n | tail -1
}

# travels SHAPE SENDS WRITES READS: a test for each number, such as "-lt 100".
travels()
{
    good 2 "$jobs/vector-seq" "$1"
    needs_softhca || return
    # shellcheck disable=SC2086 # an operator and a number
    [ "$(count sends)" $2 ] && [ "$(count writes)" $3 ] && [ "$(count reads)" $4 ] ||
        failed "$1: $(count sends) sends, $(count writes) writes, $(count reads) reads, not $2, $3, $4"
}
travels strided "-ge 200" "-lt 100" "-lt 100"
travels block "-lt 100" "-lt 200" "-lt 200"
# Seven lists for 100 pieces, if there are no other connections that could replace this one.
SETTINGS="GASNET_VIS_LIST_MIN=32 SOFTHCA_FAULT=delay:us=300,op=write,p=0.1" travels block "-lt 100" "-ge 700" "-ge 700"
SETTINGS="GASNET_VIS_LIST_MIN=32 SOFTHCA_MAX_SGE=2" travels block "-lt 100" "-lt 200" "-lt 200"
SETTINGS="GASNET_VIS_LIST_MIN=32 SOFTHCA_HCAS=2 GASNET_NUM_QPS=2" travels block "-lt 250" "-lt 200" "-lt 400"
SETTINGS=GASNET_VIS_REMOTECONTIG=0 travels block "-ge 200" "-lt 100" "-lt 100"
SETTINGS=GASNET_VIS_GATHER_LIMIT=31 travels block "-ge 200" "-lt 100" "-lt 100"
SETTINGS=GASNET_VIS_AMPIPE=0 travels strided "-lt 100" "-ge 10000" "-ge 10000"
SETTINGS=GASNET_VIS_PACK_LIMIT=31 travels strided "-lt 100" "-ge 10000" "-ge 10000"
# A message has at most so much of 3200 bytes and their description; 0 for one direction alone means the common setting.
SETTINGS="GASNET_VIS_MAXCHUNK=1100" travels strided "-ge 500" "-lt 100" "-lt 100"

if [ "$sanitizer" = no ]; then
    for segment in large everything; do
        good 2 "$jobs/vector-$segment" 40 "$seed"
        SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good 2 "$jobs/vector-$segment" 40 "$seed"
    done
fi
finish
