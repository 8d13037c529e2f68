#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# sharing, short: one and several threads, and several processes of one thread, pass all checks over the network and between
# neighbours; every fault makes the run fail with the name of its check; what is no parameter is refused in one line.
workload=sharing
. "${top_srcdir:?run through make check}/tests/workloads/common/judge.sh"
few="--ops 3000 --buf 64K --verify full"
faults="--qps 10"

ways()
{
    good_run 2
    good_run 3 --threads 2 --op write
    # A wire of 100 MB/s: data come long after they were asked for, and an event that tells too early is found out.
    SETTINGS=SOFTHCA_RATE=100 good_run 2 --threads 2 --size 4K
    good_run 3 --servers 2 --op write --size 300 --qps 7
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good_run 3 --threads 4 --window 64
    [ "$(value_of ops_total)" -eq 12000 ] || failed "not 12000 operations"
    job 2 "$program" --duration 0.8 --warmup 0.1 --qps 1 --threads 2 --json "$scratch/sharing.json"
    passes "sharing by time"
    json_holds "$scratch/sharing.json" 'r["summary"]["op_count"] > 0'
}

faults()
{
    faulty H2 --inject misroute:1
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
    refused "all threads of a process share all connections" --threads 2 --degree 1
    refused "needs more ranks than 3 servers" --servers 3
    refused "from 1 to 4096 bytes" --size 0
    refused "needs --verify full" --inject corrupt
    refused "need writes" --inject stray --verify full
    refused "needs trunkline_rails.h" --layer raw
}

lane ways ways
lane faults faults
lane refusals refusals
finish
