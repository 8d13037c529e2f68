#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a host's PMIx server keeps about a rank of the job does not grow with the job: infos are given to libpmix for ranks of the host alone,
# and memory for each rank is as doc/scaling.md promises. Counts, not times; make bench-scaling has those, up to a million ranks.
set -u
registration=${top_builddir:?run through make check}/tests/launcher/registration
[ "${TRUNKLINE_TEST_SANITIZER:-no}" = no ] || { echo "a sanitizer has memory of its own"; exit 77; }
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

fail()
{
    echo "$*"
    exit 1
}

for ranks in 1000 10000 100000; do
    timeout 60 "$registration" job $ranks 100 >>"$out" || fail "$ranks ranks: status $?"
done
cat "$out"
[ "$(awk '{ print $4 }' "$out" | sort -u | wc -l)" = 1 ] || fail "infos given to libpmix grow with the job, not with the ranks of the host"
# Without what is there for no ranks. 1750 bytes on 2026-11-28.
awk '{ ranks[NR] = $2; bytes[NR] = $6 }
    END { for (i = 2; i <= NR; i++) {
        each = (bytes[i] - bytes[i - 1]) / (ranks[i] - ranks[i - 1])
        if (!(each > 100 && each <= 2048)) { printf "%d bytes for each rank from %d to %d, not 100 to 2048\n", each, ranks[i - 1], ranks[i]; exit 1 } } }' "$out" ||
    exit 1
for words in "job 0 1" "job 10 65536" "clients x"; do
    # shellcheck disable=SC2086 # words
    "$registration" $words >"$out" 2>&1
    status=$?
    [ $status = 2 ] && grep -q "is not a number from 1 to" "$out" || fail "registration $words: status $status: $(cat "$out")"
done
