#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Transfers with memory of accelerators, in a random mix with an exact model, by each path. softgpu stands in for the driver: its
# memory is mapped in no process, so a CPU that touches it faults.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
[ "$sanitizer" = no ] || skip "softgpu's memory has no shadow"
gpu=$top_builddir/contrib/softgpu/lib/libcuda.so.1
export LD_LIBRARY_PATH=${gpu%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
small="GASNET_MK_PIECE=8192 GASNET_MK_STAGING=131072" # transfers of many pieces, which wait for slots

# mixes NEAR: over the network (1), with neighbours (0)
mixes()
{
    for way in auto ipc staged; do
        SETTINGS="GASNET_SUPERNODE_MAXSIZE=$1 GASNET_MK_WAY=$way" good 2 "$jobs/kinds-seq" 20
        SETTINGS="GASNET_SUPERNODE_MAXSIZE=$1 GASNET_MK_WAY=$way SOFTGPU=devices=2 $small" good 3 "$jobs/kinds-par" 20
    done
}
network() { mixes 1; }
neighbours() { mixes 0; }

alone()
{
    for way in auto staged; do
        SETTINGS="GASNET_MK_WAY=$way SOFTGPU=devices=2" good 1 "$jobs/kinds-par" 20
    done
}

# paths WORD...: the last job named each of these paths
paths()
{
    for word; do
        grep -q "transfers of device memory $word" "$scratch/err" || failed "no transfer travelled '$word'"
    done
}

names()
{
    SETTINGS="GASNET_VERBOSEENV=1 GASNET_SUPERNODE_MAXSIZE=0" good 2 "$jobs/kinds-seq" 20
    paths "within this process travel copied by a device" "with neighbours travel .*IPC" "with neighbours travel copied by a device$"
    SETTINGS="GASNET_VERBOSEENV=1 GASNET_SUPERNODE_MAXSIZE=0 GASNET_MK_WAY=staged" good 2 "$jobs/kinds-seq" 20
    paths "with neighbours travel .* memory here" "with neighbours travel .* memory of the target"
    grep -q IPC.*travel "$scratch/err" && failed "GASNET_MK_WAY=staged used IPC"
    SETTINGS="GASNET_VERBOSEENV=1 GASNET_SUPERNODE_MAXSIZE=1 GASNET_MK_WAY=staged" good 2 "$jobs/kinds-seq" 20
    paths "over the network travel .* memory here" "over the network travel .* memory of the target"
}

lane network network
lane neighbours neighbours
lane alone alone names
finish
