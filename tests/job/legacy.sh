#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# GASNet-1 in each mode: all families of calls, both starts, and what gasnet_attach() answers.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
debug=${TRUNKLINE_TEST_DEBUG:-no}

for n in 1 2 3; do
    good $n "$jobs/legacy-seq"
done
good 5 "$jobs/legacy-par"
! is_cheap 8 || good 8 "$jobs/legacy-par"
good 2 "$jobs/legacy-parsync"
SETTINGS="LEGACY_SLOW=1 SOFTHCA_FAULT=delay:us=20000,op=write;delay:us=20000,op=send" good 2 "$jobs/legacy-seq" slow
# A fill sends its value: not one write for each piece of 4 times 4 MiB.
good 2 "$jobs/legacy-seq" fills
if needs_softhca; then
    writes=$(sed -nE 's/^softhca: .* writes ([0-9]+) .*/\1/p' "$scratch/stats" | sort -n | tail -1)
    [ "${writes:-99999}" -lt 60 ] || failed "fills: ${writes:-?} writes"
fi
for scenario in duplicate low null small ex; do
    [ "$sanitizer" != no ] || good 1 "$jobs/legacy-seq" $scenario
    good 3 "$jobs/legacy-par" $scenario
done
# oldclient N MODE
oldclient()
{
    good "$1" "$jobs/oldclient-$2" 300
    grep -qx 'sum 44850' "$scratch/out" || failed "oldclient-$2 with $1: $(cat "$scratch/out")"
}
oldclient 1 seq
oldclient 5 seq
oldclient 2 par
job 3 "$jobs/legacy-seq" exit
fails_with 7 "exit between init and attach"

# mistake SCENARIO TEXT: the job ends with this line.
mistake()
{
    job 2 "$jobs/legacy-seq" "$1"
    [ "$status" -ne 0 ] || failed "scenario $1 was accepted"
    says "^trunkline.*$2"
}
mistake count 'gasnet_AMRequestShort: numargs is 1, but 2 arguments are given'
[ "$debug" = yes ] || finish
mistake unflagged 'gasnet_put was called, but gex_Client_Init was called without GEX_FLAG_USES_GASNET1'
mistake outside 'gasnet_memset: .* is not inside the segment of rank 1'
finish
