#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every kind of device that softhca can imitate (SOFTHCA_PROFILE), with default settings: messages, puts and gets, vectors, atomics,
# collectives, connections on demand and ends of jobs work, or one line says what the device lacks and what to use instead.
# GASNET_VERBOSEENV prints the limits that the library had to try: inline data, lists and depth.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1

# of NAME: one job of each kind
of()
{
    SETTINGS="SOFTHCA_PROFILE=$1"
    good 2 "$jobs/am-seq"
    good 2 "$jobs/putget-seq" 20000
    good 2 "$jobs/vector-seq" 12 1
    good 2 "$jobs/atomics-seq" 3
    every 4 && good 3 "$jobs/collectives-seq" random 11 2
    every 2 && good 3 "$jobs/first_contact-seq" 1
    SETTINGS="SOFTHCA_PROFILE=$1"
    job 3 "$jobs/exit-seq" 11
    fails_with 11 "an end by all ranks on $1"
    job 2 "$jobs/exit-seq" 8
    fails_with 8 "an end by one rank on $1"
}

# asks NAME INLINE LIST: what the library got of the device
asks()
{
    SETTINGS="SOFTHCA_PROFILE=$1 GASNET_VERBOSEENV=1" good 2 "$jobs/first_contact-seq" 1
    says "inline $2 B, lists of $3" 1
}

# steps_down LIMITS SETTING...: the library ends up with these limits of a send queue
steps_down()
{
    limits=$1
    shift
    SETTINGS="GASNET_VERBOSEENV=1 $*" good 2 "$jobs/am-seq"
    says "$limits;" 1
}

# lacks NAME TEXT: one line, which names the device
lacks()
{
    SETTINGS="SOFTHCA_PROFILE=$1"
    job 2 "$jobs/am-seq"
    fails_with 1 "a job on $1"
    says 'no usable RDMA port' 1
    says "$2" 1
}

cards()
{
    for name in connectx-3 connect-ib connectx-4 connectx-5 connectx-7; do
        of $name
    done
    SETTINGS="SOFTHCA_PROFILE=connectx-5 GASNET_VERBOSEENV=1 GASNET_NETWORKDEPTH_PP=16384" good 2 "$jobs/am-seq"
    says 'inline 72 B, lists of 2' 1
    # Six sizes of inline data, long lists and short ones, and half the depth; the first queue pair is for datagrams.
    steps_down 'inline 72 B, lists of 2, queues of 12' SOFTHCA_PROFILE=connectx-5 SOFTHCA_FAULT=enomem:call=create_qp,after=1,count=12
    steps_down 'inline 72 B, lists of 2, queues of 6' SOFTHCA_PROFILE=connectx-5 SOFTHCA_FAULT=enomem:call=create_qp,count=18 GASNET_CONNECT_STATIC=1
    steps_down 'lists of 6, queues of 8127' SOFTHCA_PROFILE=e810-roce GASNET_NETWORKDEPTH_PP=16384
}

ethernet()
{
    for name in qedr e810-roce hns bnxt pvrdma rxe; do
        of $name
    done
    asks qedr 72 4
    asks e810-roce 72 6
    asks hns 32 8
}

iwarp()
{
    for name in e810-iwarp i40iw cxgb4 siw erdma; do
        of $name
    done
    asks i40iw 48 2
    asks cxgb4 64 2
    # The first call is the probe at start, the next ones are on first use.
    SETTINGS="SOFTHCA_PROFILE=siw SOFTHCA_FAULT=enomem:call=create_qp,after=1" job 2 "$jobs/first_contact-seq" 1
    fails_with 1 "first use without memory for queue pairs"
    says 'create_qp for rank [01] failed: Cannot allocate memory'
    says 'SIGSEGV' 0
}

others()
{
    of hfi1
    says_of_omni_path
    asks hfi1 0 16
    lacks efa 'efa_0 has no reliable connections (RC), which this library needs: EFA is used by libfabric'
    lacks mana 'mana_0 has no reliable connections (RC) with this kernel: use a newer one'
    mixed
    cannot_grow
}

# Completion queues that can't grow are made for all peers: the job has more than 64.
cannot_grow()
{
    ! is_cheap 68 || SETTINGS="SOFTHCA_PROFILE=qedr" good 68 "$jobs/many_ranks-seq"
}

says_of_omni_path()
{
    SETTINGS="SOFTHCA_PROFILE=hfi1" good 2 "$jobs/first_contact-seq" 1
    says 'hfi1_0 does verbs in software, which is slow: Omni-Path is faster by PSM2' 1
    SETTINGS="SOFTHCA_PROFILE=hfi1 GASNET_IBV_PORTS_VERBOSE=0" good 2 "$jobs/first_contact-seq" 1
    says 'PSM2' 0
}

# each KIND... -- PROGRAM [ARGS...]: as many ranks as kinds, each with its own
each()
{
    local kinds=
    while [ "$1" != -- ]; do
        kinds="$kinds $1"
        shift
    done
    shift
    # shellcheck disable=SC2016,SC2086 # for the shell in between; a list of words
    SETTINGS= job "$(wc -w <<<"$kinds")" sh -c 'set -e; n=$PMIX_RANK kinds=$1; shift
        for SOFTHCA_PROFILE in $kinds; do [ "$n" -gt 0 ] || break; n=$((n - 1)); done
        export SOFTHCA_PROFILE; exec "$@"' sh "$kinds" "$@"
}

# Two kinds of one link layer in a process; an unusable device beside a usable one; ranks with different devices.
mixed()
{
    SETTINGS="SOFTHCA_PROFILE=connectx-5,connectx-3 GASNET_NUM_QPS=2" good 2 "$jobs/am-seq"
    SETTINGS="SOFTHCA_PROFILE=efa,qedr" good 2 "$jobs/putget-seq" 20000
    says 'ports that are not used: efa_0 has no reliable connections' 1
    each connectx-5 connectx-3 hfi1 -- "$jobs/first_contact-seq" 1
    passes 'InfiniBand of three kinds'
    each qedr e810-roce rxe hns -- "$jobs/collectives-seq" random 11 2
    passes 'RoCE of four kinds'
    each connectx-5 qedr -- "$jobs/am-seq"
    fails_with 1 'InfiniBand and Ethernet'
    says 'InfiniBand does not reach Ethernet' 1
}

lane cards cards
lane ethernet ethernet
lane iwarp iwarp
lane others others
finish
