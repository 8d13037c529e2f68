#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gasnetrun_ibv --plan predicts the resources of a job within 5 % of those counted in a real process.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
[ "$sanitizer" = no ] || skip "a sanitizer allocates in its own way"
footprint=$jobs/footprint-par
# The plan does not know only one property of the device: how many regions it takes.
export GASNET_PINNED_REGIONS_MAX=2000 GASNET_CONNECT_STATIC=0

# value NAME TEXT: the number behind a name
value()
{
    sed -n "s/.*\<$1 \([0-9]*\).*/\1/p" <<<"$2"
}

# near WHAT PLANNED REAL [PERCENT]
near()
{
    awk -v plan="$2" -v real="$3" -v percent="${4:-5}" 'BEGIN {
        off = plan > real ? plan - real : real - plan
        exit !(real != "" && plan != "" && off * 100 <= real * percent) }' ||
        failed "$1: planned $2, in the job $3"
}

# compare RANKS PEERS NAME=VALUE...: a job of that size, each rank with messages to PEERS others, beside its plan
compare()
{
    ranks=$1 peers=$2
    shift 2
    SETTINGS="$*" good "$ranks" "$footprint" "$peers"
    real=$(grep '^footprint:' "$scratch/out")
    conns=1
    [[ "$*" != *NUM_QPS=2* ]] || conns=2
    plan=$(env "$@" "$GASNETRUN" "--plan=${used:-$(($(value connections "$real") / conns))}" -n "$ranks") || failed "no plan"
    echo "$ranks ranks, $peers peers${*:+, $*}: $real; planned: $(echo $plan)"
    [ -n "${used-}" ] || near "queue pairs" "$(value queue_pairs "$plan")" "$(value queue_pairs "$real")" 0
    near "registered memory" "$(value registered "$plan")" "$(value registered "$real")"
    near "private memory" "$(value private "$plan")" "$(value private "$real")" "${used:+10}"
}

compare 8 1 GASNET_SUPERNODE_MAXSIZE=1
[ "$(value connections "$real")" -lt 7 ] || failed "all are connected"
[ "$(value connections "$real")" -gt 0 ] || failed "no connection was counted"
# Buffers for the next connection are made a while after the last one, on a busy machine perhaps after the count.
for _ in 1 2 3; do
    [ "$(value registered "$plan")" -ne "$(value registered "$real")" ] || break
    compare 8 1 GASNET_SUPERNODE_MAXSIZE=1
done
near "registered memory, with buffers for the next connection" "$(value registered "$plan")" "$(value registered "$real")" 1
export GASNET_USE_FIREHOSE=0 # its table is most of what a small job takes
compare 6 5 GASNET_SUPERNODE_MAXSIZE=1
compare 6 1 GASNET_SUPERNODE_MAXSIZE=1 GASNET_CONNECT_STATIC=1
compare 4 3 GASNET_SUPERNODE_MAXSIZE=1 GASNET_NUM_QPS=2 SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2
compare 4 3 GASNET_SUPERNODE_MAXSIZE=2 GASNET_AM_CREDITS_PP=4 GASNET_BBUF_COUNT=16
compare 6 5 GASNET_SUPERNODE_MAXSIZE=0
compare 6 2 GASNET_SUPERNODE_MAXSIZE=1 GASNET_USE_SRQ=2 GASNET_RBUF_COUNT=0
compare 6 1 GASNET_SUPERNODE_MAXSIZE=1 GASNET_USE_SRQ=2 GASNET_RBUF_COUNT=60 GASNET_CONNECT_STATIC=1
used=3 compare 6 5 GASNET_SUPERNODE_MAXSIZE=3 GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=40 GASNET_USE_XRC=1
used=3 compare 6 1 GASNET_SUPERNODE_MAXSIZE=3 GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=40 GASNET_USE_XRC=1 GASNET_CONNECT_STATIC=1
compare 6 2 GASNET_SUPERNODE_MAXSIZE=1 GASNET_USE_SRQ=2 GASNET_RBUF_COUNT=60 GASNET_NUM_QPS=2 SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2
# Five peers are used, two at a time; at the end a connection may be closing while others are requested.
used=5 compare 6 5 GASNET_SUPERNODE_MAXSIZE=1 GASNET_CONNECT_MAX=2
[ "$(value queue_pairs "$plan")" -eq 3 ] && [ "$(value queue_pairs "$real")" -le 3 ] || failed "more queue pairs than GASNET_CONNECT_MAX=2"
used=5 compare 6 5 GASNET_SUPERNODE_MAXSIZE=1 GASNET_CONNECT_MAX=2 GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=20

# With one more neighbour: 16 bytes of data that is equal in all ranks of a host are shared, so no rank has its own
# copy.
compare 16 0 GASNET_SUPERNODE_MAXSIZE=0
few_real=$(value private "$real") few_plan=$(value private "$plan")
compare 48 0 GASNET_SUPERNODE_MAXSIZE=0
near "private memory for 32 neighbours more" $(($(value private "$plan") - few_plan)) $(($(value private "$real") - few_real)) 2

# Besides these and the one for datagrams there is one for the next peer, except if a rank has only the connections of start and
# barriers, or if no peer is left.
for case in 2:4 3:4 4:6 255:256; do
    planned=$(value queue_pairs "$(GASNET_SUPERNODE_MAXSIZE=1 "$GASNETRUN" "--plan=${case%:*}" -n 256)")
    [ "$planned" = "${case#*:}" ] || failed "${case%:*} of 255 peers: $planned queue pairs planned, not ${case#*:}"
done

idle=$(value idle_peer "$("$GASNETRUN" --plan=0 -n 100000 -N 1000)")
[ "${idle:-999}" -le 100 ] || failed "a peer without a connection takes $idle bytes, more than 100"
finish
