#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Collectives give the results of a serial model: random teams, sizes, roots, types, several at a time, over the network, in
# shared memory and mixed; each algorithm forced once; special promises; the collectives of GASNet-1; sums that do not
# depend on placement; and a member that dies.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_QUIET=1

# mix MODE PLACEMENT N SEED ROUNDS
mix()
{
    ! is_cheap "$3" || SETTINGS=GASNET_SUPERNODE_MAXSIZE=$2 good "$3" "$jobs/collectives-$1" random "$4" "$5"
}

network()
{
    for n in 1 2 3 5 7; do
        mix seq 1 $n 1$n 6
    done
    mix par 1 4 20 6
}

memory()
{
    for n in 2 3 6; do
        mix seq 0 $n 3$n 6
    done
    mix seq 0 4 5 30
    mix par 0 9 40 4
}

both()
{
    mix seq 2 5 50 6
    mix seq 3 8 51 4
    mix par 2 7 52 4
    [ "$sanitizer" != no ] || for kind in large everything; do
        mix $kind 1 3 60 4
        mix $kind 2 5 61 4
    done
}

threads()
{
    for placement in 0 1 2; do
        SETTINGS=GASNET_SUPERNODE_MAXSIZE=$placement good 3 "$jobs/collectives_threads-par"
    done
}

promises()
{
    for placement in 0 1 2; do
        SETTINGS=GASNET_SUPERNODE_MAXSIZE=$placement
        good 3 "$jobs/collectives-seq" items
        good 3 "$jobs/collectives-par" legacy
    done
}

# Also with one rank, at sizes for which the library would choose another algorithm, and with empty parts.
each_algorithm()
{
    for forced in broadcast=binomial broadcast=scatter_allgather reduce=binomial reduce=ring reduce_all=recursive_doubling \
        reduce_all=ring; do
        SETTINGS="GASNET_COLL_ALGORITHM=$forced,levels=no GASNET_SUPERNODE_MAXSIZE=0 GASNET_VERBOSEENV=1"
        good 5 "$jobs/collectives-seq" items
        says "^trunkline.*: collectives: ${forced%=*}: ${forced#*=}\$" 1
    done
    SETTINGS=GASNET_COLL_ALGORITHM=reduce=ring,broadcast=nonsense job 2 "$jobs/collectives-seq" items
    fails_with 2 "an unknown algorithm"
    says "GASNET_COLL_ALGORITHM=.*'broadcast=nonsense' is none of barrier=dissemination, "
}

# sums_of PLACEMENT SETTING
sums_of()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=$1 GASNET_COLL_REPRODUCIBLE=$2" good 5 "$jobs/collectives-seq" sums
    grep '^sum ' "$scratch/out" >"$scratch/sums.$1.$2"
    [ "$(wc -l <"$scratch/sums.$1.$2")" -eq 6 ] || failed "there are not six sums"
}

# Without the setting the sums differ; otherwise this would prove nothing.
sums()
{
    for placement in 1 2 0; do
        sums_of $placement 1
        cmp -s "$scratch/sums.1.1" "$scratch/sums.$placement.1" || failed "sums depend on GASNET_SUPERNODE_MAXSIZE=$placement"
    done
    sums_of 2 0
    ! cmp -s "$scratch/sums.1.1" "$scratch/sums.2.0" || failed "sums do not depend on placement, which makes this no test"
}

death()
{
    for placement in 0 1; do
        SETTINGS=GASNET_SUPERNODE_MAXSIZE=$placement job 3 "$jobs/collectives-seq" die
        fails_with 137 "die"
        says 'rank 1 (.*pid [0-9]*).* was killed by signal 9\|rank 1 (.*, pid [0-9]*) died: it was killed'
    done
}

# A shell between the launcher and rank 1 hides its death; its neighbours find it.
unseen_death()
{
    # shellcheck disable=SC2016 # for the shell in between
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 job 3 sh -c '"$@"; status=$?; [ "$PMIX_RANK" != 1 ] || sleep 60; exit $status' sh \
        "$jobs/collectives-seq" die
    fails_with 1 "a death that the launcher does not see"
    says '^trunkline.*neighbour rank 1 (.*, pid [0-9]*) died: it was killed' 1
}

# wrong NUMBER TEXT
wrong()
{
    job 2 "$jobs/collectives-seq" wrong "$1"
    [ "$status" -ne 0 ] || failed "mistake $1 was accepted"
    says "$2"
}

mistakes()
{
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=1
    wrong 0 'rank 0 of a team sent 50 bytes at offset 0 to a collective in which this rank, 1 of that team, expects 51 bytes'
    wrong 1 'rank 0 of a team sent 50 bytes at offset 0 to a collective in which this rank, 1 of that team, expects 51 bytes'
    wrong 2 'gex_Coll_ReduceToAllNB: there is no operation 0x4 for type 0x10'
    wrong 3 'gex_Coll_ReduceToAllNB: dt_sz is 4, and elements of type 0x8 have 8 bytes'
    wrong 4 'gex_Coll_ReduceToAllNB: 0 elements of 8 bytes; there must be one at least'
    wrong 5 'gex_Coll_ReduceToAllNB: GEX_OP_USER without user_op'
    wrong 6 'gex_Coll_BroadcastNB: root 2 is not in the team of 2'
    wrong 7 'gex_Coll_ReduceToAllNB: 2305843009213693953 elements of 8 bytes are more than memory can hold'
    wrong 8 'gex_Coll_BroadcastNB: tm is a pair; collectives need a team'
}

if [ "$sanitizer" != no ]; then
    lane network network memory
    lane both both threads
    finish
fi
lane network network sums mistakes
lane memory memory promises
lane both both each_algorithm threads death unseen_death
finish
