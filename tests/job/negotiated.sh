#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Negotiated payload at several numbers of ranks, in each mode, and with limits so small that every step waits.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
for n in 1 3; do
    good $n "$jobs/negotiated-seq"
done
for n in 2 5; do
    good $n "$jobs/negotiated-par"
done
good 2 "$jobs/negotiated-parsync"
SETTINGS="GASNET_INLINESEND_LIMIT=0 GASNET_BBUF_COUNT=1 GASNET_AM_CREDITS_PP=1" good 2 "$jobs/negotiated-seq"
SETTINGS="GASNET_NETWORKDEPTH_PP=2 GASNET_NETWORKDEPTH_TOTAL=1 GASNET_AM_CREDITS_TOTAL=1" good 2 "$jobs/negotiated-par"
SETTINGS="GASNET_PACKEDLONG_LIMIT=0 GASNET_AM_GATHER_MIN=0" good 3 "$jobs/negotiated-par"
finish
