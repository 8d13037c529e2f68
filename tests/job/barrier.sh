#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Barriers at every number of ranks.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
for n in 1 2 3 4 5 8; do
    good $n "$jobs/barrier-seq"
    good $n "$jobs/barrier-par"
done
finish
