#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The named barrier at every number of ranks; all words for the algorithm are taken, others are not.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
for n in 1 2 3 5 8; do
    good $n "$jobs/named-seq"
done
for n in 2 4 7; do
    good $n "$jobs/named-par"
done
for word in DISSEM AMDISSEM RDMADISSEM IBDISSEM AMCENTRAL; do
    SETTINGS="GASNET_BARRIER=$word" good 2 "$jobs/hello-seq"
done
SETTINGS="GASNET_BARRIER=SOMETHING" job 2 "$jobs/hello-seq"
[ "$status" -ne 0 ] || failed "GASNET_BARRIER=SOMETHING was taken"
says "GASNET_BARRIER='SOMETHING' is not one of DISSEM"
finish
