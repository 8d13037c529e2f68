#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The matrix of puts and gets at every number of ranks, in each mode.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
for n in 1 2 4; do
    good $n "$jobs/putget-seq"
done
good 3 "$jobs/putget-seq" 1048576
good 2 "$jobs/putget-par"
! is_cheap 8 || good 8 "$jobs/putget-par" 1048576
good 2 "$jobs/putget-parsync"
# With other limits the same sizes take other paths.
SETTINGS="GASNET_NONBULKPUT_BOUNCE_LIMIT=0 GASNET_INLINESEND_LIMIT=0 GASNET_BBUF_COUNT=1" good 2 "$jobs/putget-seq"
SETTINGS="GASNET_NONBULKPUT_BOUNCE_LIMIT=16M GASNET_NETWORKDEPTH_PP=2 GASNET_NETWORKDEPTH_TOTAL=2" good 2 "$jobs/putget-seq"
finish
