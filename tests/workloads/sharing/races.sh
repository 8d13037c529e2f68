#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# H11: sharing over raw verbs in every degree and with every lock, for the thread sanitizer (make check-tsan), which makes a
# rank end with another status when it has seen a race.
workload=sharing
. "${top_srcdir:?run through make check}/tests/workloads/common/judge.sh"
few="--layer raw --interval 0.01 --ops 2000 --buf 64K --verify full --threads 4"

for lock in verbs spin mutex combining; do
    for degree in 2 4; do
        good_run 2 --qps 4 --degree $degree --lock "$lock"
        says 'ThreadSanitizer' 0
    done
    good_run 2 --degree 4 --lock "$lock" --op write --qps 1 --window 64 --sq-depth 64
    says 'ThreadSanitizer' 0
done
for cb in qp rail one; do
    good_run 2 --qps 4 --degree 1 --lock none --cb "$cb"
    says 'ThreadSanitizer' 0
done
good_run 3 --qps 4 --degree 2 --postlist 4 --op write
says 'ThreadSanitizer' 0
finish
