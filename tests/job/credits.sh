#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Floods and exchanges under every setting of credits and buffers: all come to an end, all messages arrive once, and no
# receiver is ever not ready (common.sh looks at the device's count).
. "${top_srcdir:?run through make check}/tests/job/common.sh"
for n in 1 2 3 4; do
    good $n "$jobs/credits-seq"
    good $n "$jobs/credits-par"
done
! is_cheap 8 || good 8 "$jobs/credits-seq" 100

turn=0
for settings in \
    GASNET_AM_CREDITS_PP=1 \
    "GASNET_AM_CREDITS_PP=1 GASNET_AM_CREDITS_SLACK=0" \
    "GASNET_AM_CREDITS_PP=2 GASNET_AM_CREDITS_SLACK=1000" \
    GASNET_AM_CREDITS_SLACK=0 \
    GASNET_AM_CREDITS_SLACK=1000 \
    GASNET_AM_CREDITS_TOTAL=1 \
    "GASNET_AM_CREDITS_TOTAL=1 GASNET_AM_CREDITS_SLACK=1000" \
    GASNET_AM_CREDITS_TOTAL=0 \
    GASNET_AM_CREDITS_PP=30 \
    GASNET_NETWORKDEPTH_PP=2 \
    "GASNET_NETWORKDEPTH_PP=2 GASNET_NETWORKDEPTH_TOTAL=2" \
    GASNET_NETWORKDEPTH_TOTAL=1 \
    GASNET_BBUF_COUNT=1 \
    "GASNET_BBUF_COUNT=1 GASNET_AM_CREDITS_PP=1 GASNET_NETWORKDEPTH_PP=2" \
    GASNET_RBUF_SPARES=1 \
    GASNET_RBUF_SPARES=64 \
    GASNET_INLINESEND_LIMIT=0 \
    GASNET_INLINESEND_LIMIT=-1 \
    GASNET_PACKEDLONG_LIMIT=0 \
    GASNET_AM_GATHER_MIN=0 \
    GASNET_AM_GATHER_MIN=-1; do
    # A build for a sanitizer is slow, so each mode runs only every fourth line there.
    turn=$((turn + 1))
    [ "$sanitizer" != no ] && [ $((turn % 4)) -ne 0 ] || SETTINGS=$settings good 4 "$jobs/credits-seq" 100
    [ "$sanitizer" != no ] && [ $((turn % 4)) -ne 2 ] || SETTINGS=$settings good 3 "$jobs/credits-par" 60
done
finish
