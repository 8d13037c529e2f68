#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# GASNET_CONNECT_MAX: no process ever has more queue pairs to others; connections closed for others lose nothing and are opened
# again,
# under every mix of messages, puts and gets, by one thread and several, with datagrams lost, and with ports that die and come
# back; configurations that can't be bounded are refused.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1 GASNET_IBV_PORTS_VERBOSE=2 GASNET_CONNECT_STATIC=0
seed=${SEED:-$RANDOM}

# bounded MOST: each rank of the last job had at most so many connections at its end, and had closed some
bounded()
{
    counts=$(sed -n 's/.*connections on demand: \([0-9]*\) of .*; \([0-9]*\) closed for others$/\1 \2/p' "$scratch/err")
    [ "$(wc -l <<<"$counts")" -eq "$job_size" ] || failed "$(wc -l <<<"$counts") of $job_size ranks said what they had closed"
    while read -r open closed; do
        [ "$open" -le "$1" ] && [ "$closed" -gt 0 ] || failed "a rank had $open connections, not up to $1, and has closed $closed"
    done <<<"$counts"
}

# The device has one more queue pair, for datagrams.
first_uses()
{
    for most in 1 2; do
        SETTINGS="GASNET_CONNECT_MAX=$most SOFTHCA_MAX_QP=$((most + 1))" good 5 "$jobs/first_contact-seq" "$seed"
        bounded $most
    done
    SETTINGS="GASNET_CONNECT_MAX=2 SOFTHCA_FAULT=drop:op=send,p=0.05 GASNET_QP_TIMEOUT=8 GASNET_CONNECT_RETRANS_MIN=1000" \
        good 5 "$jobs/first_contact-seq" "$seed"
    bounded 2
    SETTINGS="GASNET_CONNECT_MAX=4 GASNET_NUM_QPS=2 GASNET_IBV_FAILOVER=0" good 4 "$jobs/first_contact-seq" "$seed"
    bounded 2
}

all_calls()
{
    # A slow port: messages are in flight so long that closing would hit them.
    SETTINGS="GASNET_CONNECT_MAX=2 SOFTHCA_RATE=20" good 8 "$jobs/random_mix-seq" --seconds 1 --seed "$seed"
    bounded 2
    SETTINGS="GASNET_CONNECT_MAX=2" good 4 "$jobs/random_mix-par" --seconds 1 --seed "$seed" --threads 4
    bounded 2
}

# With shared receive queues: buffers that were lent or reserved for a closed connection serve others, and none is lost
# (common.sh checks the count of RNR events).
shared()
{
    for count in 6 9; do
        SETTINGS="GASNET_CONNECT_MAX=2 GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=$count" good 5 "$jobs/first_contact-seq" "$seed"
        bounded 2
    done
    SETTINGS="GASNET_CONNECT_MAX=2 GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=9 SOFTHCA_RATE=20" \
        good 6 "$jobs/random_mix-seq" --seconds 1 --seed "$seed"
    bounded 2
    SETTINGS="GASNET_CONNECT_MAX=2 GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=20" \
        good 4 "$jobs/random_mix-par" --seconds 1 --seed "$seed" --threads 4
    bounded 2
}

# Two queue pairs to each peer that replace each other. Ports die while connections are opened, used and closed; a rank that
# opens connections leaves out those of dead ports. The bound counts both queue pairs.
stripes="GASNET_PUT_STRIPE_SZ=16 GASNET_GET_STRIPE_SZ=8K GASNET_QP_TIMEOUT=10"
two_ports="SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2 $stripes"
failover()
{
    for most in 2 4; do
        SETTINGS="$two_ports GASNET_CONNECT_MAX=$most SOFTHCA_MAX_QP=$((most + 2))" good 5 "$jobs/first_contact-seq" "$seed"
        bounded $((most / 2))
    done
    for shape in "$two_ports SOFTHCA_FAULT=unplug:port=2" "SOFTHCA_HCAS=2 GASNET_NUM_QPS=2 $stripes SOFTHCA_FAULT=unplug:dev=softhca1"; do
        for more in "" "GASNET_USE_SRQ=1 GASNET_RBUF_COUNT=20"; do
            SETTINGS="$shape,op=send,every=40,ms=20 GASNET_CONNECT_MAX=2 $more" \
                good 4 "$jobs/random_mix-par" --seconds 0 --seed "$seed" --threads 3
            bounded 1
            SETTINGS="$shape,op=any,nth=$((seed % 30 + 1)),lost=ack GASNET_CONNECT_MAX=2 $more" \
                good 4 "$jobs/random_mix-seq" --seconds 0 --seed "$seed"
            bounded 1
        done
    done
}

refused()
{
    SETTINGS="GASNET_CONNECT_MAX=2 GASNET_CONNECT_STATIC=1" job 4 "$jobs/hello-seq"
    fails_with 1 "a bound below what is connected at start-up"
    says 'GASNET_CONNECT_MAX=2 is less than the 3 queue pairs to 3 peers that are all connected at start-up: .* and 3 or more'
    SETTINGS="GASNET_CONNECT_MAX=3 GASNET_CONNECT_STATIC=1" good 4 "$jobs/hello-seq"
    SETTINGS="GASNET_CONNECT_MAX=1 GASNET_NUM_QPS=2" job 3 "$jobs/hello-seq"
    fails_with 1 "a bound below one peer"
    says 'GASNET_CONNECT_MAX=1 is less than the 2 queue pairs to each peer .*; legal are 0 (no bound) and 2 or more'
    SETTINGS="GASNET_CONNECT_MAX=-1" job 2 "$jobs/hello-seq"
    fails_with 2 "a bound out of range"
    says "GASNET_CONNECT_MAX='-1' is not a whole number from 0 to"
}

lane first first_uses
lane calls all_calls refused
lane shared shared
lane failover failover
finish
