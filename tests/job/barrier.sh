#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Barriers at every number of ranks.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
for n in 1 2 3 5 7; do
    good $n "$jobs/barrier-seq"
done
for n in 2 4 8; do
    good $n "$jobs/barrier-par"
done
finish
