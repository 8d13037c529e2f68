#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# get-kernel.sh - put a Debian kernel with its modules into a folder of the cache and print that
# folder's name, which is what rxe-vm takes as KERNEL_ROOT. The package is downloaded and unpacked,
# not installed (installing it builds an initramfs for minutes). A second call finds it there.
#
#   KERNEL_PACKAGE=NAME      the package; default: the one that linux-image-amd64 depends on
#   KERNEL_SUITE=backports   the newer kernel of Debian's backports. The machine's apt need not know that suite: its lists are in
#                            the cache, and no configuration of the machine is changed. Default: what the machine's apt offers
#
# Exit status 77, and a reason on standard error, when the kernel can't be had.
set -u

skip()
{
    echo "no kernel for the VM: $*" >&2
    exit 77
}

cache=${XDG_CACHE_HOME:-$HOME/.cache}/rxe-vm
. "$(dirname "$0")/packages.sh"

# The concrete package behind the meta package; its name carries the kernel's version.
concrete_package()
{
    apt-cache depends linux-image-amd64 2>/dev/null |
        sed -n 's/^ *Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' | head -n 1
}

# The newest that an earlier call left. Those of a suite do not begin with "kernel-": whoever asks for no suite does not get them.
unpacked()
{
    ls -vd "$cache/${suite:+$suite-}kernel-"${KERNEL_PACKAGE:-*} 2>/dev/null | tail -n 1
}

fetch()
{
    (cd "$1" && apt-get -q download "$2") >"$1/log" 2>&1 ||
        skip "apt-get download $2: $(grep '^E:' "$1/log" | head -n 1)"
    dpkg-deb -x "$1"/linux-image-*.deb "$1/kernel" || skip "$2 can't be unpacked into $1"
    [ -f "$1/kernel/boot/vmlinuz-${2#linux-image-}" ] || skip "$2 has no boot/vmlinuz-${2#linux-image-}"
    [ -z "$suite" ] || echo "$suite" >"$1/kernel/suite" # for get-siw.sh
}

[ "$(uname -m)" = x86_64 ] || skip "this is a $(uname -m) machine, the VM is made for x86_64"
suite=$(suite_name "${KERNEL_SUITE-}") || exit
dir=$(unpacked)
if [ -n "$dir" ]; then
    echo "$dir"
    exit 0
fi
for tool in apt-get apt-cache dpkg-deb; do
    command -v $tool >/dev/null || skip "no $tool here (set KERNEL_ROOT to an unpacked kernel package)"
done
[ -z "$suite" ] || use_suite "$suite"
package=${KERNEL_PACKAGE:-$(concrete_package)}
[ -n "$package" ] || skip "apt knows no linux-image-amd64 (is apt-get update needed?)"
mkdir -p "$cache" && tmp=$(mktemp -d "$cache/fetch.XXXXXX") || skip "cannot write $cache"
trap 'rm -rf "$tmp"' EXIT
fetch "$tmp" "$package"
dir=$cache/${suite:+$suite-}kernel-$package
mv -T "$tmp/kernel" "$dir" 2>/dev/null || [ -d "$dir" ] || skip "cannot write $dir"
echo "$dir"
