#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# swarm, short: reads, writes and both pass all checks in every mode, over the network and between neighbours; every fault
# makes the run fail with the name of its check; invalid parameters are refused in one line.
workload=swarm
. "${top_srcdir:?run through make check}/tests/workloads/common/judge.sh"
few="--ops 3000 --buf 64K --verify full"
large="--ops 3000 --buf 1M --verify full"

ways()
{
    few="$few --layer api"
    good_run 3 --op mixed:30 --vms 3
    [ "$(value_of connections_in_job)" -eq 9 ] || failed "not 9 connections"
    good_run 2 --op mixed:50 --threads 2 --window 48 --size 100 --align 1
    digest=$(value_of sequence_digest)
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good_run 2 --op mixed:50 --threads 2 --window 48 --size 100 --align 1
    # S15's rule: the same choices over each path
    [ "$digest" = "$(value_of sequence_digest)" ] || failed "other choices with the same seed"
    good_run 2 --op write --size 1 --window 1
    job 2 "$program" --layer api --duration 0.2 --warmup 0.1 --size 4K --op mixed:50 --json "$scratch/swarm.json"
    passes "swarm by time"
    json_holds "$scratch/swarm.json" 'r["summary"]["op_count"] > 0'
}

modes()
{
    few="$few --layer api"
    good_run 3 --mode outbound --op mixed:50
    [ "$(value_of ops_total)" -eq 3000 ] || failed "others than rank 0 posted"
    good_run 3 --mode inbound --op mixed:50
    [ "$(value_of ops_total)" -eq 6000 ] || failed "not all but rank 0 posted"
    job 2 "$program" --ops 10 --vms 2 --dump-names
    passes names
    [ "$(grep -c '^on_phys_mc_' "$scratch/out")" -eq 8 ] || failed "not 8 names"
}

raw_ways()
{
    good_run 3 --layer raw --op mixed:30 --vms 3
    [ "$(value_of connections_in_job)" -eq 9 ] || failed "not 9 connections"
    good_run 4 --layer raw --op mixed:50 --threads 2 --vms 2 --rail-map vm
    good_run 3 --layer raw --op mixed:50 --threads 3 --cq thread
    case $(value_of rails_mops) in *+*) ;; *) failed "not two rails: $(value_of rails_mops)" ;; esac
    good_run 2 --layer raw --ports 1 --base-port 1 --threads 2
    [ "$(value_of rails_used)" = softhca1:1 ] || failed "not the rail that was asked for"
    good_run 2 --layer raw --window 32 --postlist 4 --op mixed:50
    [ "$(value_of posts_per_doorbell)" = 4 ] || failed "no lists of 4"
    good_run 2 --layer raw --transport uc --op write
    few=$large good_run 2 --layer raw --size 3000 --align 1 --op mixed:50
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0 GASNET_SOFTHCA=always" good_run 3 --layer raw --op mixed:50
}

raw_modes()
{
    job 2 "$program" --mode inbound --duration 0.8 --warmup 0
    passes "a rank that sleeps"
    python3 -c "assert 0 < $(value_of busiest_passive_cpu_percent) < 2" || failed "it did not sleep"
    good_run 3 --layer raw --mode outbound --op mixed:50
    [ "$(value_of ops_total)" -eq 3000 ] || failed "others than rank 0 posted"
    good_run 3 --layer raw --mode inbound --op mixed:50 --vms 2
    [ "$(value_of ops_total)" -eq 6000 ] || failed "not all but rank 0 posted"
}

# Few completions, and reads that are seen to arrive, in a line and in many.
selective()
{
    good_run 2 --layer raw --allsig 0
    python3 -c "assert 0.06 < $(value_of cqes_per_op) < 0.08 and $(value_of most_on_a_connection) <= $(value_of bound_on_a_connection) == 31" ||
        failed "signals are not what --unsig says"
    few=$large good_run 2 --layer raw --allsig 0 --size 1000 --align 1 --unsig 1
    good_run 3 --layer raw --allsig 0 --op write --unsig 4
    [ "$(value_of bound_on_a_thread)" -eq 14 ] || failed "not 7 writes on each of 2 connections"
    few=$large good_run 2 --layer raw --allsig 0 --op mixed:50 --size 2000 --threads 2 --vms 2 --postlist 3
    good_run 2 --layer raw --allsig 0 --cq thread --op mixed:50 --vms 3 --transport rc
}

# S10: window and signals change neither the operations nor their results.
orders()
{
    result=
    for allsig in 0 1; do
        for window in 1 16 64; do
            few=$large good_run 2 --layer raw --vms 2 --op mixed:50 --allsig $allsig --window $window
            other="$(value_of sequence_digest) $(value_of checked_reads verify) $(value_of ops_total)"
            [ "${result:-$other}" = "$other" ] || failed "S10: --allsig $allsig --window $window: $other, not $result"
            result=$other
        done
    done
    few=$large good_run 2 --layer raw --vms 2 --op mixed:50 --seed 2
    [ "$result" != "$(value_of sequence_digest) $(value_of checked_reads verify) $(value_of ops_total)" ] ||
        failed "another seed, and nothing has changed"
}

# S15, and the ratio.
layers()
{
    good_run 2 --layer both --rounds 2 --vms 2 --op mixed:20
    [ "$(grep -c '^summary  sequence_digest' "$scratch/out")" -eq 2 ] || failed "not two layers"
    [ "$(grep '^summary  sequence_digest' "$scratch/out" | sort -u | wc -l)" -eq 1 ] || failed "S15: other choices"
    grep -q '^summary  api_per_raw  *[0-9]' "$scratch/out" || failed "no ratio"
}

# S14: a run that was killed, or ran before, does not disturb the next.
killed()
{
    # shellcheck disable=SC2016 # for the shell in between
    job 2 sh -c '"$@" & [ "$PMIX_RANK" = 0 ] || { sleep 0.4; kill -9 $!; }; wait $!' sh "$program" --layer raw --duration 30
    [ "$status" -ne 0 ] || failed "a rank was killed, and all is well"
    good_run 2 --layer raw
    printf '#!/bin/sh\nexec timeout -s INT 0.5 %s "$@"\n' "$GASNETRUN" >"$scratch/interrupted"
    chmod 755 "$scratch/interrupted"
    GASNETRUN=$scratch/interrupted job 2 "$program" --layer raw --duration 30
    [ "$status" -ne 0 ] || failed "it was interrupted, and all is well"
    good_run 2 --layer raw
    good_run 2 --layer raw
}

# A port that dies: every rank ends, and a line names the queue pair.
broken()
{
    SETTINGS="GASNET_QP_TIMEOUT=8 SOFTHCA_FAULT=unplug:dev=softhca0,op=read,nth=500" job 2 "$program" --layer raw --ops 30000
    fails_with 1 "a dead port"
    says '^swarm: softhca0:1: queue pair on_phys_mc_[01]-at_thr_0-for_phys_mc_[01]-for_vm_0 to rank [01]: .*retry'
}

# S13: each fault fails its check.
raw_faults()
{
    faults="--layer raw"
    faulty S3 --inject misroute
    faulty S4 --inject corrupt --allsig 0
    faulty S4 --inject misread
    faulty S5 --inject dropcqe --op write
    faulty S6 --inject lost-write --op write --allsig 0
    faulty S7 --inject stray --op mixed:50
    faulty S8 --inject bias --vms 2
}

faults()
{
    faulty S15 --inject reseed --layer both --rounds 1
    idle_fault reseed:2 --layer both --rounds 1
    faults="--layer api"
    faulty S2 --inject recount
    faulty S3 --inject misroute
    faulty S4 --inject corrupt
    faulty S4 --inject misread
    faulty S5 --inject dropcqe --op write
    faulty S6 --inject lost-write --op write
    faulty S7 --inject stray --op mixed:50
    faulty S8 --inject bias --vms 2
    faulty S9 --inject overfill
    faulty S11 --inject miscount
    faulty S12 --inject mistime
    faulty passive --inject awake --mode outbound
    idle_fault misroute:1000000
}

# The conduit registers memory before the workload does: the first refusal that is the workload's own.
unregistered()
{
    for nth in 9 10 11 12 13 14; do
        SETTINGS="SOFTHCA_FAULT=enomem:call=reg_mr,nth=$nth" job 2 "$program" --layer raw --ops 10
        grep -q '^swarm: rank 0: the segment' "$scratch/err" && break
    done
    fails_with 2 "memory that can't be registered"
    says '^swarm: rank 0: the segment: .* register [0-9]* bytes .* limit' 1
    one_line "memory that can't be registered"
}

refusals()
{
    refused "more than a 16th of --buf" --size 8K --buf 64K
    refused "more than a 10th of --buf" --window 128 --buf 64K
    refused "'0' is not a whole number from 1 to 4096" --window 0
    refused "read|write|mixed:PERCENT" --op mixed
    refused "need writes" --inject stray --verify full
    refused "needs --verify full" --inject corrupt
    refused "--unsig is for --layer raw" --layer api --unsig 8
    refused "needs --layer both" --inject reseed --verify full
    refused "awake needs --mode" --inject awake --verify full
    refused_by_device "--sq-depth 31 is less than 2 . --unsig 16" --sq-depth 31
    refused_by_device "--sq-depth 40 is less than .* --window 64" --sq-depth 40 --window 64
    refused_by_device "--postlist 17 is more than --unsig 16" --postlist 17 --window 32
    refused_by_device "uc can't read" --transport uc
    refused_by_device "--cq thread needs --rail-map thread" --cq thread --rail-map vm
    refused_by_device "rank 0 has 2 rails" --ports 3
    refused_by_device "rank 0 has 2 rails" --base-port 2
    refused_by_device "--max-rd-atomic 255: softhca[01]:1 allows" --max-rd-atomic 255
    SETTINGS=SOFTHCA_MAX_QP=31 refused_by_device "32 queue pairs for each process .* has 31" --threads 4 --vms 8
    SETTINGS=SOFTHCA_MAX_MSG=8192 refused_by_device "--size 16384: the largest message of softhca0:1 has 8192 bytes" --op write \
        --size 16K --window 4
    unregistered
    no_device
    alone
}

# Every number of the document's list: empty, not a number, and followed by other text.
numbers()
{
    many_refused vms 0 vms 2x threads 0 threads two size 0 size 32B window 1e2 window -1 unsig 0 unsig 16: postlist 0 \
        buf 65535 align 3 max-rd-atomic 0 op write: op mixed:0 op mixed:100 op mixed:5x transport ud cq 1 mode all
    refused "--unsig is given twice" --unsig 4 --unsig 8
    refused "unknown option --unsigned" --unsigned 4
    printf '#!/bin/sh\nexec %s --layer raw --window $((16 - PMIX_RANK))\n' "$program" >"$scratch/differ"
    chmod 755 "$scratch/differ"
    program=$scratch/differ refused 'rank 1 was given other parameters than rank 0'
}

measuring()
{
    few="--ops 20000 --buf 1M"
    meters --layer raw
    meters --layer api
    binds
    progress
}

lane ways ways
lane modes modes
lane raw_ways raw_ways raw_modes
lane selective selective orders
lane layers layers broken killed
lane raw_faults raw_faults
lane faults faults
lane refusals refusals
lane numbers numbers
lane measuring measuring
finish
