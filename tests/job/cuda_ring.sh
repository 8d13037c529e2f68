#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program of CUDA's driver API that knows nothing of softgpu or of this tree's tests runs on it, under the launcher: an allgather on
# memory of devices, over the network and with neighbours, one and two devices, by each path.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
[ "$sanitizer" = no ] || skip "softgpu's memory has no shadow"
softgpu=$top_builddir/contrib/softgpu/softgpu
[ -e "$top_builddir/contrib/softgpu/lib/libcuda.so.1" ] || skip "softgpu is not built"
grep -q "^#define TRUNKLINE_KIND_CUDA_UVA " "$top_builddir/conduit/include/gasnet_config.h" || skip "configure left class CUDA_UVA out"

# ring RANKS DEVICES MODE [BYTES]: it ends well and says so
ring()
{
    job "$1" "$softgpu" run --options "devices=$2,delay=50" -- "$jobs/cuda_ring-$3" ${4:+"$4"}
    [ "$status" -eq 0 ] || failed "status $status"
    grep -q "^ring: ok, $1 ranks, $2 devices, " "$scratch/out" || failed "it did not say that all is well: $(cat "$scratch/out")"
}

for near in 0 1; do
    for way in auto peermem ipc staged; do
        SETTINGS="GASNET_SUPERNODE_MAXSIZE=$near GASNET_MK_WAY=$way" ring 2 1 seq
        SETTINGS="GASNET_SUPERNODE_MAXSIZE=$near GASNET_MK_WAY=$way" ring 2 2 par
    done
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=$near" ring 3 2 seq 4100
done

# The other way around: softgpu runs the launcher.
SOFTGPU=devices=2 "$softgpu" run "$GASNETRUN" -n 2 "$jobs/cuda_ring-seq" >"$scratch/out" 2>"$scratch/err"
status=$? command="softgpu run gasnetrun_ibv -n 2 cuda_ring-seq"
[ "$status" -eq 0 ] && grep -q '^ring: ok, 2 ranks, 2 devices' "$scratch/out" || failed "status $status"

# Without the driver's library it does not start; without a device it says so.
LD_LIBRARY_PATH='' job 2 "$jobs/cuda_ring-seq"
[ "$status" -ne 0 ] || [ -e /usr/lib/x86_64-linux-gnu/libcuda.so.1 ] || failed "it ran without libcuda.so.1"
job 2 "$softgpu" run --options devices=0 -- "$jobs/cuda_ring-seq"
[ "$status" -eq 1 ] && grep -q 'cuInit(0): no device' "$scratch/err" || failed "no device: status $status"
finish
