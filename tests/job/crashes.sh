#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A hundred jobs in which a rank is killed at a random moment leave nothing behind: no process (the watchdog looks), no
# file (job looks), no System V object, and no memory.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=0

# Ranks have segments of 4 MiB, so a hundred jobs of three would leave 1200 MiB behind. The limit allows for other jobs of this
# host.
most=$((300 << 10)) # KiB
shared() { awk '/^Shmem:/ { print $2 }' /proc/meminfo; }
objects() { cat /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg 2>/dev/null | wc -l; }

# crashed FIRST: each fourth of a hundred, at moments up to a quarter of a second.
crashed()
{
    for ((i = $1; i < 100; i += 4)); do
        job 3 "$jobs/kill-seq" traffic $((1 + i * 7919 % 250 * 1000))
        fails_with 137 "crash $i"
    done
}
first() { crashed 0; }
second() { crashed 1; }
third() { crashed 2; }
fourth() { crashed 3; }

shared_before=$(shared)
objects_before=$(objects)
lane first first
lane second second
lane third third
lane fourth fourth
join_lanes
command="100 crashed jobs"
for ((try = 0; try < 20; try++)); do
    [ "$(($(shared) - shared_before))" -ge $most ] || [ "$(objects)" -gt "$objects_before" ] || break
    sleep 1
done
[ "$(($(shared) - shared_before))" -lt $most ] || failed "shared memory grew from $shared_before to $(shared) KiB"
[ "$(objects)" -le "$objects_before" ] || failed "System V objects: $(objects), before $objects_before"
finish
