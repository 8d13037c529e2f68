#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Receive buffers of shared queues are small, and larger messages are read from the sender's memory: Mediums of all sizes, requests
# and replies, by every call that sends them, from many to one and all to all, with minimal buffers and queues, by one
# thread and several, over RC and XRC, and while connections are closed for others. Each comes once and whole, without RNR events
# (common.sh checks the device's count), and only few buffers are registered for them. A job ends if a rank leaves or dies in the
# middle. With failover no message is read in this way.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1 GASNET_USE_SRQ=1 GASNET_CONNECT_STATIC=0
large=$jobs/large_messages

# of NAME: the sum of a counter over all ranks of the last job; each of them
of()
{
    each "$1" | paste -sd+ | bc
}
each()
{
    sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" "$scratch"/stats-*.json
}

# counted N PROGRAM [ARGS...]: a job that must pass, with statistics
counted()
{
    rm -f "$scratch"/stats-*.json
    SETTINGS="GASNET_STATSFILE=$scratch/stats-%.json $SETTINGS" good "$@"
    [ "$(each messages_offered | wc -l)" -eq "$1" ] || failed "not each rank left statistics"
}

# The minimum: one buffer to read into, for requests and replies of all peers; one bounce buffer, one credit, two slots.
least()
{
    counted 4 "$large-seq"
    [ "$(of messages_offered)" -gt 300 ] || failed "$(of messages_offered) messages were offered"
    SETTINGS="GASNET_RBUF_LARGE=1" good 4 "$large-seq"
    SETTINGS="GASNET_RBUF_LARGE=1 GASNET_BBUF_COUNT=1 GASNET_AM_CREDITS_PP=1 GASNET_NETWORKDEPTH_PP=2" good 3 "$large-seq" 20
    SETTINGS="GASNET_RBUF_LARGE=1 GASNET_INLINESEND_LIMIT=0 GASNET_NETWORKDEPTH_TOTAL=2" good 3 "$large-seq" 20
    SETTINGS="GASNET_RBUF_LARGE=1 GASNET_RBUF_SIZE=1024 GASNET_RBUF_COUNT=8 GASNET_CONNECT_STATIC=1" good 4 "$large-seq" 20
    [ "$sanitizer" = no ] || return
    SETTINGS="GASNET_RBUF_LARGE=1 GASNET_RBUF_COUNT=16" good 8 "$large-seq" 30
    SETTINGS="GASNET_RBUF_LARGE=1" good 4 "$jobs/credits-seq" 60
    SETTINGS="GASNET_RBUF_LARGE=1 GASNET_INLINESEND_LIMIT=0 GASNET_PACKEDLONG_LIMIT=65448 GASNET_AM_GATHER_MIN=0" good 3 "$jobs/am-seq"
    SETTINGS="GASNET_RBUF_LARGE=1" good 3 "$jobs/negotiated-seq"
}

threads()
{
    SETTINGS="GASNET_RBUF_LARGE=1" good 3 "$large-par" 40 4
    SETTINGS="GASNET_RBUF_LARGE=2 GASNET_BBUF_COUNT=1 GASNET_NETWORKDEPTH_PP=2" good 3 "$large-par" 20 3
    SETTINGS="GASNET_RCV_THREAD=1 GASNET_SND_THREAD=1" good 3 "$large-par" 20 2
    SETTINGS="GASNET_RCV_THREAD=1 SOFTHCA_RATE=20" good 2 "$large-par" computing 60
}

# Kinds of connections: XRC, connections that are closed for others, and one over two ports.
connections()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=2 GASNET_USE_XRC=1 GASNET_VERBOSEENV=1" counted 4 "$large-seq"
    says '; one send queue pair to all ranks of a neighbourhood (XRC)' 1
    [ "$(of messages_offered)" -gt 100 ] || failed "$(of messages_offered) messages were offered over XRC"
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=3 GASNET_USE_XRC=1 GASNET_RBUF_LARGE=1" good 6 "$large-par" 20 2
    SETTINGS="GASNET_CONNECT_MAX=1 GASNET_RBUF_LARGE=1" counted 4 "$large-seq" 20
    [ "$(of connections_closed)" -gt 10 ] || failed "$(of connections_closed) connections were closed for others"
    SETTINGS="GASNET_CONNECT_MAX=2 SOFTHCA_RATE=50" good 5 "$large-par" 10 2
    SETTINGS="SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2 GASNET_IBV_FAILOVER=0" counted 3 "$large-seq"
    [ "$(of messages_offered)" -gt 100 ] || failed "$(of messages_offered) messages were offered over two ports"
}

# The number of sources depends on messages in flight, not on messages sent: 12 requests and as many replies for each of two
# peers; 16 buffers are registered at a time.
bounded()
{
    SETTINGS="GASNET_RBUF_LARGE=1" counted 3 "$large-seq" 400
    most=$(each large_buffers | sort -n | tail -1)
    [ "$most" -le $((1 + 4 * 16)) ] || failed "a rank has registered $most buffers for large messages"
}

none()
{
    SETTINGS="$1" counted 3 "$large-seq" 20
    [ "$(of messages_offered)" -eq 0 ] || failed "$(of messages_offered) messages were offered with $1"
    [ "$(of large_buffers)" -eq 0 ] || failed "$(of large_buffers) large buffers with $1"
}

# A message that fits a receive buffer is not read from its sender; with failover between ports no message is.
whole()
{
    for size in 1024 4096 10000; do
        SETTINGS="GASNET_RBUF_SIZE=$size" counted 3 "$large-seq" whole $size 40
        [ "$(of messages_offered)" -eq 0 ] || failed "$(of messages_offered) messages of up to $size bytes were offered"
    done
    SETTINGS="" counted 3 "$large-seq" whole 4200 40
    [ "$(of messages_offered)" -gt 0 ] || failed "no message of up to 4200 bytes was offered"
    none GASNET_RBUF_SIZE=0
    none GASNET_USE_SRQ=0
    none "SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2 GASNET_VERBOSEENV=1"
    says 'receive buffers hold any message, because ports fail over' 1
    none GASNET_RBUF_SIZE=65500
}

ends()
{
    for mode in seq par; do
        for messages in 1 30 200; do
            SETTINGS="GASNET_RBUF_LARGE=1" job 4 "$large-$mode" exit $messages
            fails_with 5 "exit in the middle"
            within 10
            SETTINGS="GASNET_RBUF_LARGE=1" job 4 "$large-$mode" kill $messages
            fails_with 137 "a rank killed in the middle"
            within 10
        done
    done
}

if [ "$sanitizer" = thread ]; then
    SETTINGS="GASNET_RBUF_LARGE=1" good 3 "$large-par" 20 3
    SETTINGS="GASNET_RBUF_LARGE=2 GASNET_CONNECT_MAX=1" good 3 "$large-par" 10 3
    # One thread only: space in a neighbour's ring passes from one sender to the next through the receiver, which the tool does
    # not see.
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=2 GASNET_USE_XRC=1" good 4 "$large-par" 20 1
    finish
fi
lane least least
lane threads threads bounded
lane connections connections
lane whole whole ends
finish
