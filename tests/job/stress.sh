#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Several threads at once in PAR; the same program with one thread in SEQ. Also under the thread sanitizer.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
rounds=300
[ "$sanitizer" = no ] || rounds=80
for n in 1 2 3 4 8; do
    good $n "$jobs/stress-par" $rounds
done
good 4 "$jobs/stress-seq" $rounds
SETTINGS="GASNET_AM_CREDITS_PP=1 GASNET_RBUF_SPARES=1 GASNET_BBUF_COUNT=1 GASNET_NETWORKDEPTH_PP=2" good 3 "$jobs/stress-par" $rounds
SETTINGS="GASNET_AM_CREDITS_TOTAL=1 GASNET_NETWORKDEPTH_TOTAL=1" good 3 "$jobs/stress-par" $rounds
# Threads put and get over connections, and in lanes, of their own.
SETTINGS="GASNET_NUM_QPS=4 GASNET_IBV_FAILOVER=0" good 3 "$jobs/stress-par" $rounds
finish
