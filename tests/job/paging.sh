#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# On-demand paging if the user asks for it (GASNET_USE_ODP) and devices have it: segments and other memory are registered for
# paging, attaching pins nothing, and read-only memory can be a source. A device without it still works.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1
cost=$jobs/segment_cost-seq

# paged RANKS PATTERN: so many ranks counted a number of registrations that matches.
paged()
{
    said=$(grep -c " paged $2\( \|\$\)" "$scratch/stats")
    [ "$said" -eq "$1" ] || failed "$said ranks registered $2 regions on demand, not $1: $(cat "$scratch/stats")"
}

# Blocks are mapped and unmapped, are read-only for a while, and reuse addresses to which a get wrote before. Registrations:
# each rank's segment, and more.
outside()
{
    export JOB_THREADS=1 GASNET_FIREHOSE_LEAST=64K GASNET_USE_ODP=1
    SETTINGS="SOFTHCA_ODP=1 GASNET_FIREHOSE_VERBOSE=1 GASNET_VERBOSEENV=1" good 2 "$jobs/remapped_memory-seq" 20
    paged 2 '[1-9][0-9]\+'
    says 'registration on the fly: .* bytes in all; paged on demand, so that nothing is pinned and nothing need be watched$' 1
    says 'firehose: [1-9][0-9]* hits, [1-9][0-9]* misses, .* 0 invalidations, 0 refusals, .* 0 queries to the kernel' 2
    SETTINGS="SOFTHCA_ODP=1 GASNET_USE_FIREHOSE=0" good 2 "$jobs/remapped_memory-seq" 5
    paged 2 1
    # It is not used unless the user asks for it.
    SETTINGS="SOFTHCA_ODP=1 GASNET_USE_ODP=0" good 2 "$jobs/remapped_memory-seq" 2
    paged 2 0
    says 'GASNET_USE_ODP' 0
}

segments()
{
    export GASNET_USE_ODP=1
    SETTINGS="SOFTHCA_ODP=1 SOFTHCA_PIN=1 GASNET_PHYSMEM_MAX=200M" good 2 "$cost" 1024 attach
    paged 2 1
    said=$(awk '/^attached 1024 / && $7 == 0 { count++ } END { print count + 0 }' "$scratch/err")
    [ "$said" -eq 2 ] || failed "$said of 2 ranks attached a GiB without memory"
    SETTINGS="SOFTHCA_ODP=1 GASNET_AD_METHOD=device" good 2 "$jobs/atomics-seq"
    paged 2 '[1-9][0-9]*'
    grep -q ' atomics [1-9]' "$scratch/stats" || failed "no atomic was the device's: $(cat "$scratch/stats")"
    # If a device's atomics can't wait for pages, it executes no atomics, and still does not pin.
    SETTINGS="SOFTHCA_ODP=2" good 2 "$jobs/atomics-seq"
    paged 2 '[1-9][0-9]*'
    grep -q ' atomics [1-9]' "$scratch/stats" && failed "an atomic was the device's: $(cat "$scratch/stats")"
}

without()
{
    export GASNET_USE_ODP=1
    good 3 "$jobs/putget-seq"
    says 'GASNET_USE_ODP=1, but the devices of 3 of 3 ranks (the first: rank 0 on ' 1
    says 'ODP' 1
    SETTINGS="GASNET_ODP_VERBOSE=2 SOFTHCA_ODP=3" good 2 "$jobs/putget-seq" 65536
    says 'device softhca0 has no on-demand paging for sends on reliable connections, so memory is pinned' 2
    paged 2 0
    SETTINGS="GASNET_ODP_VERBOSE=0" good 2 "$jobs/putget-seq" 65536
    says 'ODP' 0
}

lane outside outside
lane segments segments
lane without without
finish
