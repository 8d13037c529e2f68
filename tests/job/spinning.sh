#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A rank that only sends requests, or only puts and gets and waits, serves others: whatever its target, itself included, and whether
# others share memory with it or not. In the loop of a program that waits for a word of its own memory, as the owner
# of an OpenSHMEM lock does, no other call polls.
. "${top_srcdir:?run through make check}/tests/job/common.sh"

for mode in seq par; do
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=2" good 4 "$jobs/spinning-$mode"
done
finish
