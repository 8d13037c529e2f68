#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Fabrics that are mixed or lack something, by the addresses of their ports: bonded ports, several LIDs a port, InfiniBand subnets with
# and without a router, IPv6 alone, VLANs, tables of GIDs with empty entries, ranks with other numbers and kinds of ports. A job runs,
# or ends with one line. doc/devices.md lists them ("Mixed and broken fabrics"); tests/job/addressing.sh has the usual fabrics.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1
program=$jobs/putget-seq
messages=$jobs/am-seq

# job_by_rank N PROGRAM [ARGS...]: a job in which rank R has the words of ranks[R] in its environment, beside SETTINGS.
ranks=()
job_by_rank()
{
    local size=$1 rank
    shift
    {
        echo '#!/bin/sh'
        echo "case \$PMIX_RANK in"
        for rank in "${!ranks[@]}"; do
            echo "$rank) export PMIX_RANK ${ranks[rank]} ;;"
        done
        echo "esac"
        echo 'exec "$@"'
    } >"$scratch/rank"
    chmod 755 "$scratch/rank"
    job "$size" "$scratch/rank" "$@"
}

# One device with one port for both; when the bond moves to its other port, packets are lost, and no port event comes.
bond()
{
    SETTINGS="SOFTHCA_PROFILE=connectx-4-lx-bond GASNET_VERBOSEENV=1 GASNET_QP_TIMEOUT=10 SOFTHCA_FAULT=drop:after=10,count=4" good 2 "$program" 65536
    says 'network: mlx5_bond_0:1 (Ethernet, GID index 3, ::ffff:10.83.0.1, RoCE v2: .*MTU 1024, .*; only usable device of this host' 1
    says 'no longer reaches\|is down' 0
    SETTINGS="SOFTHCA_PROFILE=connectx-4-lx-bond,connectx-4-lx-bond GASNET_IBV_PORTS=mlx5_bond_1:1 GASNET_VERBOSEENV=1" good 2 "$messages"
    says 'network: mlx5_bond_1:1 (Ethernet, GID index 3, ::ffff:10.83.1.1, .*only usable device of GASNET_IBV_PORTS' 1
}

# The first of the LIDs of a port is used.
lids()
{
    local lmc
    for lmc in 2 7; do
        SETTINGS="SOFTHCA_LMC=$lmc GASNET_VERBOSEENV=1" good 3 "$program" 65536
        says "network: softhca0:1 (InfiniBand, LID $((16 << lmc)), " 1
    done
    SETTINGS="SOFTHCA_LMC=3 GASNET_CONNECT_STATIC=1" good 2 "$messages"
}

# Hosts that found the ports of two subnets in another order pair them all the same; ranks that share no subnet need a router.
subnets()
{
    local static
    ranks=("SOFTHCA_SUBNET=softhca0:1=1,softhca1:1=2" "SOFTHCA_SUBNET=softhca0:1=2,softhca1:1=1")
    SETTINGS="SOFTHCA_HCAS=2 SOFTHCA_ROUTER=0 GASNET_NUM_QPS=2" job_by_rank 2 "$program" 65536
    passes "two subnets, two rails"
    SETTINGS="SOFTHCA_HCAS=2 SOFTHCA_ROUTER=0 GASNET_IBV_PORTS_VERBOSE=1" job_by_rank 2 "$messages"
    passes "two subnets, one rail"
    says 'port softhca1:1 is not used: it is not on the network of the first port' 1
    ranks=(SOFTHCA_SUBNET=1 SOFTHCA_SUBNET=2)
    for static in 0 1; do
        SETTINGS="SOFTHCA_ROUTER=0 GASNET_CONNECT_STATIC=$static GASNET_CONNECT_TIMEOUT=1 GASNET_QP_TIMEOUT=12 GASNET_QP_RETRY_COUNT=1 GASNET_EXITTIMEOUT=1" \
            job_by_rank 2 "$messages"
        fails_with 1 "no common subnet"
        says 'softhca0:1 (GID fec0::[12]:.*) to softhca0:1 (GID fec0::[12]:.*) on another network, which only a router reaches'
    done
    SETTINGS="" job_by_rank 2 "$messages"
    passes "a router between two subnets"
}

# IPv6 alone, also by librdmacm; link-local alone; a host without IPv4 and one without IPv6
ipv6()
{
    SETTINGS="SOFTHCA_LINK=roce SOFTHCA_GIDS=link+ipv6 GASNET_VERBOSEENV=1" good 2 "$program" 65536
    says 'GID index 3, fd53:4843:4100:100::1, RoCE v2: the best usable one' 1
    SETTINGS="SOFTHCA_LINK=roce SOFTHCA_GIDS=link+ipv6 GASNET_IBV_CONNECT=rdmacm GASNET_VERBOSEENV=1" good 2 "$messages"
    says '\[fd53:4843:4100:100::1\]' 1
    SETTINGS="SOFTHCA_LINK=roce SOFTHCA_GIDS=link" good 2 "$messages"
    ranks=("SOFTHCA_GIDS=ipv6" "SOFTHCA_GIDS=ipv4")
    SETTINGS="SOFTHCA_LINK=roce" job_by_rank 2 "$messages"
    fails_with 1 "IPv6 and IPv4"
    says 'no GIDs of one kind (type, and IPv4, IPv6 or link-local' 1
    says '^trunkline' 1
}

# Of two networks the one that both are on; behind a router the other one; without one a line that says so.
vlans()
{
    ranks=("SOFTHCA_GIDS=link+ipv4+ipv4@5 GASNET_VERBOSEENV=1" "SOFTHCA_GIDS=-+-+link@5+ipv4@5")
    SETTINGS="SOFTHCA_LINK=roce SOFTHCA_ROUTER=0" job_by_rank 2 "$program" 65536
    passes "one VLAN in common"
    says 'GID index 5, ::ffff:10.105.0.1, RoCE v2: the best usable one that the peer has the kind of' 1
    ranks=(SOFTHCA_GIDS=link+ipv4 SOFTHCA_GIDS=link+ipv4@5)
    SETTINGS="SOFTHCA_LINK=roce" job_by_rank 2 "$messages"
    passes "a router between two VLANs"
    SETTINGS="SOFTHCA_LINK=roce SOFTHCA_ROUTER=0 GASNET_CONNECT_TIMEOUT=1 GASNET_EXITTIMEOUT=1" job_by_rank 2 "$messages"
    fails_with 1 "no VLAN in common"
    says 'softhca0:1 (GID ::ffff:10.*) to softhca0:1 (GID ::ffff:10.*) on another network, which only a router reaches'
    ranks=(SOFTHCA_GIDS=ipv4 SOFTHCA_GIDS=ipv4@5)
    SETTINGS="SOFTHCA_LINK=roce SOFTHCA_ROCE=1" job_by_rank 2 "$messages"
    fails_with 1 "RoCE v1 in two VLANs"
    says 'has RoCE v1 ::ffff:10.83.0.1, and .* has RoCE v1 ::ffff:10.105.0.1: no GIDs of one kind (.*; RoCE v1 also needs one network)' 1
    says '^trunkline' 1
}

# Empty entries, in other places in each rank; an InfiniBand port whose entry 0 is empty; a table without a GID
holes()
{
    ranks=(SOFTHCA_GIDS=-+-+-+-+link+ipv4 SOFTHCA_GIDS=-+ipv4 "SOFTHCA_GIDS=ipv4+- SOFTHCA_ROCE=2")
    SETTINGS="SOFTHCA_LINK=roce" job_by_rank 3 "$program" 65536
    passes "tables with empty entries"
    SETTINGS="SOFTHCA_LINK=roce GASNET_IBV_CONNECT=rdmacm" job_by_rank 3 "$messages"
    passes "tables with empty entries, by librdmacm"
    ranks=("SOFTHCA_GIDS=-+link SOFTHCA_SUBNET=1 GASNET_VERBOSEENV=1" SOFTHCA_SUBNET=2)
    SETTINGS="" job_by_rank 2 "$program" 65536
    passes "InfiniBand without the first entry"
    says 'GID index 1, fec0::1:.*, InfiniBand: to other subnets' 1
    ranks=(SOFTHCA_GIDS=- "")
    SETTINGS="" job_by_rank 2 "$messages"
    passes "InfiniBand without a GID"
    SETTINGS="SOFTHCA_LINK=roce SOFTHCA_GIDS=-" job 2 "$messages"
    fails_with 1 "RoCE without a GID"
    says 'no usable RDMA port: softhca0:1 has no usable GID' 1
    says '^trunkline' 1
}

# All use as many ports as the host with the fewest, and those kinds that all have.
numbers()
{
    local one=SOFTHCA_UNPLUGGED=softhca1:1,softhca2:1,softhca3:1
    ranks=("" "$one" "SOFTHCA_UNPLUGGED=softhca0:1,softhca2:1")
    SETTINGS="SOFTHCA_HCAS=4 GASNET_NUM_QPS=4" job_by_rank 3 "$program" 65536
    passes "hosts with 4, 1 and 2 ports"
    says '^trunkline.0@.*all ranks use 1 of the ports that they found, up to 4, because rank 1 (.*) has no more' 1
    says '^trunkline' 1
    ranks=("" "" "SOFTHCA_UNPLUGGED=softhca0:1,softhca2:1")
    SETTINGS="SOFTHCA_HCAS=4 GASNET_IBV_PORTS=softhca0+softhca1+softhca2+softhca3 GASNET_CONNECT_STATIC=1 GASNET_VERBOSEENV=1" job_by_rank 3 "$messages"
    passes "hosts with 4, 4 and 2 ports"
    says 'network: rail 1 of 2: softhca[1-3]:1 ' 1
    ranks=("" "" "$one")
    SETTINGS="SOFTHCA_HCAS=4 SOFTHCA_LINK=roce GASNET_IBV_PORTS_TYPE=auto:2 GASNET_IBV_CONNECT=rdmacm" job_by_rank 3 "$messages"
    passes "hosts with 2, 2 and 1 ports, shared"
    says 'all ranks use 1 of the ports that they found, up to 2' 1
    ranks=("SOFTHCA_PROFILE=connectx-7,qedr" "SOFTHCA_PROFILE=connectx-7,connectx-5")
    SETTINGS="GASNET_NUM_QPS=2 GASNET_USE_SRQ=1 GASNET_USE_XRC=1" job_by_rank 2 "$messages"
    passes "a second port of another kind"
    says 'all ranks use 1 of the ports that they found, up to 2: the others are InfiniBand in one rank and Ethernet in another' 1
    ranks=("SOFTHCA_PROFILE=connectx-7,e810-iwarp" "SOFTHCA_PROFILE=connectx-7,qedr")
    SETTINGS="GASNET_NUM_QPS=2" job_by_rank 2 "$messages"
    passes "a second port of iWARP"
    says 'all ranks use 1 of the ports that they found, up to 2: the others are Ethernet in one rank and iWARP in another' 1
    ranks=("SOFTHCA_PROFILE=qedr,e810-iwarp GASNET_IBV_PORTS_VERBOSE=1" SOFTHCA_PROFILE=e810-iwarp,qedr)
    SETTINGS="" job_by_rank 2 "$messages"
    passes "RoCE and iWARP on each host"
    says 'port irdma0:1 is not used: it is iWARP, and RoCE, which is used, does not reach it' 1
    ranks=(SOFTHCA_PROFILE=qedr SOFTHCA_PROFILE=e810-iwarp)
    SETTINGS="" job_by_rank 2 "$messages"
    fails_with 1 "RoCE and iWARP"
    says '^trunkline.0@.*the ranks found different kinds of ports to use, and iWARP does not reach other networks' 1
}

# InfiniBand is preferred, wherever the host has it.
kinds()
{
    ranks=("SOFTHCA_PROFILE=qedr,connectx-7 GASNET_IBV_PORTS_VERBOSE=1" SOFTHCA_PROFILE=connectx-7,qedr)
    SETTINGS="" job_by_rank 2 "$program" 65536
    passes "InfiniBand and RoCE on each host"
    says 'port qedr0:1 is not used: it is Ethernet, and InfiniBand, which is used, does not reach it' 1
    SETTINGS="GASNET_NUM_QPS=2" job_by_rank 2 "$messages"
    passes "rails over InfiniBand and RoCE"
}

lane bond bond
lane lids lids
lane subnets subnets
lane ipv6 ipv6
lane vlans vlans
lane holes holes
lane kinds numbers kinds
finish
