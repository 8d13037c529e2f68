#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The named barrier at every number of ranks, over the network, in shared memory, and where some share memory: two by two,
# and three by three; all names of algorithms are accepted, other words are not.
. "${top_srcdir:?run through make check}/tests/job/common.sh"

# each_size MAXSIZE MODE SIZES...
each_size()
{
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=$1
    mode=$2
    shift 2
    for n in "$@"; do
        ! is_cheap "$n" || good "$n" "$jobs/named_barrier-$mode"
    done
    SETTINGS=
}

each_size 1 seq 1 2 3 5 8
each_size 1 seq 11 # the first are a tree of leaders
each_size 1 par 2 4 7
each_size 0 seq 1 2 3 4 5 6 8
each_size 0 par 2 7
each_size 0 seq 12 # a tree of flags of two levels
for most in 2 3; do
    each_size $most seq 3 4 5 7 8
    each_size $most par 6
done
for word in DISSEM AMDISSEM RDMADISSEM IBDISSEM AMCENTRAL; do
    SETTINGS="GASNET_BARRIER=$word" good 2 "$jobs/hello-seq"
done
SETTINGS="GASNET_BARRIER=SOMETHING" job 2 "$jobs/hello-seq"
[ "$status" -ne 0 ] || failed "GASNET_BARRIER=SOMETHING was taken"
says "GASNET_BARRIER='SOMETHING' is not one of DISSEM"
finish
