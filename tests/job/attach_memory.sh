#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The memory that attaching takes: none if no device pins it, all of it if a device does or the user requests it; and the message
# when memory is missing at a later touch.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
cost=$jobs/segment_cost-seq

# lazily RANKS: the last job's ranks attached a GiB at least without allocating its pages (item 84), which would take seconds.
lazily()
{
    said=$(awk '/^attached / && $2 >= 1024 && $5 < 1000 && $7 == 0 { count++ } END { print count + 0 }' "$scratch/err")
    [ "$said" -eq "$1" ] || failed "$said of $1 ranks attached a GiB within a second and without memory"
}

neighbours()
{
    export GASNET_SUPERNODE_MAXSIZE=0
    SETTINGS="GASNET_MAX_SEGSIZE=1T" good 2 "$cost" max attach
    lazily 2
    good 2 "$cost" max attach
    lazily 2
    SETTINGS="GASNET_SEGMENT_RESERVE=1" good 2 "$cost" 80 attach
    says '^attached 80 MiB .* 80 MiB present' 2
}

network()
{
    export GASNET_SUPERNODE_MAXSIZE=1
    # GASNET_PHYSMEM_MAX is for devices that pin, which softhca does with SOFTHCA_PIN=1.
    SETTINGS="GASNET_MAX_SEGSIZE=1T GASNET_PHYSMEM_MAX=200M" good 2 "$cost" max attach
    lazily 2
    SETTINGS="SOFTHCA_PIN=1 GASNET_PHYSMEM_MAX=200M" good 2 "$cost" max attach
    says '^attached 75 MiB .* 75 MiB present' 2
    SETTINGS="SOFTHCA_PIN=1 GASNET_PHYSMEM_MAX=200M" job 2 "$cost" 76 attach
    fails_with 1
    says '^trunkline.*gex_Segment_Attach: .* not between 1 and 78643200'
    # Only FAST registers the segment as a whole; ranks that share memory open no device.
    SETTINGS="SOFTHCA_PIN=1 GASNET_SUPERNODE_MAXSIZE=0" good 2 "$cost" max attach
    lazily 2
}

touches()
{
    export GASNET_SUPERNODE_MAXSIZE=0
    job 2 "$cost" 1 cut
    fails_with 135
    says '^trunkline\[1@.*died of SIGBUS at byte 4096 of its segment (1048576 bytes): its file was truncated$' 1
    says '^trunkline' 1
    job 2 "$cost" 1 cut-neighbour
    fails_with 135
    says '^trunkline\[0@.*died of SIGBUS at byte 4096 of the segment of rank 1 (1048576 bytes): ' 1
    says '^trunkline' 1
    # A sanitizer prints its own report instead.
    if [ "$sanitizer" = no ]; then
        SETTINGS="GASNET_NO_CATCH_SIGNAL=BUS" job 2 "$cost" 1 cut
        fails_with 135
        says '^trunkline' 0
    fi
}

lane neighbours neighbours
lane network network
lane touches touches
finish
