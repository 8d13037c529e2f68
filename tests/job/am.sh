#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The matrix of active messages at every number of ranks, in each mode.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
for n in 1 2 4; do
    good $n "$jobs/am-seq"
done
for n in 1 3 5; do
    good $n "$jobs/am-par"
done
good 2 "$jobs/am-parsync"
! is_cheap 8 || good 8 "$jobs/am-seq"
# With other limits the same sizes take other paths.
SETTINGS="GASNET_INLINESEND_LIMIT=0 GASNET_PACKEDLONG_LIMIT=0 GASNET_AM_GATHER_MIN=0" good 3 "$jobs/am-seq"
SETTINGS="GASNET_INLINESEND_LIMIT=-1 GASNET_PACKEDLONG_LIMIT=65448 GASNET_AM_GATHER_MIN=-1" good 3 "$jobs/am-par"
SETTINGS="GASNET_NONBULKPUT_BOUNCE_LIMIT=0 GASNET_BBUF_COUNT=1" good 2 "$jobs/am-seq"
finish
