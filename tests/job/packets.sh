#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs whose ranks reach each other by RoCE v2 packets (SOFTHCA_WIRE=udp), on one host and on two virtual ones, with and
# without loss and packets out of order: messages, puts, gets, collectives, random operations whose data is verified; ports
# that die, and a rank that is killed.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
limit=120
udp="SOFTHCA_WIRE=udp GASNET_SUPERNODE_MAXSIZE=1"

# counter NAME: its sum over the ranks of the last job
counter()
{
    awk -v name=" $1 " '{ at = index($0, name); if (at) { split(substr($0, at + length(name)), n, " "); sum += n[1] } }
        END { print sum + 0 }' "$scratch/stats"
}

ranks()
{
    SETTINGS=$udp good 2 "$jobs/hello-seq"
    [ "$(counter received)" -gt 0 ] || failed "hello: no packet"
    SETTINGS=$udp good 3 "$jobs/am-seq"
    [ "$(counter received)" -gt 1000 ] || failed "am: $(counter received) packets"
    [ "$(counter damaged)" = 0 ] || failed "am: $(counter damaged) damaged packets"
    SETTINGS=$udp good 2 "$jobs/putget-seq"
}

loss()
{
    SETTINGS="$udp SOFTHCA_FAULT=drop:p=0.01;reorder:us=20-300,p=0.02" good 4 "$jobs/random_mix-par" --seconds 1 --threads 2
    [ "$(counter lost)" -gt 0 ] || failed "random_mix: no packet was lost"
    [ "$(counter repeated)" -gt 0 ] || failed "random_mix: no packet was sent again"
    SETTINGS="$udp SOFTHCA_FAULT=drop:p=0.05;dup:p=0.02;delay:us=10-500,p=0.02" good 2 "$jobs/random_mix-seq" --seconds 1
}

# Two virtual hosts: shared memory inside of each, packets between them.
hosts()
{
    RUN='-H =n0:2,=n1:2'
    export GASNET_SUPERNODE_MAXSIZE=0
    SETTINGS="SOFTHCA_WIRE=udp" good 4 "$jobs/am-seq"
    [ "$(counter received)" -gt 1000 ] || failed "am on two hosts: $(counter received) packets"
    SETTINGS="SOFTHCA_WIRE=udp" good 4 "$jobs/collectives-seq" random 7 4
    SETTINGS="SOFTHCA_WIRE=udp SOFTHCA_FAULT=drop:p=0.02;reorder:polls=0-16,p=0.03" good 4 "$jobs/random_mix-par" --seconds 0 --threads 2
}

# A port goes down: its work moves to the other one.
failover()
{
    # 0.13 s, eight times: packets are answered by the peer's process, which may have to wait for a CPU.
    two_ports="SOFTHCA_WIRE=udp GASNET_SUPERNODE_MAXSIZE=1 SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2 GASNET_QP_TIMEOUT=15"
    for lost in request ack; do
        SETTINGS="$two_ports SOFTHCA_FAULT=unplug:port=2,op=send,nth=5,lost=$lost;drop:p=0.01" good 2 "$jobs/random_mix-par" --seconds 0 --threads 2
        says 'softhca0:2 no longer reaches rank [01] ([^ ]*): .*; what went over it goes over other ports'
    done
    SETTINGS="$two_ports SOFTHCA_FAULT=unplug:port=2,op=send,nth=5;unplug:port=1,op=any,nth=200" job 2 "$jobs/random_mix-par" --seconds 20 --threads 2
    fails_with 1 "all ports dead"
    says 'failed on softhca0:[12], queue pair [0-9]*: \|is no longer reached over any port: softhca0:1, softhca0:2'
}

# A rank that is killed on one host ends the job on both.
killed()
{
    RUN='-H =n0:2,=n1:2'
    export GASNET_SUPERNODE_MAXSIZE=0
    for place in busy barrier; do
        SETTINGS="SOFTHCA_WIRE=udp GASNET_QUIET=1" job 4 "$jobs/kill-seq" $place
        fails_with 137 "killed: $place"
        says 'rank 1 (pid [0-9]* on n0) was killed by signal 9' 1
    done
}

lane ranks ranks killed
lane loss loss
lane hosts hosts
lane failover failover
finish
