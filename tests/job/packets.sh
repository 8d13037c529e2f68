#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs whose ranks reach each other by RoCE v2 packets (SOFTHCA_WIRE=udp), with and without loss: messages, puts and gets,
# and random operations whose data is verified.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
limit=120
udp="SOFTHCA_WIRE=udp GASNET_SUPERNODE_MAXSIZE=1"

# counter NAME: its sum over the ranks of the last job
counter()
{
    awk -v name=" $1 " '{ at = index($0, name); if (at) { split(substr($0, at + length(name)), n, " "); sum += n[1] } }
        END { print sum + 0 }' "$scratch/stats"
}

SETTINGS=$udp good 2 "$jobs/hello-seq"
[ "$(counter received)" -gt 0 ] || failed "hello: no packet"
SETTINGS=$udp good 3 "$jobs/am-seq"
[ "$(counter received)" -gt 1000 ] || failed "am: $(counter received) packets"
[ "$(counter damaged)" = 0 ] || failed "am: $(counter damaged) damaged packets"
SETTINGS=$udp good 2 "$jobs/putget-seq"
SETTINGS="$udp SOFTHCA_FAULT=drop:p=0.01" good 4 "$jobs/random_mix-par" --seconds 1 --threads 2
[ "$(counter lost)" -gt 0 ] || failed "random_mix: no packet was lost"
SETTINGS="$udp SOFTHCA_FAULT=drop:p=0.05" good 2 "$jobs/random_mix-seq" --seconds 1
finish
