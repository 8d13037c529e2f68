#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Transfers with memory of accelerators, in a random mix with an exact model, by each path. softgpu stands in for the driver: its
# memory is mapped in no process, so a CPU that touches it faults.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
runs_with_sanitizers=1
. "$top_srcdir/tests/job/accelerator.sh"
small="GASNET_MK_PIECE=8192 GASNET_MK_STAGING=131072" # transfers of many pieces, which wait for slots

# mixes NEAR: over the network (1), with neighbours (0)
mixes()
{
    for way in auto ipc staged; do
        SETTINGS="GASNET_SUPERNODE_MAXSIZE=$1 GASNET_MK_WAY=$way" good 2 "$jobs/kinds-seq" 20
        SETTINGS="GASNET_SUPERNODE_MAXSIZE=$1 GASNET_MK_WAY=$way SOFTGPU=devices=2 $small" good 3 "$jobs/kinds-par" 20
    done
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=$1 $small" good 2 "$jobs/kinds-par" 10 4
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

# HCAs reach the memory: by dma-buf, by peer memory, over two HCAs, and when one of the two goes down
hcas()
{
    SETTINGS="GASNET_VERBOSEENV=1 GASNET_SUPERNODE_MAXSIZE=1 GASNET_MK_WAY=dmabuf" good 2 "$jobs/kinds-seq" 20
    paths "over the network travel by the HCA" "over the network travel .* memory here"
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=1 GASNET_MK_WAY=peermem SOFTGPU=devices=2" good 3 "$jobs/kinds-par" 20
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=1 SOFTHCA_HCAS=2 GASNET_NUM_QPS=2" good 2 "$jobs/kinds-par" 20
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=1 SOFTHCA_HCAS=2 GASNET_NUM_QPS=2 SOFTHCA_FAULT=unplug:dev=softhca1,op=any,nth=60" \
        good 2 "$jobs/kinds-seq" 20
    [ -z "$real" ] || return
    # Small reads come with the completion, and the CPU of the reader stores them. With 3M one device segment of two is registered.
    for memory in devices=1 bar=3M; do
        SETTINGS="GASNET_SUPERNODE_MAXSIZE=1 SOFTHCA_SCATTER=64 SOFTGPU=$memory" good 2 "$jobs/kinds-seq" 40
    done
    for lacks in no-dmabuf no-dmabuf,no-peermem,no-ipc bar=1M; do
        SETTINGS="GASNET_SUPERNODE_MAXSIZE=1 SOFTGPU=$lacks" good 2 "$jobs/kinds-seq" 10
    done
}

# The device sees what an HCA wrote only after a flush. Puts are flushed by the read behind them; this is tested without gets, which flush
# too. Gets are flushed by the driver.
weak_order()
{
    for way in auto dmabuf peermem; do
        SETTINGS="GASNET_SUPERNODE_MAXSIZE=1 GASNET_MK_WAY=$way SOFTGPU=weak-order KINDS_PUTS=1" good 2 "$jobs/kinds-seq" 10
        SETTINGS="GASNET_SUPERNODE_MAXSIZE=1 GASNET_MK_WAY=$way SOFTGPU=weak-order" good 2 "$jobs/kinds-seq" 10
    done
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=1 SOFTHCA_HCAS=2 GASNET_NUM_QPS=2 SOFTGPU=weak-order,devices=2 KINDS_PUTS=1" good 3 "$jobs/kinds-par" 10
}

# A copy that fails, or a device that is lost, ends the job with status 1 and a line of the rank, as a lost port does; nothing is left.
# The program may be the first to see that its device is lost.
faults()
{
    [ -z "$real" ] || return
    for fault in copy:after=40 copy:after=40,when=call lost:after=150; do
        for near in 0 1; do
            SETTINGS="GASNET_SUPERNODE_MAXSIZE=$near GASNET_MK_WAY=staged SOFTGPU_FAULT=$fault" job 2 "$jobs/kinds-seq" 20
            grep -qE "^trunkline\[[01]@.*a copy of .* by CUDA_UVA device 0 .* failed: |kinds_devices.c:|kinds.c:" "$scratch/err" || failed "a fault was not reported"
            [ "$status" -eq 1 ] || grep -q "kinds.*\.c:" "$scratch/err" || failed "status $status after a fault of a device"
            grep -qi "abort\|signal 6\|core" "$scratch/err" && failed "a fault of a device looks like one of the library"
        done
    done
}

# Two hosts with two ranks each; segments that are registered on demand.
others()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=2" good 4 "$jobs/kinds-seq" 10
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=1" good 2 "$jobs/kinds-large" 10 2
}

# A rank dies: the others end soon, whatever they wait for.
deaths()
{
    for near in 0 1; do
        for way in auto staged; do
            SETTINGS="GASNET_SUPERNODE_MAXSIZE=$near GASNET_MK_WAY=$way KINDS_KILL=5" job 3 "$jobs/kinds-seq" 2000
            [ "$status" = 137 ] || failed "status $status after SIGKILL of a rank"
            within 20
        done
    done
}

# Classes of other vendors, and two classes in one process. Data between the two passes through the host, because no device copies for both.
classes()
{
    for class in hip ze cuda,hip hip,ze; do
        for near in 0 1; do
            SETTINGS="GASNET_SUPERNODE_MAXSIZE=$near KINDS_CLASS=$class" good 2 "$jobs/kinds-seq" 10
        done
    done
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=1 KINDS_CLASS=hip SOFTGPU=weak-order,devices=2" good 2 "$jobs/kinds-par" 10 2
    SETTINGS="KINDS_CLASS=ze,cuda GASNET_MK_WAY=staged" good 1 "$jobs/kinds-par" 10
}

# Each rank has one line of each of the two calls.
freed_memory()
{
    SETTINGS="KINDS_FREED=1" job 3 "$jobs/kinds-seq"
    [ "$status" -eq 0 ] || failed "status $status"
    [ "$(grep -c "the memory under a device segment was freed before gex_Segment_Destroy" "$scratch/err")" = 2 ] &&
        [ "$(grep -c "rank 1 .* could not publish its segments" "$scratch/err")" = 4 ] || failed "freed memory was not reported by all ranks"
}

# count NAME: of rank 0
count()
{
    grep -o "\"$1\": *[0-9]*" "$scratch/stats-0.json" | grep -o '[0-9]*$' | head -1
}

counts()
{
    SETTINGS="GASNET_STATSFILE=$scratch/stats-%.json GASNET_SUPERNODE_MAXSIZE=1 GASNET_MK_WAY=staged $small" good 2 "$jobs/kinds-seq" 20
    for name in kind_bytes kind_served kind_slot_waits; do
        [ "$(count $name)" -gt 0 ] 2>/dev/null || failed "counter $name is '$(count $name)'"
    done
    # Ten strided puts of 1000 rows, ten gets of them, and ten of a block
    SETTINGS="GASNET_STATSFILE=$scratch/stats-%.json GASNET_SUPERNODE_MAXSIZE=1 GASNET_MK_WAY=staged" good 2 "$jobs/kinds-seq" 0
    [ "$(count kind_target)" = 30 ] || failed "30 transfers of rows were $(count kind_target)"
}

# The last kind is destroyed while a device copies by IPC.
ends()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0 SOFTGPU_FAULT=copy:ms=100" good 2 "$jobs/kind_ends-seq"
}

# Only puts and gets that a CPU may do are inlined into the client.
inlined()
{
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good 2 "$jobs/inlined-seq" near
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=1 good 2 "$jobs/inlined-seq" far
}

# Sanitizers check the library's own memory; the tests above check memory that only devices and HCAs access.
sanitized()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=1 GASNET_MK_WAY=staged $small" good 2 "$jobs/kinds-seq" 4
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=1" good 2 "$jobs/kinds-par" 4 2
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0 SOFTGPU=devices=2" good 2 "$jobs/kinds-par" 4 2
}

if [ "$sanitizer" != no ]; then
    lane sanitized sanitized freed_memory
    finish
fi
lane network network
lane hcas hcas weak_order counts
lane ends deaths faults freed_memory others
lane neighbours neighbours
lane alone alone names classes ends inlined
finish
