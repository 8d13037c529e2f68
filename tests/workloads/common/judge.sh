# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Shared by the scripts of the workloads; sourced, not run. Sets $program from the name in $workload; $few are the options
# of every run that is judged, $faults those of runs that must fail besides, $ranks how many ranks refusals and faults have.

. "${top_srcdir:?run through make check}/tests/job/common.sh"
program=$top_builddir/tests/workloads/${workload:?}/$workload
few=
faults=
ranks=2
# Runs over the network have two rails.
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

# faulty CHECK ARGS...: status 1, and CHECK failed.
faulty()
{
    every 3 || return 0
    check=$1
    shift
    # shellcheck disable=SC2086
    job "$ranks" "$program" $few $faults "$@"
    fails_with 1 "$workload $*"
    says "^$workload: $check failed" 1
    grep -q '^FAIL$' "$scratch/out" || failed "$workload $*: no FAIL"
}

# idle_fault FAULT ARGS...: its occasion never comes, which is reported and fails the run.
idle_fault()
{
    # shellcheck disable=SC2086
    job "$ranks" "$program" $few $faults --inject "$@"
    fails_with 1 "$workload --inject $*"
    says "^$workload: --inject $1: its occasion never came" 1
    one_line "$workload --inject $*"
    grep -q '^FAIL$' "$scratch/out" || failed "$workload --inject $*: no FAIL"
}

# refused TEXT ARGS...: status 2, and one line.
refused()
{
    every 3 || return 0
    text=$1
    shift
    job "$ranks" "$program" "$@"
    fails_with 2 "$workload $*"
    says "^$workload: .*$text" 1
    one_line "$workload $*"
}

# The launcher reports a rank that ends before the others do, which a busy machine may bring about.
one_line()
{
    [ "$(grep -vc '; ending the other ' "$scratch/err")" -eq 1 ] || failed "$1: more than one line"
}

# alone: one rank is not enough.
alone()
{
    ranks=1 refused "needs at least 2 ranks"
}

# refused_by_device TEXT ARGS...: the same for limits that only the device knows.
refused_by_device()
{
    refused "$1" --layer raw "${@:2}"
}

# newcomer: what is typed first, nothing set, runs on any machine.
newcomer()
{
    GASNET_SUPERNODE_MAXSIZE=0 GASNET_SOFTHCA= GASNET_NUM_QPS= SOFTHCA_HCAS= job 2 "$program" --duration 0.2 --warmup 0.1
    passes "$workload, what a newcomer types"
    grep -q '^PASS$' "$scratch/out" || failed "$workload, what a newcomer types: no PASS"
    [ -n "$(ls /sys/class/infiniband 2>/dev/null)" ] || grep -q '^env  *software_rdma  *true$' "$scratch/out" ||
        failed "$workload: the report does not say software"
}

# no_device: without a device a run over raw verbs ends with status 77.
no_device()
{
    newcomer
    [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ] || return
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0 GASNET_SOFTHCA=never" job 2 "$program" --layer raw --ops 10
    fails_with 77 "$workload without a device"
    says "^$workload: rank 0: no RDMA device on this host" 1
    one_line "$workload without a device"
}

# many_refused OPTION BAD OPTION BAD...: invalid values of options.
many_refused()
{
    while [ $# -gt 1 ]; do
        refused "--$1 '$2' is not " "--$1" "$2"
        shift 2
    done
}

# on_terminal ARGS...: with a terminal for the launcher's output; what is shown there goes to $scratch/shown.
on_terminal()
{
    command="$workload $* at a terminal"
    "$watchdog" "$limit" script -qec "$GASNETRUN -n 2 $program $*" /dev/null </dev/null >"$scratch/shown" 2>"$scratch/err"
    status=$?
}

# progress: how far a run is, at a terminal and nowhere else.
progress()
{
    command -v script >/dev/null || return
    on_terminal "$@" --duration 1.2 --warmup 0.1
    passes "$command"
    grep -aq "$workload [a-z]*: [0-9.]* s, [0-9.]* Mops so far, [0-9]* s left" "$scratch/shown" || failed "no progress was shown"
    # As many as took more than a second.
    on_terminal "$@" --ops "$(tr -d '\r' <"$scratch/shown" | sed -n 's/^summary  *ops_total  *//p')" --verify none
    grep -aq "Mops so far, [0-9]* s left" "$scratch/shown" || failed "no progress of a number of operations was shown"
    [ "$(tr -d '\n' <"$scratch/shown" | tr '\r' '\n' | grep -a 'so far' | grep -avc "^$workload")" -eq 0 ] ||
        failed "progress and lines got mixed"
    job 2 "$program" "$@" --duration 0.6 --warmup 0
    passes "no terminal"
    grep -aq 'so far' "$scratch/out" "$scratch/err" && failed "progress was shown without a terminal"
}

# meters: takes as many samples as requested.
meters()
{
    good_run 2 "$@" --lat all --cycles off
    [ "$(value_of op_count)" = "$(value_of ops_measured)" ] || failed "--lat all: not all latencies"
    [ "$(value_of loop_cycles)" = 0 ] || failed "--cycles off: cycles"
    good_run 2 "$@" --lat 1/16 --cycles 1/4
    python3 -c "assert 0.7 < 16 * $(value_of op_count) / $(value_of ops_measured) < 1.4" || failed "--lat 1/16: $(value_of op_count)"
    # The cycles of a turn include those of its parts, except interrupted parts.
    python3 -c "assert 0 < $(value_of post_cycles) and 0 < $(value_of choose_cycles) < $(value_of loop_cycles)" ||
        failed "--cycles 1/4: parts are not parts of the whole"
    job 2 "$program" "$@" --duration 0.5 --warmup 0.1 --interval 0.1 --json "$scratch/meters.json"
    passes "intervals"
    grep -q "^$workload [a-z]*: rank 0 at 0.10 s: .* Mops, threads .*/.*/.* (min/avg/max), rails .* Mops, .* Gbit/s\$" "$scratch/out" ||
        failed "no line of an interval"
    json_holds "$scratch/meters.json" '2 <= len(r["intervals"]) <= 5 and r["intervals"][1]["at_s"] == 0.2'
    json_holds "$scratch/meters.json" 'len(r["summary"]["thread_mops"].split("+")) == len(r["summary"]["thread_p99_us"].split("+"))'
    refused "is not all or 1/N" --lat 1/0
    refused "is not all or 1/N" --lat some
    refused "is not off or 1/N" --cycles 64
    refused "--interval '0' is not" --interval 0
}

# binds: every thread is somewhere else, and more than there are CPUs are refused.
binds()
{
    cpus=$(nproc)
    if [ "$cpus" -gt 1 ]; then
        job 2 "$program" "$@" --ops 1000 --bind
        passes "--bind"
        case $(value_of thread_bound_to) in *-1*) failed "--bind: $(value_of thread_bound_to)" ;; esac
        [ "$(value_of thread_bound_to | tr + '\n' | sort | uniq -d)" = '' ] || failed "two threads on a CPU: $(value_of thread_bound_to)"
    fi
    refused "--bind: rank [01] has CPUs for [0-9]* of its $((cpus + 1)) threads" "$@" --bind --threads $((cpus + 1))
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
