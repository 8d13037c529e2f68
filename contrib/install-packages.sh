#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs the Debian packages that Trunkline needs, by name; installed ones are left alone.
# usage: contrib/install-packages.sh [build] [test] [browser] [sanitizer] [bench] [vm]      (default: build)
#   build      compile and run
#   test       make check: unit tests, a second compiler, CMake, headers of arm64, Debian's own RDMA programs, foreign launchers (Open MPI, MPICH, Slurm), sshd,
#              memcached and Redis, which the workload kv drives, numba for softgpu
#   browser    make check: Chromium, which looks at the pages of gasnet_report (80 MB). Optional, as vm
#   sanitizer  libraries for --enable-sanitizer
#   bench      make bench-peers, bench-nbrhd and bench-kv: what they compare with, in their tables
#   vm         make check-vm: virtual machines with the kernel's RDMA stack. Optional: failing to get these is no error
# Uses sudo when not root. Status 0: all there; 1: something is missing, and which.
set -u

build="gcc g++ binutils make autoconf automake pkg-config libibverbs-dev librdmacm-dev libpmix-dev libhwloc-dev"
test="libcmocka-dev cmake clang libclang-rt-dev libc6-dev-arm64-cross binutils ibverbs-utils rdmacm-utils perftest python3-pyverbs valgrind man-db mandoc openmpi-bin mpich slurmctld slurmd slurm-client slurm-wlm-basic-plugins openssh-server openssh-client procps util-linux iproute2 memcached redis-server python3"
browser="chromium fonts-dejavu-core"
sanitizer="libasan8 libubsan1 libtsan2"
bench="ucx-utils libfabric-bin openmpi-bin libopenmpi-dev mpich libmpich-dev memcached redis-server python3"
vm="qemu-system-x86 busybox-static kmod cpio xz-utils iproute2 rdma-core ibverbs-utils perftest openssh-client openssh-server openmpi-bin procps python3-pyverbs"

die()
{
    echo "install-packages.sh: $*" >&2
    exit 1
}

missing()
{
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || printf '%s ' "$package"
    done
}

as_root()
{
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# A fresh machine has no lists, so an install that fails is tried again after an update.
install()
{
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" && return
    as_root apt-get update && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

main()
{
    wanted=
    optional=
    for group in "${@:-build}"; do
        case $group in
        build) wanted="$wanted $build" ;;
        test) wanted="$wanted $test" ;;
        browser) optional="$optional $browser" ;;
        sanitizer) wanted="$wanted $sanitizer" ;;
        bench) wanted="$wanted $bench" ;;
        vm) optional="$optional $vm" ;;
        *) die "unknown group '$group'; there are build, test, browser, sanitizer, bench and vm" ;;
        esac
    done
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        die "this is not a Debian system; install what provides these yourself:$wanted$optional"
    fi
    # shellcheck disable=SC2086 # lists
    need=$(missing $wanted)
    # shellcheck disable=SC2086
    like=$(missing $optional)
    [ -z "$need$like" ] && return
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        [ -z "$need" ] && return
        die "not root and no sudo; as root: apt-get install $need"
    fi
    # shellcheck disable=SC2086
    [ -z "$need" ] || install $need || die "could not install: $need"
    # shellcheck disable=SC2086
    [ -z "$like" ] || install $like || echo "install-packages.sh: not there, tests that want them are skipped: $like" >&2
}

main "$@"
