#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Short-lived teams use separate memory in collectives, whether all get a channel or not; collectives wake sleeping members.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
for channels in 0 1 3 16; do
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0 GASNET_COLL_CHANNELS=$channels" good 3 "$jobs/coll_channels-seq"
done
SETTINGS="GASNET_SUPERNODE_MAXSIZE=2 GASNET_COLL_CHANNELS=4" good 4 "$jobs/coll_channels-seq"
# ms; under a sanitizer more processes than CPUs take 20 on a busy machine
most=15
[ "${TRUNKLINE_TEST_SANITIZER:-no}" = no ] || most=60
SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good 2 "$jobs/coll_channels-seq" asleep $most
SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good 3 "$jobs/coll_channels-par" asleep $most
finish
