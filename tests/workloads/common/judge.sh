# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What the scripts of the workloads share; sourced, not run. Sets $program from the name in $workload; $few are the options
# of every run that is judged, $faults those of runs that must fail besides, $ranks how many ranks refusals and faults have.

. "${top_srcdir:?run through make check}/tests/job/common.sh"
program=$top_builddir/tests/workloads/${workload:?}/$workload
few=
faults=
ranks=2
# What goes over the network has two rails.
export SOFTHCA_HCAS=2 GASNET_NUM_QPS=2

# good_run N ARGS...: passes, and says so.
good_run()
{
    run_ranks=$1
    shift
    # shellcheck disable=SC2086 # a list of words
    job "$run_ranks" "$program" $few "$@"
    passes "$workload $*"
    grep -q '^PASS$' "$scratch/out" || failed "$workload $*: no PASS"
}

# faulty CHECK ARGS...: status 1, and the check that is there for it failed.
faulty()
{
    check=$1
    shift
    # shellcheck disable=SC2086
    job "$ranks" "$program" $few $faults "$@"
    fails_with 1 "$workload $*"
    says "^$workload: $check failed" 1
    grep -q '^FAIL$' "$scratch/out" || failed "$workload $*: no FAIL"
}

# refused TEXT ARGS...: status 2, and one line.
refused()
{
    text=$1
    shift
    job "$ranks" "$program" "$@"
    fails_with 2 "$workload $*"
    says "^$workload: .*$text" 1
    one_line "$workload $*"
}

one_line()
{
    [ "$(grep -vc 'using softhca' "$scratch/err")" -eq 1 ] || failed "$1: more than one line"
}

# alone: one rank is not enough.
alone()
{
    ranks=1 refused "needs at least 2 ranks"
}

# refused_by_device TEXT ARGS...: the same for what only the rails can tell.
refused_by_device()
{
    refused "$1" --layer raw "${@:2}"
}

# no_device: over raw verbs there is nothing to do then.
no_device()
{
    [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ] || return
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0" job 2 "$program" --layer raw --ops 10
    fails_with 77 "$workload without a device"
    says "^$workload: rank 0: no RDMA device on this host" 1
    one_line "$workload without a device"
}

# value_of KEY [SECTION]: what the report says.
value_of()
{
    sed -n "s/^${2:-summary}  *$1  *//p" "$scratch/out" | head -1
}

# json_holds FILE EXPRESSION: of python, with the report as r.
json_holds()
{
    python3 -c "import json, sys; r = json.load(open(sys.argv[1])); assert $2" "$1" 2>>"$scratch/err" || failed "$1: not $2"
}
