#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs on two virtual hosts: each is a neighbourhood, and traffic between them uses the network; messages, transfers,
# collectives and the workloads pass their checks.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=0 GASNET_QUIET=1
RUN='-H =n0:2,=n1:2'

programs()
{
    good 4 "$jobs/hello-seq"
    grep -q '^4 ranks over verbs' "$scratch/out" || failed "no network between the hosts"
    SETTINGS=GASNET_VERBOSEENV=1 good 4 "$jobs/hello-seq"
    grep -q 'neighbourhoods: 2, ranks of this one: 2' "$scratch/err" || failed "hosts are no neighbourhoods"
    grep -q '^trunkline\[0@n0\]' "$scratch/err" || failed "rank 0 is not on n0"
    good 4 "$jobs/am-seq"
    ! is_cheap 6 || good 4 "$jobs/am-par"
    good 4 "$jobs/collectives-seq" random 7 4
}

transfers()
{
    good 4 "$jobs/putget-seq" 65536
}

workload()
{
    good 4 "$top_builddir/tests/workloads/$1/$1" --layer api --verify full "${@:2}"
    grep -q 'FAIL' "$scratch/out" && failed "$1: a check has failed"
    grep -q 'PASS' "$scratch/out" || failed "$1: nothing was checked"
}

workloads()
{
    workload swarm --ops 1000 --buf 64K --op mixed:50
    workload sharing --ops 1000 --buf 64K --op write
    workload kv --ops 800 --keys 300 --put 30 --transport all
}

lane programs programs
lane transfers transfers
lane workloads workloads
finish
