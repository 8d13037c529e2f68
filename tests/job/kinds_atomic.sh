#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Remote atomics on memory of accelerators, which HCAs execute. softgpu stands in for the driver.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
. "$top_srcdir/tests/job/accelerator.sh"

# Over the network, with neighbours by the HCA too; registered by dma-buf and by peer memory
sums()
{
    for way in dmabuf peermem; do
        SETTINGS="GASNET_SUPERNODE_MAXSIZE=1 GASNET_MK_WAY=$way" good 3 "$jobs/kinds_atomic-seq"
        SETTINGS="GASNET_SUPERNODE_MAXSIZE=2 GASNET_MK_WAY=$way" good 4 "$jobs/kinds_atomic-seq"
    done
}

# refusal LINE SETTING...: of an atomic
refusal()
{
    local line=$1
    shift
    SETTINGS="$*" job 2 "$jobs/kinds_atomic-seq"
    grep -q "gex_AD_OpNB.*$line" "$scratch/err" && [ "$status" -ne 0 ] || failed "$*: not refused by a line"
}

refusals()
{
    refusal "executed by CPUs" KINDS_REFUSED=type GASNET_SUPERNODE_MAXSIZE=1
    refusal "executed by CPUs" KINDS_REFUSED=neighbour GASNET_SUPERNODE_MAXSIZE=0
    refusal "executed by CPUs" KINDS_REFUSED=own GASNET_AD_METHOD=cpu GASNET_SUPERNODE_MAXSIZE=1
    refusal "executed by CPUs" KINDS_REFUSED=other GASNET_AD_METHOD=message GASNET_SUPERNODE_MAXSIZE=1
    refusal "not registered with an HCA" KINDS_REFUSED=other GASNET_MK_WAY=staged GASNET_SUPERNODE_MAXSIZE=1
}

lane sums sums
lane refusals refusals
finish
