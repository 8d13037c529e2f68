#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Extended reliable connections: programs of other tests with several ranks in each neighbourhood, over send queue pairs that reach
# all ranks of a neighbourhood. There are no RNR events (common.sh checks the device's count), a job in which a rank is killed
# ends, and nothing is left. The number of queue pairs is as promised; if XRC is not possible the job works without it.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_USE_SRQ=1 GASNET_USE_XRC=1 GASNET_CONNECT_STATIC=0
unset GASNET_SUPERNODE_MAXSIZE
pairs="GASNET_SUPERNODE_MAXSIZE=2"
seed=${SEED:-$RANDOM}
echo "SEED=$seed"

# used [NO]: the last job, with GASNET_VERBOSEENV=1, used XRC (or did not).
used()
{
    if [ "${1-}" = NO ]; then
        says '; one send queue pair to all ranks of a neighbourhood (XRC)' 0
    else
        says '; one send queue pair to all ranks of a neighbourhood (XRC)' 1
    fi
}

messages()
{
    SETTINGS="$pairs GASNET_VERBOSEENV=1" good 4 "$jobs/am-seq"
    used
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=3" good 5 "$jobs/am-par"
    for drop in "" "SOFTHCA_FAULT=drop:op=send,p=0.05 GASNET_QP_TIMEOUT=8"; do
        SETTINGS="$pairs GASNET_RBUF_COUNT=14 $drop" good 6 "$jobs/first_contact-seq" "$seed"
    done
    ! is_cheap 9 || SETTINGS="GASNET_SUPERNODE_MAXSIZE=4 GASNET_RBUF_COUNT=18" good 9 "$jobs/many_to_one-seq" 20
    many=9
    is_cheap $many || many=5
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=3 GASNET_RBUF_COUNT=60" good $many "$jobs/many_to_one-par" 20
}

mixes()
{
    SETTINGS="$pairs GASNET_RBUF_COUNT=20" good 4 "$jobs/random_mix-par" --seconds 1 --seed "$seed" --threads 2
    SETTINGS="$pairs" good 4 "$jobs/putget-seq" 65536
    SETTINGS="$pairs GASNET_AD_METHOD=device" good 4 "$jobs/atomics-seq"
    SETTINGS="$pairs" good 4 "$jobs/vector-seq" 12 "$seed"
    two="SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2 GASNET_IBV_FAILOVER=0"
    SETTINGS="$pairs $two GASNET_VERBOSEENV=1" good 4 "$jobs/am-seq"
    used
    RUN="-H =a:3,=b:3" SETTINGS="GASNET_RBUF_COUNT=24 GASNET_VERBOSEENV=1" good 6 "$jobs/random_mix-seq" --seconds 0 --seed "$seed"
    used
}

# sum NAME: adds the numbers before it that ranks have logged at their end
sum()
{
    sed -n "s/.*[^0-9]\([0-9]*\) $1.*/\1/p" "$scratch/err" | paste -sd+ - | bc
}

# Two neighbourhoods of three, all connected: each process has one send queue pair, and each neighbourhood a target for each
# process of the other, which its other two ranks open. Of 18 pairs of ranks connected both ways, RC would have 36.
counted()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=3 GASNET_IBV_PORTS_VERBOSE=2" good 6 "$jobs/putget-seq" 65536
    [ "$(sum 'send queue pairs')" = 6 ] && [ "$(sum 'targets made')" = 6 ] && [ "$(sum 'opened')" = 12 ] ||
        failed "$(sum 'send queue pairs') send queue pairs, $(sum 'targets made') targets made, $(sum 'opened') opened; not 6, 6, 12"
    plan=$(GASNET_SUPERNODE_MAXSIZE=3 "$GASNETRUN" --plan=3 -n 6 | sed -n 's/^queue_pairs //p')
    [ "$plan" = 3 ] || failed "planned are $plan queue pairs, not 1 to send by, 1 target, and 1 for datagrams"
}

# The same with all connected at start-up, though a rank has messages for one other only; and calls over them.
at_start()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=3 GASNET_IBV_PORTS_VERBOSE=2 GASNET_VERBOSEENV=1 GASNET_CONNECT_STATIC=1" good 6 "$jobs/connected-seq" 3
    used
    says 'all are made at start-up, as ranks ask for them' 1
    [ "$(sum 'send queue pairs')" = 6 ] && [ "$(sum 'targets made')" = 6 ] && [ "$(sum 'opened')" = 12 ] ||
        failed "$(sum 'send queue pairs') send queue pairs, $(sum 'targets made') targets made, $(sum 'opened') opened; not 6, 6, 12"
    plan=$(GASNET_SUPERNODE_MAXSIZE=3 GASNET_CONNECT_STATIC=1 "$GASNETRUN" --plan=all -n 12 | sed -n 's/^queue_pairs //p')
    [ "$plan" = 7 ] || failed "planned for a static job are $plan queue pairs, not 7"
    SETTINGS="$pairs GASNET_CONNECT_STATIC=1 GASNET_CONNECT_DYNAMIC=0 SOFTHCA_FAULT=drop:op=send,p=0.05 GASNET_QP_TIMEOUT=8" \
        good 6 "$jobs/first_contact-seq" "$seed"
    SETTINGS="$pairs GASNET_CONNECT_STATIC=1 GASNET_RBUF_COUNT=24" good 6 "$jobs/random_mix-par" --seconds 0 --seed "$seed" --threads 2
    ! is_cheap 12 || SETTINGS="GASNET_SUPERNODE_MAXSIZE=4 GASNET_CONNECT_STATIC=1" good 12 "$jobs/many_to_one-seq" 20
}

# A rank dies at any place, whether its neighbours or others need it: the job ends, and a line names it.
killed()
{
    for place in put poll; do
        SETTINGS="$pairs" job 4 "$jobs/kill-seq" "$place"
        [ "$status" -ne 0 ] || failed "$place: a rank was killed, and the job ended well"
        says 'rank 1 .*SIGKILL'
    done
    for nth in 1 10 100; do # in the middle of a message of its own
        SETTINGS="$pairs" job 4 sh -c '[ "$PMIX_RANK" != 1 ] || export SOFTHCA_FAULT='"kill:op=send,nth=$nth"'; exec "$@"' sh \
            "$jobs/random_mix-seq" --seconds 20 --seed "$seed"
        [ "$status" -eq 137 ] || failed "killed in message $nth: status $status, not 137"
        says 'rank 1 .*SIGKILL'
    done
}

# refused PATTERN NAME=VALUE...: one line with the reason, and a job without it.
refused()
{
    pattern=$1
    shift
    SETTINGS="$pairs GASNET_VERBOSEENV=1 $*" good 4 "$jobs/am-seq"
    says "no extended reliable connections, because $pattern" 1
    used NO
    SETTINGS="$pairs GASNET_VERBOSEENV=1 $* GASNET_USE_XRC=-1" good 4 "$jobs/am-seq"
    says 'no extended reliable connections' 0
    says "no XRC: $pattern" 1
}

refusals()
{
    SETTINGS="$pairs GASNET_VERBOSEENV=1 GASNET_CONNECT_STATIC=1 GASNET_USE_XRC=-1" good 4 "$jobs/am-seq"
    used NO
    says 'all are made at start-up; no XRC: all ranks are connected at start-up' 1
    refused 'receive queues are not shared' GASNET_USE_SRQ=0
    refused 'connections are closed for others' GASNET_CONNECT_MAX=2
    refused 'no ranks share memory and use the same ports' GASNET_SUPERNODE_MAXSIZE=1
    refused 'a device in use opens no domain' SOFTHCA_FAULT=enomem:call=open_xrcd
    SETTINGS="$pairs GASNET_VERBOSEENV=1" good 4 sh -c '[ "$PMIX_RANK" != 2 ] || export SOFTHCA_FAULT=enomem:call=open_xrcd; exec "$@"' sh "$jobs/am-seq"
    used NO
}

if [ "$sanitizer" = thread ]; then
    export TSAN_OPTIONS="suppressions=$top_srcdir/tests/job/random_mix.supp ${TSAN_OPTIONS:-}"
    SETTINGS="$pairs GASNET_RBUF_COUNT=24" good 4 "$jobs/random_mix-par" --seconds 2 --seed "$seed"
    SETTINGS="$pairs GASNET_RBUF_COUNT=24" good 4 "$jobs/many_to_one-par" 10
    finish
fi
lane messages messages
lane counted counted killed
lane at_start at_start
lane mixes mixes
lane refusals refusals
finish
