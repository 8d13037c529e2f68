# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared by the tests of this folder; sourced. Skips the test if no VM is possible here, else defines run_in_vm, which runs a script
# of this folder inside. KERNEL_SUITE=backports: on the newer kernel of Debian's backports.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
rxe_vm=$top_srcdir/contrib/rxe-vm

skip()
{
    echo "SKIP: $*"
    exit 77
}

for tool in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static modprobe:kmod cpio:cpio \
    xz:xz-utils setpriv:util-linux rdma:iproute2 ibv_devices:ibverbs-utils; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${tool%:*}" >/dev/null ||
        skip "no ${tool%:*} (Debian package ${tool#*:})"
done
if [ -z "${KERNEL_ROOT-}" ]; then
    KERNEL_ROOT=$("$rxe_vm/get-kernel.sh") || skip "no kernel for the VM, see above"
fi
export KERNEL_ROOT
echo "kernel: ${KERNEL_ROOT##*kernel-}"
# The guest's devices are the kernel's own; nothing may stand in for them.
unset LD_PRELOAD
export PATH=$PATH:/usr/sbin:/sbin

# run_in_vm SECONDS RAILS SCRIPT [ARG...]
run_in_vm()
{
    local limit=$1 rails=$2 script=$top_srcdir/tests/vm/$3
    shift 3
    "$rxe_vm/rxe-vm" run -t "$limit" --rails "$rails" --on bridge -- bash "$script" "$@"
}

needs_machines()
{
    : "${top_builddir:?run through make check-vm}" "${GASNETRUN:?}"
    local tool
    for tool in ssh:openssh-client sshd:openssh-server "${CC:-cc}":gcc; do
        command -v "${tool%:*}" >/dev/null || skip "no ${tool%:*} (Debian package ${tool#*:})"
    done
    [ "${TRUNKLINE_TEST_SANITIZER:-no}" = no ] || skip "a sanitized build is too slow for an emulated machine"
}

# run_on_machines SECONDS MACHINES RAILS SCRIPT: the script runs on the first. One CPU each: two machines are two threads then, on
# the two CPUs that there are.
run_on_machines()
{
    "$rxe_vm/rxe-machines" run -t "$1" -N "$2" -n 1 --rails "$3" -- bash "$top_srcdir/tests/vm/$4"
}
