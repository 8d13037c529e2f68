#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The library's counters agree with a program's own counts, over the network and in shared memory, in each mode; statistics
# are written however a rank ends; a file that can't be written causes a message, and the job runs.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
shopt -s extglob
names="short_requests medium_requests long_requests short_replies medium_replies shorts_received mediums_received longs_received"

# of FILE NAME: a counter of a file for programs; `puts` and `gets` stand for all paths, and so on.
of()
{
    tr '{,}' '\n\n\n' <"$1" | awk -F: -v name="$2" '
        { gsub(/"/, "") }
        $1 == "sizes" { in_sizes = 1 }
        in_sizes && NF == 2 && $2 == "" { path = $1; next }
        in_sizes && NF == 2 { kind = path; sub(/_.*/, "", kind); sum[kind ":" $1] += $2; next }
        NF == 2 {
            sum[$1] += $2
            if ($1 ~ /^(puts|gets)_/) sum[substr($1, 1, 4)] += $2
            if ($1 ~ /^(put|get|message)_bytes_/) { kind = $1; sub(/_bytes_.*/, "_bytes", kind); sum[kind] += $2 }
        }
        END { print sum[name] + 0 }'
}

# same RANKS: the files of all ranks agree with the ranks' own counts.
same()
{
    for ((rank = 0; rank < $1; rank++)); do
        [ -s "$scratch/expected.$rank" ] && [ -s "$scratch/stats-$rank.json" ] || {
            failed "rank $rank left no counts or no statistics"
            continue
        }
        while read -r name number; do
            found=$(of "$scratch/stats-$rank.json" "$name")
            [ "$found" = "$number" ] || failed "rank $rank: $name is $found, the program counted $number"
        done <"$scratch/expected.$rank"
    done
}

# mix RANKS PROGRAM
mix()
{
    rm -f "$scratch"/expected.* "$scratch"/stats-*.json
    SETTINGS="GASNET_STATSFILE=$scratch/stats-%.json $SETTINGS" good "$@" "$scratch/expected"
    same "$1"
}

network_seq()
{
    COUNTERS_SEED=$RANDOM
    echo "COUNTERS_SEED=$COUNTERS_SEED"
    SETTINGS="COUNTERS_SEED=$COUNTERS_SEED" mix 2 "$jobs/counters-seq"
    # Refused ones are not counted.
    SETTINGS="COUNTERS_SEED=$COUNTERS_SEED GASNET_AM_CREDITS_PP=1 GASNET_NETWORKDEPTH_PP=2" mix 2 "$jobs/counters-seq"
    # By chance 5 to 15 in each rank
    [ $(($(of "$scratch/stats-0.json" messages_cancelled) + $(of "$scratch/stats-1.json" messages_cancelled))) -gt 5 ] ||
        failed "few messages were cancelled"
    [ "$(of "$scratch/stats-0.json" put_bytes_neighbours)" = 0 ] || failed "puts over the network counted among neighbours"
    [ "$(of "$scratch/stats-0.json" credit_waits)" -gt 0 ] || failed "nothing waited for one credit"
    # Immediate commits find no buffer with these settings.
    SETTINGS="COUNTERS_SEED=$COUNTERS_SEED GASNET_BBUF_COUNT=1 GASNET_NETWORKDEPTH_PP=3" mix 2 "$jobs/counters-seq"
    SETTINGS="COUNTERS_SEED=$COUNTERS_SEED GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=20" mix 3 "$jobs/counters-seq"
}

# Also with shared receive queues, with XRC, and with ports that replace each other.
kinds()
{
    few="GASNET_BBUF_COUNT=1 GASNET_NETWORKDEPTH_PP=3"
    for mode in seq par; do
        SETTINGS="$few GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=20 GASNET_USE_XRC=1 GASNET_SUPERNODE_MAXSIZE=2" mix 4 "$jobs/counters-$mode"
        SETTINGS="$few SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2" mix 2 "$jobs/counters-$mode"
    done
    SETTINGS="COUNTERS_THREADS=4 GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=20" mix 3 "$jobs/counters-par"
}

shared_seq()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0" mix 2 "$jobs/counters-seq"
    [ "$(of "$scratch/stats-0.json" put_bytes_network)" = 0 ] || failed "puts in shared memory counted on the network"
    mix 1 "$jobs/counters-seq"
    [ "$(of "$scratch/stats-0.json" puts_self)" -gt 0 ] || failed "no put of the rank to itself"
}

threads()
{
    SETTINGS="COUNTERS_THREADS=4" mix 2 "$jobs/counters-par"
    SETTINGS="COUNTERS_THREADS=4 GASNET_SUPERNODE_MAXSIZE=0" mix 2 "$jobs/counters-par"
}

# ends HOW WORDS: rank 0 ends in this way; its statistics have its counts and these words.
ends()
{
    rm -f "$scratch"/expected.* "$scratch"/stats-*.json
    SETTINGS="GASNET_STATSFILE=$scratch/stats-%.json COUNTERS_END=$1" job 2 "$jobs/counters-seq" "$scratch/expected"
    [ "$status" -ne 0 ] || failed "the job ended with 0 after $1"
    grep -q "\"end\":\"$2\"" "$scratch/stats-0.json" || failed "$1: no statistics that say '$2': $(cat "$scratch/stats-0.json")"
    same 1
}

abnormal()
{
    if [ "$sanitizer" = no ]; then # a sanitizer reports these in its own way
        ends abort "a fatal signal"
        ends segv "a fatal signal"
    fi
    ends signal "ended by SIGTERM"
}

files()
{
    # shared by ranks, for people, masked, and of one rank only
    echo old >"$scratch/shared"
    SETTINGS="GASNET_STATSFILE=$scratch/shared GASNET_STATSMASK=ap" good 2 "$jobs/counters-seq" "$scratch/expected"
    [ "$(grep -c 'statistics of rank' "$scratch/shared")" = 2 ] || failed "not both ranks in a file that they share"
    grep -q old "$scratch/shared" && failed "an old file was not begun anew"
    grep -q '^\[[01]\] P ' "$scratch/shared" || failed "no puts for people"
    grep -q '^\[[01]\] [^APs]' "$scratch/shared" && failed "GASNET_STATSMASK=ap has more than A and P"
    SETTINGS="GASNET_STATSFILE=- GASNET_STATSNODES=1" good 2 "$jobs/counters-seq" "$scratch/expected"
    grep -q 'statistics of rank 1' "$scratch/err" || failed "no statistics on standard error"
    grep -q 'statistics of rank 0' "$scratch/err" && failed "GASNET_STATSNODES=1 has rank 0 write too"
    SETTINGS="GASNET_STATSFILE=- GASNET_STATSNODES=*" good 2 "$jobs/counters-seq" "$scratch/expected"
    says 'statistics of rank [01]' 2
    for file in /dev/full "$scratch/none/here-%"; do
        SETTINGS="GASNET_STATSFILE=$file" job 2 "$jobs/counters-seq" "$scratch/expected"
        fails_with 74 "GASNET_STATSFILE=$file"
        [ "$(grep -c 'GASNET_STATSFILE: cannot' "$scratch/err")" = 2 ] || failed "not a line of each rank for $file"
    done
    # Sums over ranks are those of the ranks' own files.
    rm -f "$scratch"/stats-*.json
    SETTINGS="GASNET_STATSFILE=$scratch/stats-%.json GASNET_STATS_SUMMARY=1" good 3 "$jobs/counters-seq" "$scratch/expected"
    summary=$(grep '^{"summary":3,"ranks":3,' "$scratch/stats-0.json")
    for name in $names; do
        sum=0 most=0
        for rank in 0 1 2; do
            value=$(of <(head -n 1 "$scratch/stats-$rank.json") "$name")
            sum=$((sum + value)) most=$((value > most ? value : most))
    done
        [[ $summary == *"\"$name\":{\"sum\":$sum,"* && $summary == *"\"$name\":{"*([!}])"\"max\":$most,"* ]] ||
            failed "summary: $name is not $sum, at most $most: $summary"
    done
    SETTINGS="GASNET_STATSFILE=$scratch/people-% GASNET_STATS_SUMMARY=1" good 2 "$jobs/counters-seq" "$scratch/expected"
    grep -q '^summary of 2 of 2 ranks' "$scratch/people-0" || failed "no summary for people"
    # Text that the program adds; the last counts do not include those before a reset.
    SETTINGS="GASNET_STATSFILE=$scratch/tools-% COUNTERS_TOOLS=1" good 2 "$jobs/counters-seq" "$scratch/expected"
    for line in 'H forced "1"' 'H not masked 1' 'H counted at the end: 17'; do
        [ "$(grep -cxF "$line" "$scratch/tools-1")" = 1 ] || failed "not once: $line"
    done
    grep -q masked "$scratch/tools-1" && [ "$(grep -c masked "$scratch/tools-1")" = 1 ] || failed "a masked line was printed"
    [ "$(grep -c 'statistics of rank 1' "$scratch/tools-1")" = 2 ] || failed "not two statistics"
    [ "$(grep -c '^A Short requests' "$scratch/tools-1")" = 1 ] || failed "a reset left counts"
    SETTINGS="COUNTERS_TOOLS=1" good 2 "$jobs/counters-seq" "$scratch/expected"
    SETTINGS="GASNET_STATSMASK=P1" job 1 "$jobs/counters-seq" "$scratch/expected"
    [ "$status" -ne 0 ] && grep -q "GASNET_STATSMASK='P1'" "$scratch/err" || failed "a mask with a digit was taken"
    for wrong in GASNET_STATSMASK=zz GASNET_STATSNODES=x GASNET_STATSNODES=3-1 GASNET_STATSNODES=0x1 GASNET_TRACENODES=0-; do
        SETTINGS=$wrong job 1 "$jobs/counters-seq" "$scratch/expected"
        fails_with 2 "$wrong"
        says "${wrong%=*}='${wrong#*=}': not " 1
    done
    SETTINGS="GASNET_STATSFILE=$scratch/none GASNET_STATSMASK=^PGABCRVKSIH GASNET_STATSNODES=0,2-5" good 1 "$jobs/counters-seq" "$scratch/expected"
}

lane network network_seq
lane kinds kinds
lane shared shared_seq
lane threads threads
lane abnormal abnormal
lane files files
finish
