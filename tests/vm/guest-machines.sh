#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# On the first of three machines: jobs over the kernel's RDMA stack between hosts. By address handles over Soft-RoCE, by librdmacm
# over Soft-RoCE, and by librdmacm over software iWARP, if SIW_MODULE is its file.
. "$(dirname "$0")/guest-lib.sh"
both=node1,node2
all=$both,node3
# A host that emulates three machines may stop one for longer than the default's second; here a packet is sent twice only if
# it or its answer was lost, and costs 9 s then.
export GASNET_QP_TIMEOUT=21

address_handles()
{
    good "hello, three machines" 3 $all "$jobs/hello-seq" && grep -q '^3 ranks over verbs rxe0:1 .*RoCE v2' $out.out ||
        failed "not over rxe0: $(cat $out.out)"
    good "AM matrix" 2 $both "$jobs/am-seq"
    good "put/get matrix to 256 KiB" 2 $both "$jobs/putget-seq" 262144
    # Each rank has one neighbour on its machine and reaches two ranks by its device.
    good "AM matrix, PAR, two ranks on each" 4 $both "$jobs/am-par"
    good "collectives, three machines" 3 $all "$jobs/collectives-seq" random 1 4
    good "kv" 2 $both "$top_builddir/tests/workloads/kv/kv" --layer api --transport all --store exact --keys 200 --put 30 \
        --ops 200 --verify full
}

# Another's launcher and PMIx server.
foreign()
{
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timed "credits under mpirun" mpirun --bind-to none -n 2 -H $both \
        -x GASNET_SOFTHCA -x GASNET_QP_TIMEOUT -x JOB_DEADLINE "$jobs/credits-seq"
    [ $status = 0 ] || failed "mpirun: $(tail -n 5 $out.err)"
}

# siw does not process a message that arrives while it answers a connect. It reads that message when
# the next one comes, but at start-up none follows the first. The job then ends with that reason and
# is started again.
good_by_cm()
{
    local what=$1 i
    shift
    for i in 1 2 3; do
        timed "$what" "$GASNETRUN" -E JOB_DEADLINE -n 2 -H $both "$@"
        if [ $status = 0 ] || [ -z "$by_siw" ] || ! grep -q 'siw0:1.*its first message has not come in time' $out.err; then
            break
        fi
    done
    [ $status = 0 ] || failed "$what: status $status: $(tail -n 20 $out.err)"
}

# Ranks that connect when they use each other: a closed ring, and all to all at once, over one rail.
on_first_use()
{
    local GASNET_IBV_CONNECT=rdmacm GASNET_IBV_PORTS_VERBOSE=2 most
    export GASNET_IBV_CONNECT GASNET_IBV_PORTS_VERBOSE GASNET_SUPERNODE_MAXSIZE=1
    good "ring of six on first use, $1" 6 $all "$jobs/first_contact-seq" ring
    most=$(sed -n 's/.*connections on demand: \([0-9]*\) of 5 peers.*/\1/p' $out.err | sort -n | tail -n 1)
    [ "${most:-9}" -le 4 ] || failed "a rank of a ring was connected to ${most:-?} peers"
    good "all with all on first use, $1" 6 $all "$jobs/first_contact-seq" 7
    good "the same, PAR, $1" 3 $all "$jobs/first_contact-par" 8
    unset GASNET_SUPERNODE_MAXSIZE
}

by_siw=
connected()
{
    local GASNET_IBV_CONNECT=rdmacm GASNET_IBV_CONNECT_TIMEOUT=10
    export GASNET_IBV_CONNECT GASNET_IBV_CONNECT_TIMEOUT
    good_by_cm "hello, $1" "$jobs/hello-seq"
    grep -q "verbs $2:1 .*librdmacm" $out.out || failed "not over $2 by librdmacm: $(cat $out.out)"
    good_by_cm "AM matrix, $1" "$jobs/am-seq"
}

# Not over one machine's device between its own ranks, as on_first_use().
siw_on_first_use()
{
    local GASNET_IBV_PORTS_VERBOSE=2 said
    export GASNET_IBV_PORTS_VERBOSE
    good "all with all on first use, iWARP" 6 $all "$jobs/first_contact-seq" 7
    said=$(grep -c 'connections on demand: 4 of 4 peers' $out.err)
    [ "$said" = 6 ] || failed "$said ranks of 6 say that they were connected on demand"
    GASNET_CONNECTFILE_OUT=/tmp/used.% good "ring of three on first use, PAR, iWARP" 3 $all "$jobs/first_contact-par" ring
    GASNET_CONNECTFILE_IN=/tmp/used.% GASNET_CONNECT_DYNAMIC=0 good "the same by its connect files" 3 $all \
        "$jobs/first_contact-par" ring
    GASNET_NUM_QPS=2 good "AM matrix, two queue pairs each, iWARP" 2 $both "$jobs/am-seq"
    GASNET_USE_SRQ=1 good "the same, shared receive queues, iWARP" 3 $all "$jobs/first_contact-seq" 9
    good "put/get matrix to 64 KiB, iWARP" 2 $both "$jobs/putget-par" 65536
}

# In the place of Soft-RoCE.
software_iwarp()
{
    local node
    for node in node1 node2 node3; do
        ssh $node "rdma link delete rxe0; busybox insmod $SIW_MODULE && rdma link add siw0 type siw netdev eth0" ||
            failed "$node has no siw"
    done
    by_siw=yes
    # Its own settings, not those of the jobs here
    timed "bundle of siw, read back" env -u GASNET_QP_TIMEOUT bash "$top_srcdir/tests/vm/guest-bundle.sh"
    [ $status = 0 ] || failed "bundle: $(tail -n 20 $out.out $out.err)"
    GASNET_CONNECT_STATIC=1 connected "iWARP, connected at start-up" siw0
    siw_on_first_use
}

address_handles
if command -v mpirun >/dev/null; then
    foreign
else
    echo "left out: no mpirun (Debian package openmpi-bin)"
fi
nothing_sent_twice 1 2
connected "Soft-RoCE by librdmacm" rxe0
on_first_use "Soft-RoCE by librdmacm"
nothing_sent_twice 1 2
if [ -n "${SIW_MODULE-}" ]; then
    software_iwarp
else
    echo "left out: iWARP, whose module could not be had"
fi
finish
