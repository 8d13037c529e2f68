#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Segments and endpoints that clients create, and attaching that fails on one rank.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
for n in 1 2 5; do
    good $n "$jobs/endpoints-seq"
    good $n "$jobs/endpoints-par" bound
done
for n in 1 2 4; do
    good $n "$jobs/attach-seq"
    # Warnings that the client switched off are not printed.
    says '^trunkline' 0
    within 20
done
good 3 "$jobs/attach-par"
SETTINGS=GASNET_MAX_SEGSIZE=32M/P good 3 "$jobs/attach-seq"
SETTINGS=GASNET_MAX_SEGSIZE=96M/H good 2 "$jobs/attach-par"
SETTINGS=
good 3 "$jobs/attach-seq" never
finish
