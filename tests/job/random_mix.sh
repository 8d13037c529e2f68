#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Eight threads of each rank mix every call. The seed is today's, so that no two days are the same; SEED=N repeats a day, and
# MIX_SECONDS=N makes it longer. Under the thread sanitizer it is the main test of PAR.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
seed=${SEED:-$(date +%Y%m%d)}
if [ "$sanitizer" = thread ]; then
    seconds=${MIX_SECONDS:-20}
    limit=$((seconds + 100))
    export TSAN_OPTIONS="suppressions=$top_srcdir/tests/job/random_mix.supp ${TSAN_OPTIONS:-}"
    good 2 "$jobs/random_mix-par" --seconds "$seconds" --seed "$seed"
    # All by shared memory, and some.
    for most in 0 2; do
        SETTINGS="GASNET_SUPERNODE_MAXSIZE=$most" good 3 "$jobs/random_mix-par" --seconds $((1 + seconds / 5)) --seed "$seed"
    done
    # Pieces over two rails, with the reads behind puts.
    SETTINGS="SOFTHCA_HCAS=2 GASNET_NUM_QPS=2 GASNET_PUT_STRIPE_SZ=16 GASNET_GET_STRIPE_SZ=16" \
        good 2 "$jobs/random_mix-par" --seconds $((1 + seconds / 5)) --seed "$seed"
    finish
fi
seconds=${MIX_SECONDS:-1}
limit=$((seconds + 100))
for n in 1 2 5; do
    good $n "$jobs/random_mix-par" --seconds "$seconds" --seed "$seed"
done
good 8 "$jobs/random_mix-par" --seconds "$seconds" --seed "$seed" --threads 2
good 3 "$jobs/random_mix-seq" --seconds "$seconds" --seed "$seed"
# By shared memory, and mixed.
SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good 3 "$jobs/random_mix-par" --seconds "$seconds" --seed "$seed"
SETTINGS=GASNET_SUPERNODE_MAXSIZE=2 good 3 "$jobs/random_mix-par" --seconds "$seconds" --seed "$seed"
# With minimal queues every operation waits.
SETTINGS="GASNET_AM_CREDITS_PP=1 GASNET_RBUF_SPARES=1 GASNET_BBUF_COUNT=1 GASNET_NETWORKDEPTH_PP=2" \
    good 2 "$jobs/random_mix-par" --seconds "$seconds" --seed "$seed"
SETTINGS="GASNET_AM_CREDITS_TOTAL=1 GASNET_NETWORKDEPTH_TOTAL=1 GASNET_PACKEDLONG_LIMIT=0" \
    good 3 "$jobs/random_mix-par" --seconds "$seconds" --seed "$seed"
finish
