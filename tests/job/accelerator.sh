# SPDX-License-Identifier: BSD-3-Clause
# Sourced behind common.sh: which accelerator the jobs use. softgpu, or with KINDS_REAL=1 (make check-kinds) the machine's, where it
# has one; then $real is not empty. softgpu's memory is mapped in no process, so a CPU that touches it faults.
[ "$sanitizer" = no ] || [ -n "${runs_with_sanitizers:-}" ] || skip "softgpu's memory has no shadow"
real=${KINDS_REAL:-}
if [ -z "$real" ]; then
    gpu=$top_builddir/contrib/softgpu/lib/libcuda.so.1
    export LD_LIBRARY_PATH=${gpu%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
elif nvidia-smi -L >/dev/null 2>&1; then
    export KINDS_CLASS=cuda
elif [ -e /dev/kfd ] && ldconfig -p | grep -q 'libamdhip64\.so\.[56]'; then
    export KINDS_CLASS=hip
else
    skip "no accelerator: nvidia-smi does not answer, and there is no /dev/kfd with libamdhip64"
fi
