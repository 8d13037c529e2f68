#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Implicit operations, access regions and values in each mode, and with queues that fill at once.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
for n in 1 2 4; do
    good $n "$jobs/nbi-seq"
done
good 3 "$jobs/nbi-par"
# Under the thread sanitizer PARSYNC would only repeat PAR.
[ "$sanitizer" = thread ] || good 2 "$jobs/nbi-parsync"
SETTINGS="GASNET_NONBULKPUT_BOUNCE_LIMIT=0 GASNET_INLINESEND_LIMIT=0 GASNET_BBUF_COUNT=1" good 2 "$jobs/nbi-seq"
SETTINGS="GASNET_NETWORKDEPTH_PP=2 GASNET_NETWORKDEPTH_TOTAL=2" good 2 "$jobs/nbi-par"
finish
