#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Queries of the library, and the registration of handlers.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export JOB_WORD="some word" JOB_HOSTS=1
for n in 1 2 4 8; do
    good $n "$jobs/query-seq"
    # One line from each rank for the segment of an impossible size.
    says 'gex_Segment_Attach: [0-9]* bytes are not between 1 and [0-9]*' $n
done
good 5 "$jobs/query-par"
good 3 "$jobs/query-parsync"
# Items 77 and 78: no neighbourhood exceeds the limit; the setting that only another conduit needs changes nothing and prints nothing.
SETTINGS=GASNET_SUPERNODE_MAXSIZE=1 good 3 "$jobs/query-seq"
SETTINGS="GASNET_SUPERNODE_MAXSIZE=2 GASNET_PSHM_NODES=3" good 3 "$jobs/query-par"
says 'GASNET_PSHM_NODES' 0
SETTINGS=
for n in 1 8; do
    good $n "$jobs/handlers-seq"
done
good 2 "$jobs/handlers-par"
finish
