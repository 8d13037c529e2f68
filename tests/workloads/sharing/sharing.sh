#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# sharing, short: one and several threads, and several processes of one thread, pass all checks over the network and between
# neighbours; every fault makes the run fail with the name of its check; invalid parameters are
# refused in one line.
workload=sharing
. "${top_srcdir:?run through make check}/tests/workloads/common/judge.sh"
few="--ops 3000 --buf 64K --verify full"
faults="--qps 10"

ways()
{
    few="$few --layer api"
    good_run 2
    good_run 3 --threads 2 --op write
    # A wire of 100 MB/s: data arrive long after the request, so an event that completes too early is detected.
    SETTINGS=SOFTHCA_RATE=100 good_run 2 --threads 2 --size 4K
    good_run 3 --servers 2 --op write --size 300 --qps 7
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good_run 3 --threads 4 --window 64
    [ "$(value_of ops_total)" -eq 12000 ] || failed "not 12000 operations"
    job 2 "$program" --layer api --duration 0.8 --warmup 0.1 --qps 1 --threads 2 --json "$scratch/sharing.json"
    passes "sharing by time"
    json_holds "$scratch/sharing.json" 'r["summary"]["op_count"] > 0'
}

raw_ways()
{
    good_run 2 --layer raw
    good_run 3 --layer raw --threads 4 --degree 2 --op write
    good_run 3 --layer raw --servers 2 --op write --size 300 --qps 7 --cb rail
    good_run 4 --layer raw --threads 3 --degree 1 --lock none --cb one --qps 12
    good_run 2 --layer raw --threads 2 --degree 2 --postlist 4 --op write
    [ "$(value_of posts_per_doorbell)" = 4 ] || failed "no lists of 4"
    good_run 2 --layer raw --transport uc --op write --ports 1 --base-port 1
    # A wire of 100 MB/s: data arrive long after the request, so a slot that is freed too early is
    # detected.
    SETTINGS=SOFTHCA_RATE=100 good_run 2 --layer raw --threads 2 --size 4K
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0 GASNET_SOFTHCA=always" good_run 3 --layer raw --threads 2
}

locks()
{
    for lock in verbs spin mutex combining; do
        good_run 2 --layer raw --threads 4 --qps 2 --lock $lock --op write
        good_run 2 --layer raw --threads 4 --qps 4 --degree 2 --lock $lock --cb rail
    done
    # H9: more in flight than one queue holds
    for lock in verbs combining; do
        good_run 2 --layer raw --threads 4 --qps 1 --window 64 --sq-depth 64 --lock $lock
    done
    # H6: threads that share long enough find others' completions; --route steal is reported as
    # such. On a busy machine it takes longer until two of them run at the same time.
    for seconds in 0.7 3 9; do
        job 2 "$program" --layer raw --threads 4 --qps 1 --window 64 --sq-depth 64 --duration $seconds --warmup 0.1
        [ "$status" -ne 0 ] || [ "$(value_of credit_waits)" -eq 0 ] || break
    done
    passes "threads that meet"
    [ "$(value_of credit_waits)" -gt 0 ] || failed "H9: nobody ever waited for a credit"
    for seconds in 0.2 2 8; do
        job 2 "$program" --layer raw --threads 2 --qps 3 --route steal --dst common --verify none --duration $seconds --warmup 0
        [ "$status" -ne 0 ] || break
    done
    passes "steal"
}

# H7, and the ratio: one thread does the same with shared connections and its own, and over either layer.
same()
{
    good_run 2 --layer raw --degree 1 --lock none
    digest=$(value_of sequence_digest)
    good_run 2 --layer raw --degree 1 --lock mutex
    [ "$digest" = "$(value_of sequence_digest)" ] || failed "H7: other choices"
    good_run 2 --layer both --rounds 2
    grep -q '^summary  api_per_raw  *[0-9]' "$scratch/out" || failed "no ratio"
}

# H12: swapped or lost data fail H3, and each other fault fails its own check.
raw_faults()
{
    faults="--qps 10 --layer raw"
    faulty H2 --inject misroute
    faulty H3 --inject dropcqe
    faulty H3 --inject swap --timeout-ms 500
    faulty H4 --inject lose-credit --threads 2
    faulty H5 --inject corrupt --threads 2
    faulty H5 --inject misread
    faulty H5 --inject lost-write --op write
    faulty H5 --inject stray --op write
    faulty H6 --inject misown --threads 2 --degree 1
    faults="--qps 10" faulty H7 --inject reseed --layer both --rounds 1
    faulty H8 --inject intrude --threads 2 --degree 1
}

faults()
{
    faults="--qps 10 --layer api"
    faulty H10 --inject miscount
    faulty H13 --inject awake
    idle_fault misroute:1000000
    faulty window --inject overfill
    faulty little --inject mistime
    faulty shares --inject bias
    faulty H2 --inject misroute
    faulty H3 --inject dropcqe
    faulty H5 --inject corrupt --threads 2
    faulty H5 --inject misread
    faulty H5 --inject lost-write --op write
    faulty H5 --inject stray --op write
}

refusals()
{
    ranks=3
    refused "99 is no multiple of 2 clients" --qps 99
    refused "does not divide --threads 4" --threads 4 --degree 3
    refused "all threads of a process share all connections" --layer api --threads 2 --degree 1
    refused "needs more ranks than 3 servers" --servers 3
    refused "from 1 to 4096 bytes" --size 0
    refused "needs --verify full" --inject corrupt
    refused "need writes" --inject stray --verify full
    refused "--lock is for --layer raw" --layer api --lock spin
    refused "swap, lose-credit, misown and intrude need --layer raw" --layer api --inject swap --verify full
    refused_by_device "3 groups of threads have but 2 connections" --threads 3 --degree 1 --qps 2
    refused_by_device "--window 64 is more than --sq-depth 32" --window 64 --sq-depth 32
    refused_by_device "--lock none needs --degree 1" --threads 2 --lock none
    refused_by_device "uc can't read" --transport uc
    refused_by_device "are for --op read --verify none" --route steal
    refused_by_device "rank 0 has 2 rails" --ports 3
    SETTINGS=SOFTHCA_MAX_QP=99 refused_by_device "100 queue pairs in a process, .* has 99" --qps 100
    refused "1 is no multiple of 2 clients" --qps 1
    refused_by_device "--postlist is more than --window" --postlist 9 --window 8
    ranks=1 refused "needs more ranks than 1 servers"
    no_device
}

numbers()
{
    many_refused threads 0 threads 2x qps -1 qps all degree -2 degree 1.5 size 5K window 0 window 1025 buf 64 align 12 \
        op mixed cb port lock on route any dst mine transport ud postlist 0
    refused "--lock is given twice" --lock spin --lock spin
    refused "unknown option --locks" --locks spin
    printf '#!/bin/sh\nexec %s --seed $PMIX_RANK\n' "$program" >"$scratch/differ"
    chmod 755 "$scratch/differ"
    program=$scratch/differ refused 'rank 1 was given other parameters than rank 0'
}

# Costs are reported for each thread; more threads than CPUs, and writes that are not inline, are allowed and reported.
measuring()
{
    few="--ops 20000 --buf 64K"
    meters --layer raw --qps 4
    meters --layer api --qps 4
    binds
    progress --qps 4
    few="--ops 300 --buf 64K"
    good_run 2 --threads $((2 * $(nproc))) --qps 8
    says "^sharing: $((2 * $(nproc))) threads on $(nproc) CPUs" 1
    grep -q '^env  *oversubscribed  *true$' "$scratch/out" || failed "the report does not say oversubscribed"
    [ "$(value_of thread_foreign_percent | tr -cd + | wc -c)" -eq $((2 * $(nproc) - 1)) ] || failed "not all threads are told of"
    good_run 2 --op write --size 2K
    [ "$(value_of writes_inline)" = false ] || failed "2048 bytes were inline"
    good_run 2 --op write
    [ "$(value_of writes_inline)" = true ] || failed "8 bytes were not inline"
}

lane ways ways
lane faults faults
lane raw_ways raw_ways same
lane locks locks
lane raw_faults raw_faults
lane refusals refusals
lane numbers numbers
lane measuring measuring
finish
