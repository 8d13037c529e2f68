#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Many ranks on few processors, and many jobs one after the other. The times are printed, not judged, except for
# a bound that only a hang would reach.
. "$(dirname "$0")/lib.sh"

for n in 64 256; do
    promise "$n ranks"
    began=$(now)
    job -n $n "$probe" init get rank finalize
    status_is 0
    out_count "of $n" $n || fail "output lost"
    echo "$n ranks: $(awk -v a="$began" -v b="$(now)" 'BEGIN { print b - a }') s with checks"
done

promise "64 ranks end together when one fails"
job -n 64 "$probe" init get 63:exit=3 hang
status_is 3
err_lines 1

promise "the same status 20 times over"
i=0
while [ $i -lt 20 ]; do
    TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" "$GASNETRUN" -n 4 "$probe" init fence 2:kill=11 0:sleep=5 0:abort=1 hang 2>/dev/null
    status=$?
    status_is 139
    i=$((i + 1))
done
clean
exit 0
