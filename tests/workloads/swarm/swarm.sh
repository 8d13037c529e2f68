#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# swarm, short: reads, writes and both pass all checks in every mode, over the network and between neighbours; every fault
# makes the run fail with the name of its check; what is no parameter is refused in one line.
workload=swarm
. "${top_srcdir:?run through make check}/tests/workloads/common/judge.sh"
few="--ops 3000 --buf 64K --verify full"

ways()
{
    good_run 3 --op mixed:30 --vms 3
    [ "$(value_of connections_in_job)" -eq 9 ] || failed "not 9 connections"
    good_run 2 --op mixed:50 --threads 2 --window 48 --size 100 --align 1
    digest=$(value_of sequence_digest)
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good_run 2 --op mixed:50 --threads 2 --window 48 --size 100 --align 1
    # S15's rule: the same choices, whatever they travel by
    [ "$digest" = "$(value_of sequence_digest)" ] || failed "other choices with the same seed"
    good_run 2 --op write --size 1 --window 1
    job 2 "$program" --duration 0.2 --warmup 0.1 --size 4K --op mixed:50 --json "$scratch/swarm.json"
    passes "swarm by time"
    json_holds "$scratch/swarm.json" 'r["summary"]["op_count"] > 0'
}

modes()
{
    good_run 3 --mode outbound --op mixed:50
    [ "$(value_of ops_total)" -eq 3000 ] || failed "others than rank 0 posted"
    good_run 3 --mode inbound --op mixed:50
    [ "$(value_of ops_total)" -eq 6000 ] || failed "not all but rank 0 posted"
    job 2 "$program" --ops 10 --vms 2 --dump-names
    passes names
    [ "$(grep -c '^on_phys_mc_' "$scratch/out")" -eq 8 ] || failed "not 8 names"
}

faults()
{
    faulty S3 --inject misroute:1
    faulty S4 --inject corrupt
    faulty S4 --inject misread
    faulty S5 --inject dropcqe --op write
    faulty S6 --inject lost-write --op write
    faulty S7 --inject stray --op mixed:50
}

refusals()
{
    refused "more than a 16th of --buf" --size 8K --buf 64K
    refused "more than a 10th of --buf" --window 128 --buf 64K
    refused "'0' is not a whole number from 1 to 4096" --window 0
    refused "read|write|mixed:PERCENT" --op mixed
    refused "need writes" --inject stray --verify full
    refused "needs --verify full" --inject corrupt
    refused "needs trunkline_rails.h" --layer raw
    alone
}

lane ways ways
lane modes modes
lane faults faults
lane refusals refusals
finish
