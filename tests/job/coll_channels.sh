#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Short-lived teams use separate memory in collectives, whether all of them get a channel or not; sleeping members are woken.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
for channels in 0 1 3 16; do
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0 GASNET_COLL_CHANNELS=$channels" good 3 "$jobs/coll_channels-seq"
done
SETTINGS="GASNET_SUPERNODE_MAXSIZE=2 GASNET_COLL_CHANNELS=4" good 4 "$jobs/coll_channels-seq"
# ms: a sanitizer's processes, more than there are CPUs, take 20 where they share these with others'.
most=15
[ "${TRUNKLINE_TEST_SANITIZER:-no}" = no ] || most=60
SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good 2 "$jobs/coll_channels-seq" asleep $most
SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good 3 "$jobs/coll_channels-par" asleep $most
finish
