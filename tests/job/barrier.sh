#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Barriers at every number of ranks, over the network, in shared memory, and in neighbourhoods of two and of three; with threads;
# and a tree of flags with two levels.
. "${top_srcdir:?run through make check}/tests/job/common.sh"

# each_size MODE SIZES...
each_size()
{
    mode=$1
    shift
    for n in "$@"; do
        ! is_cheap "$n" || good "$n" "$jobs/barrier-$mode"
    done
}

network()
{
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=1
    each_size seq 1 2 3 5 7
    each_size seq 11 # the first are a tree of leaders
    each_size par 2 4 8
}

memory()
{
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0
    each_size seq 1 2 3 4 5 6 7
    each_size par 2 8
    ! is_cheap 64 || good 64 "$jobs/barrier-seq" 21
}

both()
{
    for most in 2 3; do
        SETTINGS=GASNET_SUPERNODE_MAXSIZE=$most
        each_size seq 3 4 5 7 8
        each_size par 6
    done
}

threads()
{
    for most in 0 1 2; do
        SETTINGS=GASNET_SUPERNODE_MAXSIZE=$most
        good 3 "$jobs/barrier_threads-par"
    done
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0
    ! is_cheap 6 || good 6 "$jobs/barrier_threads-par"
}

network
memory
both
threads
finish
