#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Promises of puts, gets and events that are easily broken, in SEQ and PAR, and with minimal queues.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
for n in 1 2 3; do
    good $n "$jobs/rma-seq"
done
good 5 "$jobs/rma-par"
SETTINGS="GASNET_NETWORKDEPTH_PP=2 GASNET_NETWORKDEPTH_TOTAL=2" good 2 "$jobs/rma-seq"
SETTINGS="GASNET_NETWORKDEPTH_PP=9 GASNET_BBUF_COUNT=3" good 2 "$jobs/rma-par"
finish
