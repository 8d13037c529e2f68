#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The fits of make bench-scaling find known exponents and planted mistakes, the table of doc/scaling.md agrees with its curves, and the costs
# built into --simulate with doc/scaling/costs.txt. The programs that have functions of the library and the launcher in them, with others in
# place of PMIx, link and print each cost.
set -u
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
measure=${top_srcdir:?}/tests/bench/scaling/measure
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

# refused WORDS OPTIONS: before any job is started
refused()
{
    local words=$1 status
    shift
    GASNETRUN=/bin/false top_builddir=/ "$measure" "$@" >"$out" 2>&1
    status=$?
    if [ $status -ne 2 ] || ! grep -q -- "$words" "$out"; then
        echo "measure $*: status $status, not 2 with '$words': $(tail -2 "$out")"
        exit 1
    fi
}

for test in growth costs; do
    python3 "$top_srcdir/tests/bench/scaling/test_$test.py" >"$out" 2>&1 || { cat "$out"; exit 1; }
done
refused "4 is not from 64 to 4096" --ranks 4
refused "--update needs all curves" --update --only hosts
refused "--dial is of the file of costs" --dial
measure=$top_srcdir/tests/bench/scaling/predict
refused "8 is not from 16 to 1024" --ranks 8
refused "--update needs all jobs" --update --ranks 256

# prints NAMES PROGRAM...: each with a number above 0
prints()
{
    local names=$1 found
    shift
    found=$(timeout 60 "$@" | awk 'NF == 2 && $2 > 0 { printf "%s ", $1 }')
    [ "$found" = "$names " ] || { echo "$*: costs of '$found', not of '$names'"; exit 1; }
}
prints "info.unpack peer copy.kib" "${top_builddir:?}/tests/bench/info_steps" 2000
prints "frame frame.kib" "$top_builddir/tests/bench/frame_steps"
