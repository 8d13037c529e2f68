#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Known pitfalls of active messages, each with its item number, with 1, 2 and 3 ranks; also with short queues.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
for n in 1 2 3; do
    good $n "$jobs/am_items-seq"
done
for n in 2 5; do
    good $n "$jobs/am_items-par"
done
SETTINGS="GASNET_AM_CREDITS_PP=2 GASNET_NETWORKDEPTH_PP=2 GASNET_BBUF_COUNT=1" good 2 "$jobs/am_items-seq"
SETTINGS="GASNET_AM_CREDITS_PP=2 GASNET_NETWORKDEPTH_PP=2 GASNET_NETWORKDEPTH_TOTAL=2" good 2 "$jobs/am_items-par"
# The same between neighbours.
SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good 3 "$jobs/am_items-seq"
SETTINGS=GASNET_SUPERNODE_MAXSIZE=2 good 3 "$jobs/am_items-par"
# A device that reads a source late reads its contents at that time.
SETTINGS="SOFTHCA_FAULT=delay:us=300,op=write" good 2 "$jobs/am_items-seq"
finish
