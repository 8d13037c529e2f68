#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# As many ranks as a large host has CPUs, all neighbours, on however few CPUs.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=0
limit=300 # 128 processes start on a machine that may have other work
for n in 64 128; do
    good $n "$jobs/many_ranks-seq"
    echo "$n ranks: $took s"
done
finish
