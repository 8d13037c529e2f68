#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Inside the VM: jobs of two ranks over the kernel's Soft-RoCE. Prints a line for each, and at the end
# how the counts of the device say the receivers were always ready.
set -u
: "${top_builddir:?}" "${GASNETRUN:?}"
each=${VM_CASE_SECONDS:-180} # three times what the slowest takes under emulation on two busy CPUs
counters=/sys/class/infiniband/rxe0/ports/1/hw_counters
failures=0
out=/run/case
export GASNET_SOFTHCA=never
# rxe takes 7 for "for ever"; a lost peer must end a test.
export GASNET_QP_RETRY_COUNT=6

failed()
{
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# case NAME PROGRAM [ARG...]: a job of two; settings stand in the environment.
case_of_two()
{
    local name=$1 begin=$EPOCHREALTIME status
    shift
    JOB_DEADLINE=$((each - 15)) timeout -k 5 "$each" "$GASNETRUN" -n 2 "$@" >$out.out 2>$out.err
    status=$?
    awk -v a="$begin" -v b="$EPOCHREALTIME" -v n="$name" -v s=$status \
        'BEGIN { printf "%-40s status %d, %5.1f s\n", n, s, b - a }'
    [ $status = 0 ] || {
        failed "$name: status $status"
        tail -n 20 $out.err $out.out
    }
    return $status
}

# Receiver-not-ready must never have happened, on either side.
no_rnr()
{
    local name value
    for name in rcvd_rnr_err send_rnr_err retry_rnr_exceeded_err; do
        value=$(cat $counters/$name) || { failed "no counter $name"; continue; }
        [ "$value" = 0 ] || failed "$1: $name is $value"
    done
}

# The second rail is a network of its own, so without settings both ranks must take the first.
uses_the_kernel()
{
    local said
    said=$(GASNET_VERBOSEENV=1 "$GASNETRUN" -n 2 "$top_builddir/tests/job/barrier-seq" 2>&1)
    grep -q 'rxe0' <<<"$said" || failed "rxe0 is not what the conduit says it uses: $said"
    ! grep -q 'using softhca' <<<"$said" || failed "softhca stands in for the kernel"
}

wordcount()
{
    local files=(/usr/share/common-licenses/{GPL-3,Apache-2.0,MPL-2.0})
    [ -f "${files[0]}" ] || files=("$top_srcdir/LICENSE" "$top_srcdir/README.md")
    case_of_two "wordcount" "$top_builddir/tests/demo/wordcount" --all "${files[@]}" || return
    cat "${files[@]}" | tr -cs A-Za-z '\n' | tr A-Z a-z | LC_ALL=C sort | uniq -c |
        awk 'NF == 2 { print $1, $2 }' >$out.expected
    diff $out.expected <(grep -E '^[0-9]+ [a-z]+$' $out.out) >$out.diff ||
        failed "wordcount differs from the pipeline: $(head -n 5 $out.diff)"
}

credits()
{
    local job=$top_builddir/tests/job
    case_of_two "credits, defaults" "$job/credits-seq" 30
    GASNET_AM_CREDITS_PP=1 case_of_two "credits, PP=1" "$job/credits-seq" 20
    GASNET_AM_CREDITS_SLACK=0 case_of_two "credits, SLACK=0" "$job/credits-seq" 20
    GASNET_AM_CREDITS_SLACK=11 case_of_two "credits, SLACK=11" "$job/credits-seq" 20
    GASNET_AM_CREDITS_TOTAL=1 GASNET_BBUF_COUNT=1 GASNET_NETWORKDEPTH_PP=2 \
        case_of_two "credits, TOTAL=1 BBUF=1 DEPTH=2" "$job/credits-seq" 20
    case_of_two "credits, PAR" "$job/credits-par" 20
}

# The kernel's atomics are atomic to each other only: what they do to a word no CPU may change meanwhile.
atomics()
{
    local job=$top_builddir/tests/job
    GASNET_VERBOSEENV=1 case_of_two "atomics, devices" "$job/atomics-par" 3
    grep -q 'executed by devices' $out.err || failed "rxe's atomics are not used: $(grep AD_Create $out.err | head -n 3)"
    GASNET_AD_METHOD=message case_of_two "atomics, messages" "$job/atomics-seq" 3
}

collectives()
{
    local job=$top_builddir/tests/job
    case_of_two "collectives, SEQ" "$job/collectives-seq" random 1 6
    case_of_two "collectives, PAR" "$job/collectives-par" random 2 4
    case_of_two "collectives, threads" "$job/collectives_threads-par"
}

# Each way once: packed in messages, gathered, listed in work requests, and each piece by itself.
vector()
{
    local job=$top_builddir/tests/job
    case_of_two "vector, PAR" "$job/vector-par" 6
    GASNET_VIS_PACK_LIMIT=1G GASNET_VIS_REMOTECONTIG=0 case_of_two "vector, packed" "$job/vector-seq" 6
    GASNET_VIS_GATHER_LIMIT=1G GASNET_VIS_LIST_MIN=1G GASNET_VIS_AMPIPE=0 case_of_two "vector, gathered" "$job/vector-seq" 6
    GASNET_VIS_LIST_MIN=0 GASNET_VIS_AMPIPE=0 case_of_two "vector, listed" "$job/vector-seq" 6
    GASNET_VIS_AMPIPE=0 GASNET_VIS_REMOTECONTIG=0 case_of_two "vector, single" "$job/vector-seq" 6
}

# Here pages are really pinned, so a registration that outlives its memory gives wrong bytes: with the monitor off the same
# job must fail, or it could not have shown anything.
registration()
{
    local remapped=$top_builddir/tests/job/remapped_memory
    export GASNET_FIREHOSE_LEAST=64K GASNET_FIREHOSE_VERBOSE=1
    case_of_two "registration on the fly" "$remapped-seq" 8
    [ "$(grep -c 'firehose: [1-9][0-9]* hits, [1-9][0-9]* misses' $out.err)" = 2 ] || failed "nothing was registered: $(cat $out.err)"
    JOB_THREADS=3 case_of_two "registration on the fly, PAR" "$remapped-par" 4
    JOB_DEADLINE=40 GASNET_FIREHOSE_MONITOR=none timeout -k 5 60 "$GASNETRUN" -n 2 "$remapped-seq" 20 >$out.out 2>$out.err
    [ $? != 0 ] || failed "a job passes that uses registrations of memory that is gone"
    grep -q 'pattern byte' $out.err || failed "not for wrong bytes: $(cat $out.err)"
    echo "registration on the fly, not watched: wrong bytes are seen"
    unset GASNET_FIREHOSE_LEAST GASNET_FIREHOSE_VERBOSE
}

# refused WHAT PATTERN COMMAND...: ends with status 1 and one line that says why.
refused()
{
    local what=$1 pattern=$2 status
    shift 2
    GASNET_QUIET=1 timeout -k 5 60 "$@" >$out.out 2>$out.err
    status=$?
    [ $status = 1 ] && grep -q "$pattern" $out.err || {
        failed "$what: status $status"
        tail -n 5 $out.err
        return
    }
    [ "$(grep -c . $out.err)" = 1 ] || failed "$what: more than one line: $(cat $out.err)"
    echo "$what: refused as it should be"
}

# The kernel counts registered memory against the limit of users other than root.
little_locked_memory()
{
    chmod a+rw /dev/infiniband/*
    refused "RLIMIT_MEMLOCK of 64 KiB" 'locked-memory limit (ulimit -l) 65536 bytes.*raise the limit' \
        setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all \
        bash -c 'ulimit -l 64; TMPDIR=/tmp exec "$@"' - "$GASNETRUN" -n 2 "$top_builddir/tests/job/barrier-seq"
}

port_down()
{
    ip link set eth0 down
    ip link set eth1 down
    refused "port down" 'no active RDMA port' "$GASNETRUN" -n 2 "$top_builddir/tests/job/barrier-seq"
    ip link set eth0 up
    ip link set eth1 up
}

uses_the_kernel
# Each pair of ranks by two queue pairs, on a port each.
two_rails()
{
    local job=$top_builddir/tests/job said
    export GASNET_IBV_PORTS=rxe0+rxe1
    said=$(GASNET_VERBOSEENV=1 "$GASNETRUN" -n 2 "$job/barrier-seq" 2>&1)
    grep -q 'rxe1' <<<"$said" || failed "rxe1 is not used: $said"
    GASNET_PUT_STRIPE_SZ=8K GASNET_GET_STRIPE_SZ=8K case_of_two "put/get matrix to 64 KiB, two rails" "$job/putget-seq" 65536
    case_of_two "AM matrix, two rails" "$job/am-seq"
    unset GASNET_IBV_PORTS
}

# The same queue pairs, connected by the kernel's connection manager.
by_rdmacm()
{
    local job=$top_builddir/tests/job
    export GASNET_IBV_CONNECT=rdmacm
    GASNET_VERBOSEENV=1 case_of_two "AM matrix, librdmacm" "$job/am-seq"
    grep -q 'connected by librdmacm from 10\.0\.0\.1:' $out.err || failed "librdmacm did not connect: $(grep 'network:' $out.err)"
    GASNET_IBV_PORTS=rxe0+rxe1 case_of_two "put/get matrix to 64 KiB, librdmacm, two rails" "$job/putget-seq" 65536
    unset GASNET_IBV_CONNECT
}

little_locked_memory
case_of_two "barrier" "$top_builddir/tests/job/barrier-seq"
case_of_two "AM matrix" "$top_builddir/tests/job/am-seq"
case_of_two "AM matrix, PAR" "$top_builddir/tests/job/am-par"
# Larger ones are more packets of the same kind; the emulated machine takes four times as long for 4 MiB.
case_of_two "put/get matrix to 1 MiB" "$top_builddir/tests/job/putget-seq" 1048576
credits
atomics
collectives
vector
registration
two_rails
by_rdmacm
wordcount
no_rnr "all of the above"
port_down
[ $failures = 0 ] || exit 1
