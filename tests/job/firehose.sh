#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Memory outside of the segment is registered on demand, and invalidated when it is unmapped: blocks are mapped and unmapped at the
# same addresses under traffic, and every byte is checked. Memory that the device refuses goes through bounce buffers.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
rounds=30
[ "$sanitizer" = no ] || rounds=15
export JOB_THREADS=1 GASNET_FIREHOSE_LEAST=64K # smaller blocks make more of them
counted='firehose: [1-9][0-9]* hits, [1-9][0-9]* misses'

# Under that tool everything takes a hundred times as long.
if [ "$sanitizer" = thread ]; then
    export JOB_THREADS=4 TSAN_OPTIONS="suppressions=$top_srcdir/tests/job/random_mix.supp ${TSAN_OPTIONS:-}"
    SETTINGS="GASNET_FIREHOSE_VERBOSE=1" good 2 "$jobs/remapped_memory-par" 12
    says "$counted" 2
    finish
fi

SETTINGS="GASNET_VERBOSEENV=1" good 2 "$jobs/remapped_memory-seq" 1
if grep -q 'no registration outlives its transfer: userfaultfd is forbidden' "$scratch/err"; then
    SETTINGS= good 2 "$jobs/remapped_memory-seq" $rounds
    [ "$failures" -ne 0 ] || skip "userfaultfd is forbidden here, so no registration is kept"
    finish
fi
says 'registration on the fly: from 65536 bytes on; .* watched by userfaultfd' 1
# The kernel reports the changes of all threads.
knows_threads=no
if [ "$sanitizer" = no ] && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] && grep -q '^Seccomp:[[:space:]]*0$' /proc/self/status; then
    knows_threads=yes
    says 'queried before each transfer once the client has two threads' 1
fi

SETTINGS="GASNET_FIREHOSE_VERBOSE=1" good 2 "$jobs/remapped_memory-seq" $rounds
says "$counted" 2
says 'firehose: .* [1-9][0-9]* invalidations, [1-9][0-9]* refusals' 2 # of read-only memory
# Hundreds of transfers with one client thread, a thousand with four; few come before the monitor's thread runs.
[ $knows_threads = no ] || says 'firehose: .*, [0-9]\{1,2\} queries to the kernel' 2

export JOB_THREADS=4
SETTINGS="GASNET_FIREHOSE_VERBOSE=1" good 2 "$jobs/remapped_memory-par" $rounds
says "$counted" 2
says 'firehose: .*, [0-9]\{3,\} queries to the kernel' 2
# Minimal space in the cache and in the queue; odd regions.
SETTINGS="GASNET_FIREHOSE_VERBOSE=1 GASNET_FIREHOSE_MAXVICTIM_R=3 GASNET_NETWORKDEPTH_PP=2 GASNET_BBUF_COUNT=1" \
    good 2 "$jobs/remapped_memory-par" $rounds
says 'firehose: .* misses, [1-9][0-9]* evictions' 2
SETTINGS="GASNET_FIREHOSE_MAXREGION_SIZE=16K GASNET_FIREHOSE_LEAST=4K" good 3 "$jobs/remapped_memory-par" $rounds
SETTINGS="GASNET_FIREHOSE_MAXREGION_SIZE=2M GASNET_SUPERNODE_MAXSIZE=2" good 3 "$jobs/remapped_memory-par" $rounds

# One rank of a host warns of a size that can't be pinned; here none of it is used.
SETTINGS="JOB_THREADS=1 GASNET_PHYSMEM_MAX=64M GASNET_FIREHOSE_MAXVICTIM_M=48" good 2 "$jobs/remapped_memory-seq" 1
says 'GASNET_FIREHOSE_MAXVICTIM_M add up to 50331648 bytes for each rank, but 33554432 can be pinned' 1

# Nothing is registered.
SETTINGS="GASNET_USE_FIREHOSE=0 GASNET_FIREHOSE_VERBOSE=1" good 2 "$jobs/remapped_memory-par" $rounds
says 'firehose:' 0

# The device refuses to register: each rank reports it once.
SETTINGS="GASNET_FIREHOSE_VERBOSE=1 SOFTHCA_FAULT=enomem:call=reg_mr,after=8" good 2 "$jobs/remapped_memory-par" $rounds
says 'for the local side of a transfer: Cannot allocate memory; .*such transfers go through bounce buffers' 2
says 'firehose: .* [1-9][0-9]* refusals' 2

# The start record says what was chosen.
SETTINGS="JOB_THREADS=1 GASNET_VERBOSEENV=1 GASNET_FIREHOSE_MONITOR=none" good 2 "$jobs/remapped_memory-seq" 1
says 'registration on the fly: from 65536 bytes on; .* NOT watched' 1
finish
