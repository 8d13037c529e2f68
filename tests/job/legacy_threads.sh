#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# GASNet-1 from several threads of each rank at once.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
for n in 1 2 3; do
    good $n "$jobs/legacy_threads-par"
done
finish
