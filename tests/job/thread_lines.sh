#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Threads with peers of different lanes write no cache line that the other thread reads with each operation.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
[ "$sanitizer" = no ] || skip "a sanitizer keeps words of its own about all memory"
[ "$(uname -m)" = x86_64 ] || skip "made for x86-64"
[ "$(nproc)" -ge 2 ] || skip "one CPU has one lane"
# Switched off, because softhca would count all requests of the process in one word.
SETTINGS="SOFTHCA_STATS="
job 3 "$jobs/thread_lines-par"
fails_with 0
# Two lanes: the rank decides a peer's lane, not the order of connecting. Start and barriers use none of these peers.
cpus=$(taskset -cp $$ | sed 's/.*: //; s/-/,/' | cut -d, -f1,2)
SETTINGS="SOFTHCA_STATS= taskset -c $cpus"
job 16 "$jobs/thread_lines-par" 5 3 6
fails_with 0
finish
