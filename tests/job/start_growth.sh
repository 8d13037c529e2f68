#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a rank costs at the start does not depend on how many there are: jobs of 32 and 128 ranks over the network of one host, counted by
# the kernel, not timed. doc/scaling.md says what grows how; the limits leave space for connections, whose number grows with the logarithm.
# A rank also reads the names of other jobs' sockets, up to the first one of its own: so a larger job beside this one costs another attempt.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
[ "$sanitizer" = no ] || skip "sanitizers have mappings and read files of their own"
grep -q '^rchar' /proc/self/io 2>/dev/null || skip "this kernel does not count what processes read (CONFIG_TASK_IO_ACCOUNTING)"
export GASNET_CONNECT_STATIC=0 GASNET_USE_FIREHOSE=0

# each FIELD: the median of the ranks
each()
{
    awk -v field="$1" '/^rank/ { for (i = 3; i < NF; i += 2) { sub(",", "", $(i + 1)); if ($(i + 1) == field) print $i } }' "$scratch/out" |
        sort -n | awk '{ at[NR] = $1 } END { print at[int((NR + 1) / 2)] + 0 }'
}

# counted RANKS: what a rank costs in such a job: bytes, reads, faults, mappings; bytes and KiB of the launcher
counted()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=1" good "$1" "$jobs/start_growth-seq"
    awk -v n="$1" -v counts="$(each bytes) $(each reads) $(each faults) $(each mappings)" \
        '/^launcher/ { printf "%s %d %d\n", counts, $2 / n, $4 / n }' "$scratch/out" >"$scratch/counts"
}

# compare: one line for each count that grew; the limits are percents. Of the launcher's memory most is constant.
compare()
{
    awk 'BEGIN { split("bytes read:calls of read:page faults:mappings:bytes of the launcher:KiB of the launcher", name, ":")
                 split("110 120 120 120 120 100", limit) }
        { for (i = 1; i <= 6; i++) at[NR, i] = $i }
        END { for (i = 1; i <= 6; i++) if (at[1, i] <= 0 || at[2, i] * 100 > at[1, i] * limit[i])
            printf "%s for a rank: %d with 32 ranks, %d with 128, not %d %% of it at most\n", name[i], at[1, i], at[2, i], limit[i] }' "$1" "$2"
}

# What a start over the network costs beside PMIx: pages that the library, the device and the client touch. It was 158 on 2026-11-28, and 225
# when libibverbs was loaded for devices that the kernel has not, and queues of softhca came from the heap.
own_most=180
[ "$(getconf PAGESIZE)" = 4096 ] && [ ! -e /sys/class/infiniband_verbs ] || own_most=1000000

for attempt in 1 2 3; do
    counted 32
    own=$(each own)
    [ "$own" -gt 0 ] && [ "$own" -le "$own_most" ] || failed "page faults of a rank since PMIx_Init: $own, not $own_most at most"
    mv "$scratch/counts" "$scratch/few"
    counted 128
    echo "32 ranks: $(cat "$scratch/few"); 128: $(cat "$scratch/counts")"
    grown=$(compare "$scratch/few" "$scratch/counts")
    [ -n "$grown" ] || break
    echo "attempt $attempt: $grown"
done
[ -z "$grown" ] || failed "$grown"
finish
