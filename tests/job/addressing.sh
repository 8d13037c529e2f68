#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# How ranks reach each other by their ports' addresses: InfiniBand within a subnet and over subnets, RoCE with GIDs of one type or
# of both, settings that differ by rank, and an error that names two ranks that can't reach each other.
# tests/unit/transport/test_verbs_gid.c tests the rules.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1
hello=$jobs/hello-seq
program=$jobs/putget-seq

# The record of rank 0 has the choice and the reason.
records()
{
    SETTINGS="GASNET_VERBOSEENV=1" good 2 "$program" 65536
    says 'network: softhca0:1 (InfiniBand, LID [0-9]*, .*; only usable device of this host)' 1
    SETTINGS="GASNET_VERBOSEENV=1 SOFTHCA_LINK=roce" good 2 "$program" 65536
    says 'network: softhca0:1 (Ethernet, GID index 3, ::ffff:10.83.0.1, RoCE v2: the best usable one, ' 1
    SETTINGS="GASNET_VERBOSEENV=1 SOFTHCA_LINK=roce GASNET_IBV_GID_INDEX=softhca1:1=1,softhca0:1=0" good 2 "$program" 65536
    says 'GID index 0, fe80::[0-9a-f:]*, RoCE v1: set by GASNET_IBV_GID_INDEX, ' 1
}

# Ranks 0 and 1 have both types; 2 has the old one alone.
tables_that_differ()
{
    by_rank types SOFTHCA_ROCE=3 SOFTHCA_ROCE=3 SOFTHCA_ROCE=1
    SETTINGS="GASNET_VERBOSEENV=1 SOFTHCA_LINK=roce" good 3 "$scratch/types" "$program" 65536
    says 'GID index 3, ::ffff:10.83.0.1, RoCE v2: the best usable one; 1 other connections differ, ' 1
    by_rank apart SOFTHCA_ROCE=2 SOFTHCA_ROCE=3 SOFTHCA_ROCE=1
    SETTINGS="SOFTHCA_LINK=roce" job 3 "$scratch/apart" "$hello"
    fails_with 1 "ranks without GIDs of one type"
    says 'softhca0:1 of rank 0 ([^ ]*) has RoCE v2 ::ffff:10.83.0.1, RoCE v2 fe80::[0-9a-f:]*, and softhca0:1 of rank 2 .*: no GIDs of one kind' 1
    says '^trunkline' 1
}

subnets()
{
    by_rank subnets SOFTHCA_SUBNET=0 SOFTHCA_SUBNET=4 SOFTHCA_SUBNET=4
    SETTINGS="GASNET_VERBOSEENV=1" good 3 "$scratch/subnets" "$program" 65536
    says 'network: softhca0:1 (InfiniBand, GID index 0, fe80::[0-9a-f:]*, InfiniBand: to other subnets, ' 1
}

# Each pair takes the smaller MTU and depth: softhca refuses messages if the ends differ.
limits_that_differ()
{
    by_rank limits "GASNET_MAX_MTU=512 GASNET_QP_RD_ATOM=1" "GASNET_MAX_MTU=2048 GASNET_QP_TIMEOUT=17 GASNET_IBV_SL=3" \
        "GASNET_QP_RETRY_COUNT=5 GASNET_QP_RD_ATOM=7 GASNET_IBV_TRAFFIC_CLASS=104"
    good 3 "$scratch/limits" "$program" 65536
    good 3 "$scratch/limits" "$jobs/am-seq"
    SETTINGS="SOFTHCA_LINK=roce" good 3 "$scratch/limits" "$program" 65536
}

partitions()
{
    SETTINGS="GASNET_IBV_PKEY=1" good 2 "$hello"
    by_rank partitions GASNET_IBV_PKEY=1 GASNET_IBV_PKEY=0
    job 2 "$scratch/partitions" "$hello"
    fails_with 1 "ranks in two partitions"
    says 'softhca0:1 of rank 0 ([^ ]*) is in partition 0x0001 and softhca0:1 of rank 1 ([^ ]*) in 0x7fff: they do not reach each other' 1
    says '^trunkline' 1
}

# The retries bound the time, and the error names both ends. On demand ranks ask for a connection until there is an answer,
# because a rank that computes gives none; after a while they print for which rank they wait.
lost_peers()
{
    local link end
    for link in ib roce; do
        end='(LID [0-9]*)'
        [ $link = ib ] || end='(GID ::ffff:10.83.0.1)'
        SETTINGS="GASNET_CONNECT_STATIC=1 SOFTHCA_LINK=$link SOFTHCA_FAULT=drop GASNET_QP_TIMEOUT=12 GASNET_QP_RETRY_COUNT=1 GASNET_EXITTIMEOUT=2" \
            job 2 "$program" 65536
        fails_with 1 "a network that drops everything ($link)"
        within 10 # 4 * 2 * 17 ms + 2 s, and what a busy machine adds
        says "failed on softhca0:1, queue pair [0-9]*: transport retry counter exceeded .*; path: softhca0:1 $end to softhca0:1 $end\$"
    done
    SETTINGS="GASNET_CONNECT_STATIC=0 GASNET_CONNECT_TIMEOUT=1 SOFTHCA_FAULT=drop GASNET_EXITTIMEOUT=2" job 2 "$program" 65536
    fails_with 1 "a network that drops all datagrams"
    says 'no datagram came from any rank in 1 s, in which rank [01] (.*) was asked to connect'
}

# A resource that a device or a host lacks is reported in one line with the remedy.
too_little()
{
    SETTINGS="GASNET_CONNECT_STATIC=0 SOFTHCA_MAX_QP=1" job 3 "$hello"
    fails_with 1 "too few queue pairs"
    says 'softhca0: create_qp failed: .* (the device is out of queue pairs'
    SETTINGS="GASNET_CONNECT_STATIC=1 SOFTHCA_MAX_QP=1" job 3 "$hello"
    fails_with 1 "too few queue pairs"
    says 'softhca0:1: create_qp for rank [0-9]* failed: .* (the device is out of queue pairs'
    SETTINGS="SOFTHCA_MAX_QP_WR=8" job 2 "$hello"
    fails_with 1 "queues that are too short"
    says 'softhca0 allows 8 work requests in a queue: lower GASNET_AM_CREDITS_PP'
    SETTINGS="GASNET_CONNECT_STATIC=1 SOFTHCA_MAX_MR=1" job 2 "$hello"
    fails_with 1 "too few regions"
    says "softhca0 can't register .*, 1 regions"
    # The kernel answers ENOMEM where locked memory is limited.
    cat >"$scratch/locked" <<'END'
#!/bin/sh
ulimit -l 64
exec "$@"
END
    chmod 755 "$scratch/locked"
    SETTINGS="SOFTHCA_FAULT=enomem:call=reg_mr" job 2 "$scratch/locked" "$hello"
    fails_with 1 "a limit on locked memory"
    says "locked-memory limit (ulimit -l) 65536 bytes, .*; raise the limit on locked memory (ulimit -l unlimited, or memlock in"
    SETTINGS="SOFTHCA_DOWN=softhca0:1" job 2 "$hello"
    fails_with 1 "a port that is down"
    says 'no usable RDMA port: softhca0:1 is down' 1
}

bad_values()
{
    local setting
    for setting in GASNET_IBV_GID_INDEX=softhca0=1 GASNET_IBV_SL=16 GASNET_IBV_TRAFFIC_CLASS=256; do
        SETTINGS=$setting job 2 "$hello"
        fails_with 2 "$setting"
        says "${setting%%=*}='${setting#*=}'"
    done
}

lane chosen records subnets bad_values
lane apart tables_that_differ partitions
lane limits limits_that_differ
lane lost lost_peers too_little
finish
