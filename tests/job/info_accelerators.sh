#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# trunkline_info shows the accelerators of softgpu beside the ports of softhca: where they are, by which path data travels, what is
# missing for a better one; --check has advice, or an error where GASNET_MK_WAY asks for what fails. A job travels as it says.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
[ "$sanitizer" = no ] || skip "the program is the plain one"
info=$top_builddir/contrib/info/trunkline_info
softhca=$top_builddir/contrib/softhca/softhca
softgpu=$top_builddir/contrib/softgpu/softgpu
gpu=$top_builddir/contrib/softgpu/lib/libcuda.so.1
unset "${!GASNET_@}" # make check has settings of its own

# run STATUS GPUS [NAME=VALUE...] -- ARGS...
run()
{
    local expected=$1 gpus=$2 settings=()
    shift 2
    while [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    shift
    command="${settings[*]} softgpu run --options $gpus softhca run trunkline_info $*"
    env SOFTHCA_ONLY=1 "${settings[@]}" "$softgpu" run --options "$gpus" "$softhca" run --hcas 2 -- "$info" "$@" \
        >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    [ "$status" -eq "$expected" ] || failed "status $status, not $expected"
    [ ! -s "$scratch/err" ] || failed "it wrote to standard error"
}

has() { grep -qE -- "$1" "$scratch/out" || failed "nothing printed like '$1': $(cat "$scratch/out")"; }
has_not() { ! grep -qE -- "$1" "$scratch/out" || failed "printed: $(grep -E -- "$1" "$scratch/out")"; }

for class in CUDA_UVA HIP ZE; do
    grep -q "^#define TRUNKLINE_KIND_$class " "$top_builddir/conduit/include/gasnet_config.h" || skip "configure left class $class out"
done

# All that works
run 0 devices=2 -- --devices
has '^Accelerators$'
has 'accelerator +CUDA_UVA device 1 \(softgpu1, PCI 0000:42:00.0\)$'
has 'accelerator +HIP device 0 \(softgpu0, PCI 0000:41:00.0\)$'
has 'accelerator +ZE device \(softgpu0, PCI 0000:41:00.0\)$'
has 'memory 4096 MiB, BAR unknown$'
has '^ +ranks of this host: by IPC$'
has 'softhca0:1: place unknown to hwloc; in place, by dma-buf$'
has 'softhca1:1: .*by dma-buf \(a port not in use\)$'
run 0 devices=1 -- --check
has '^ok +CUDA_UVA device 0 .*: the HCAs in use access its memory in place$'
has_not '^(advice|WRONG) .*device'

# The next best path, and what is missing for a better one
run 0 no-dmabuf -- --devices
has 'softhca0:1: .*in place, by peer memory$'
has '^ +dma-buf: the driver exports no dma-bufs'
has_not 'peer memory: .*nvidia-peermem'
run 0 no-dmabuf,no-peermem,no-ipc -- --devices
has 'softhca0:1: .*staged through host memory$'
has 'peer memory: ibv_reg_mr: .*; nvidia-peermem is not loaded$'
has '^ +ranks of this host: staged through host memory$'
has '^ +IPC: cuIpcGetMemHandle: '
run 0 no-dmabuf,no-peermem,no-ipc -- --check
has '^advice +CUDA_UVA device 0 .* staged .*neither by dma-buf \(.*\) nor by peer memory \(.*; install CUDA 11.7 .*load the module nvidia-peermem$'
has '^advice +HIP device 0 .* staged .*; install ROCm 5.3'
has '^advice +CUDA_UVA device 0 .*gives no handle of its memory to other processes'
run 0 bar=4096 -- --devices # less than the trial takes
has '^ +dma-buf: cuMemGetHandleForAddressRange: '

run 0 devices=1 SOFTHCA_DMABUF=0 -- --devices # the HCA's driver is too old
has '^ +dma-buf: ibv_reg_dmabuf_mr: Operation not supported$'
has 'softhca0:1: .*in place, by peer memory$'
run 0 no-peermem SOFTHCA_DMABUF=0 -- --check
has '^advice +CUDA_UVA device 0 .*ibv_reg_dmabuf_mr: .*; install rdma-core 34 and Linux 5.12'

# Settings
run 0 devices=1 GASNET_MK_WAY=staged -- --devices
has 'softhca0:1: .*staged through host memory$'
has 'ranks of this host: staged'
run 1 no-peermem GASNET_MK_WAY=peermem -- --check
has '^WRONG +CUDA_UVA device 0 .*gex_Segment_Create\(\) fails under this GASNET_MK_WAY.*set GASNET_MK_WAY=auto$'

# A device that fails
run 1 memory=64K SOFTGPU_FAULT=alloc -- --check
has "^WRONG +CUDA_UVA device 0 .*: it can't be used \(cuMemAlloc"

# Places: softgpu0 beside one HCA, and the other HCA at the other socket
machine=$scratch/machine.xml
sed -e 's/0000:13:00\.0/0000:41:00.0/; s/"mlx5_0"/"softhca0"/; s/"mlx5_2"/"softhca1"/' \
    "$top_srcdir/tests/unit/topology/four-switches.xml" >"$machine"
run 0 devices=1 HWLOC_XMLFILE="$machine" -- --devices
has 'softhca0:1: behind the same switch; in place'
has 'softhca1:1: at another socket; in place'
run 0 devices=1 HWLOC_XMLFILE="$machine" GASNET_IBV_PORTS=softhca1 -- --check
has '^advice +CUDA_UVA device 0 .*the HCA in use \(softhca1\) is at another socket, and softhca0 is nearer'

# No device, and no library: nothing that is wrong
run 0 devices=0 -- --check
has_not '^(advice|WRONG) .*(CUDA|HIP|ZE)'
SOFTHCA_ONLY=1 "$softhca" run -- "$info" --devices >"$scratch/out" 2>"$scratch/err" || failed "no library: status $?"
has_not '^  accelerator'

# A job has the path that was announced.
if [ -x "$jobs/kinds-seq" ]; then
    export LD_LIBRARY_PATH=${gpu%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    for case in "devices=1|in place by dma-buf" "no-dmabuf|in place by peer memory" "no-dmabuf,no-peermem|staged through host memory"; do
        SETTINGS="SOFTGPU=${case%|*} GASNET_VERBOSEENV=1 GASNET_SUPERNODE_MAXSIZE=1" good 2 "$jobs/kinds-seq" 2
        grep -q "from other hosts ${case#*|}" "$scratch/err" || failed "a job with ${case%|*} is not '${case#*|}'"
    done
fi
finish
