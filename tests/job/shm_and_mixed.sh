#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The promises that other scripts test over the network also hold between ranks that share memory, and in mixed jobs: all three
# ranks of a host share memory, or two of three, or two and two and one.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export JOB_WORD="some word" JOB_HOSTS=1

most="am am_items attach endpoints handlers legacy named_barrier nbi negotiated query rma"
threaded="am nbi negotiated legacy" # what threads change

# through SIZE MODE PROGRAMS...
through()
{
    size=$1 mode=$2
    shift 2
    for program in "$@"; do
        good "$size" "$jobs/$program-$mode"
    done
    good "$size" "$jobs/stress-$mode" 50
    good "$size" "$jobs/random_mix-$mode" --seconds 1 --seed 5
}

# shellcheck disable=SC2086 # lists of words
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0"
    # A build for a sanitizer is slow: there only a mixed job runs in SEQ, and a pure one in PAR.
    [ "$sanitizer" != no ] || through 3 seq $most
    [ "$sanitizer" != no ] || good 3 "$jobs/putget-seq" 1048576
    through 2 par $threaded
    good 2 "$jobs/putget-parsync"
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=2"
    through 3 seq $most
    good 3 "$jobs/putget-seq" 1048576
    [ "$sanitizer" != no ] || through 5 par $threaded
}
finish
