#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A start is linear: one rank of a host queries the PMIx server for the data of all ranks, and each rank maps the memory of those it
# communicates with. Counted, not timed.
. "${top_srcdir:?run through make check}/tests/job/common.sh"

# sum FIELD [RANK-PATTERN]: of all ranks, or some
sum()
{
    awk -v field="$1" -v ranks="${2:-.*}" '$2 ~ "^(" ranks "):$" {
        for (i = 3; i < NF; i += 2) { sub(",", "", $(i + 1)); if ($(i + 1) == field) n += $i } }
        END { print n + 0 }' "$scratch/out"
}

# most FIELD COUNT LIMIT: the count is at most LIMIT
most()
{
    [ "$2" -le "$3" ] || failed "$1: $2, not $3 at most"
}

SETTINGS="GASNET_SUPERNODE_MAXSIZE=0" good 32 "$jobs/start_cost-seq"
[ "$(grep -c '^rank' "$scratch/out")" = 32 ] || failed "not all of 32 ranks have printed"
# The first rank queries both keys of each rank; the others only query where the first one shares the data.
most "questions of rank 0" "$(sum gets 0)" $((2 * 32))
most "questions of the 31 others" "$(sum gets '[1-9][0-9]*')" 31
most "keys of all ranks" "$(sum puts)" $((32 * 2 + 2))
most "fences" "$(sum fences)" $((32 * 3))
# Our own, that of the next rank, which is watched, and those of parent and children in the tree.
most "rings mapped by all" "$(sum rings)" $((32 * 2 + 2 * 31))
most "segments mapped by all" "$(sum segments)" 32
[ "$(sum segments)" -eq 32 ] || failed "the segments are not found in /proc/self/maps"
# On some file systems a file for each rank costs more than the rest of its start.
most "files of the job" "$(sum files 0)" 16
# The library queries the amount of memory, and registers for membarrier, once.
most "looks at the limits on memory" "$(sum limits)" 32
most "registrations for fences" "$(sum registrations)" 32
[ "$(sum limits)" -eq 32 ] || failed "not each rank has looked at the limits on memory"

# Loading them and their dependencies would take a tenth of a rank's start. This job opens no device.
most "ranks with libibverbs, and with librdmacm" "$(sum libraries)" 0

# Only touched pages of the message rings (648 KiB and scratch) are present. If memory is short, all are made present.
present=$(sum KiB)
if [ "$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)" -gt $((8 << 20)) ] && ! grep -q '^[0-9]*$' /sys/fs/cgroup/memory.max 2>/dev/null; then
    most "KiB of message rings present" "$present" $((32 * 128))
fi
[ "$present" -ge $((32 * 4)) ] || failed "the message rings are not found"

# The host map; over the network also the addresses of ports.
[ "$(sum tables)" -eq 32 ] || failed "not each rank shares one table with the others of its host"

# Over the network on one host: peer infos and segments take a fence each; before they send, ranks meet in shared memory.
SETTINGS="GASNET_SUPERNODE_MAXSIZE=1" good 8 "$jobs/start_cost-seq"
most "fences of ranks of one host" "$(sum fences)" $((8 * 2))

# Several hosts: one leader on each, which twice queries one key of each other rank of its host, and then of each host.
SETTINGS="GASNET_SUPERNODE_MAXSIZE=0" RUN="-H =a:4,=b:4" good 8 "$jobs/start_cost-seq"
most "questions of the leaders" "$(sum gets '0|4')" $((2 * 2 * (3 + 2)))
most "questions of the others" "$(sum gets '[12356789]')" 6
# softhca needs libibverbs for devices of the kernel only.
[ -e /sys/class/infiniband_verbs ] && of_kernel=8 || of_kernel=0
[ "$(sum libraries)" -eq "$of_kernel" ] || failed "$(sum libraries) libraries of the kernel's devices in 8 ranks, not $of_kernel"
[ "$(sum tables)" -eq 16 ] || failed "not each rank shares two tables with the others of its host"
# Addresses for librdmacm are in the peer infos: no rank puts or asks for a key more.
over="GASNET_SUPERNODE_MAXSIZE=1 SOFTHCA_LINK=roce"
SETTINGS=$over RUN="-H =a:4,=b:4" good 8 "$jobs/start_cost-seq"
gets=$(sum gets) puts=$(sum puts)
SETTINGS="$over GASNET_IBV_CONNECT=rdmacm" RUN="-H =a:4,=b:4" good 8 "$jobs/start_cost-seq"
most "questions of all ranks, with librdmacm" "$(sum gets)" "$gets"
most "keys of all ranks, with librdmacm" "$(sum puts)" "$puts"
# The leader waits for a rank that is late, also where that rank has put something else meanwhile.
SETTINGS="GASNET_SUPERNODE_MAXSIZE=0 JOB_LATE_PUT=1" RUN="-H =a:2,=b:2" good 4 "$jobs/start_cost-seq"
[ "$(grep -c '^rank' "$scratch/out")" = 4 ] || failed "not all of 4 ranks have printed"
SETTINGS="GASNET_SUPERNODE_MAXSIZE=0" RUN="-H =a:1,=b:1" good 2 "$jobs/start_cost-seq"
[ "$(sum tables)" -eq 0 ] || failed "ranks that are alone on their hosts share tables"

# A missing library causes an error only when a device is opened, and not with softhca alone.
: >"$scratch/libibverbs.so.1"
SETTINGS="GASNET_SUPERNODE_MAXSIZE=$((of_kernel == 0))" good 2 env "LD_LIBRARY_PATH=$scratch" "$jobs/start_cost-seq"
SETTINGS="GASNET_SUPERNODE_MAXSIZE=1" job 2 env LD_PRELOAD= "LD_LIBRARY_PATH=$scratch" "$jobs/start_cost-seq"
fails_with 1 "without libibverbs"
says "^trunkline.*: libibverbs.so.1 can't be loaded: .*; install rdma-core's libraries (Debian: libibverbs1)"
# Nor does softhca need it to name what failed.
if [ "$of_kernel" -eq 0 ]; then
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=1 SOFTHCA_FAULT=error:op=write,status=rem_access" job 2 env "LD_LIBRARY_PATH=$scratch" "$jobs/putget-seq"
    fails_with 1 "a failed request without libibverbs"
    says '^trunkline.* failed on softhca0:1, queue pair [0-9]*: remote access error'
fi
finish
