# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared by the scripts that run on the first of several machines (rxe-machines): jobs by our launcher over ssh, and the counters of
# the devices. Sourced; a script ends with finish.
set -u
: "${top_builddir:?}" "${top_srcdir:?}" "${GASNETRUN:?}"
jobs=$top_builddir/tests/job
out=/run/case
failures=0
status=0
took=0
export GASNET_SOFTHCA=never TMPDIR=/tmp
export JOB_DEADLINE=${VM_CASE_SECONDS:-400} # ten times what the slowest takes on a machine with nothing else to do
unset GASNET_SUPERNODE_MAXSIZE

failed()
{
    echo "FAILED: $*"
    failures=$((failures + 1))
}

finish()
{
    [ $failures = 0 ]
    exit
}

# timed NAME COMMAND...: sets status and took (ms), prints both; output in $out.out and $out.err.
timed()
{
    local name=$1 began=${EPOCHREALTIME/[^0-9]/}
    shift
    timeout -k 5 $((JOB_DEADLINE + 15)) "$@" >$out.out 2>$out.err </dev/null
    status=$?
    took=$(((${EPOCHREALTIME/[^0-9]/} - began) / 1000))
    printf '%-48s status %d, %6d ms\n' "$name" $status $took
}

# good NAME RANKS HOSTS PROGRAM [ARG...]: a job over ssh that passes.
good()
{
    local name=$1 ranks=$2 hosts=$3
    shift 3
    timed "$name" "$GASNETRUN" -E JOB_DEADLINE -n "$ranks" -H "$hosts" "$@"
    [ $status = 0 ] || {
        failed "$name: status $status"
        tail -n 20 $out.err $out.out
    }
    return $status
}

# each_counter MACHINE: "NAME VALUE" of its first device's.
each_counter()
{
    # shellcheck disable=SC2016 # on the other machine
    ssh "node$1" 'cd /sys/class/infiniband/rxe0/ports/1/hw_counters && for n in *; do echo "$n $(cat $n)"; done'
}

# Checks the devices' counters: no retransmission, no receiver not ready, and no packet dropped by
# the switch.
nothing_sent_twice()
{
    local machine name value seen=0
    for machine; do
        while read -r name value; do
            case $name in
            *rnr* | completer_retry_err | duplicate_request | out_of_seq_request | rcvd_seq_err | retry_exceeded_err | send_err)
                seen=$((seen + 1))
                [ "$value" = 0 ] || failed "node$machine: $name is $value"
                ;;
            rcvd_pkts) [ "$value" -gt 5000 ] || failed "node$machine received $value packets only" ;;
            esac
        done < <(each_counter "$machine")
    done
    [ $seen = $((9 * $#)) ] || failed "the devices have $seen of the counters, not $((9 * $#))"
    [[ $(rxe-wire count) == *" lost 0 "*" overflown 0" ]] || failed "the switch: $(rxe-wire count)"
}
