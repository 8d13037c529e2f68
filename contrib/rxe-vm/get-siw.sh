#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# get-siw.sh - build the kernel's software iWARP (siw), which Debian's kernels come without, for the kernel in KERNEL_ROOT (an
# unpacked package, as get-kernel.sh makes it), and print the module's file name, which is what rxe-vm takes as SIW_MODULE. The
# packages with headers and source (150 MB) are downloaded and unpacked, not installed; of the source only this driver. It stays
# beside the kernels in the cache: a second call finds it there. About half a minute the first time. They come from the suite that
# the kernel came from.
#
# Exit status 77, and a reason on standard error, when it can't be had.
set -u

skip()
{
    echo "no siw for the VM: $*" >&2
    exit 77
}

cache=${XDG_CACHE_HOME:-$HOME/.cache}/rxe-vm
. "$(dirname "$0")/packages.sh"

fetch()
{
    (cd "$tmp" && apt-get -q download "$@") >"$tmp/log" 2>&1 ||
        skip "apt-get download $*: $(grep '^E:' "$tmp/log" | head -n 1)"
}

# Its Makefile names the common headers by where the package would have put them.
unpack()
{
    local package
    for package in "$tmp"/linux-headers-*.deb "$tmp"/linux-kbuild-*.deb; do
        dpkg-deb -x "$package" "$tmp" || skip "$package can't be unpacked into $tmp"
    done
    sed -i "s,/usr/src,$tmp/usr/src," "$headers/Makefile"
    dpkg-deb --fsys-tarfile "$tmp"/linux-source-*.deb | tar -xO "./usr/src/linux-source-$series.tar.xz" |
        tar -xJ -C "$tmp" --strip-components 4 "linux-source-$series/drivers/infiniband/sw/siw" ||
        skip "linux-source-$series has no driver siw"
}

# Without BTF, which would need pahole.
build()
{
    make -j"$(nproc)" -C "$headers" M="$tmp/siw" CONFIG_RDMA_SIW=m CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$tmp/log" 2>&1 && [ -f "$tmp/siw/siw.ko" ] ||
        skip "it does not compile: $(grep -m 1 -iE 'error|not found' "$tmp/log" || tail -n 1 "$tmp/log")"
}

image=$(find "${KERNEL_ROOT:?see get-kernel.sh}/boot" -name 'vmlinuz-*' | sort -V | tail -n 1)
[ -n "$image" ] || skip "no kernel in $KERNEL_ROOT/boot"
version=${image##*/vmlinuz-}
module=$cache/siw-$version/siw.ko
if [ -f "$module" ]; then
    echo "$module"
    exit 0
fi
for tool in apt-get dpkg-deb make xz:xz-utils gcc-12; do
    command -v ${tool%:*} >/dev/null || skip "no ${tool%:*} here (Debian package ${tool#*:})"
done
series=${version%%-*} series=${series%.*}
mkdir -p "$cache" && tmp=$(mktemp -d "$cache/fetch.XXXXXX") || skip "cannot write $cache"
trap 'rm -rf "$tmp"' EXIT
[ ! -f "$KERNEL_ROOT/suite" ] || use_suite "$(cat "$KERNEL_ROOT/suite")"
headers=$tmp/usr/src/linux-headers-$version
fetch "linux-headers-$version" "linux-headers-${version%-*}-common" "linux-kbuild-$series" "linux-source-$series"
unpack
build
mkdir -p "${module%/*}" && mv "$tmp/siw/siw.ko" "$module.$$" && mv "$module.$$" "$module" || skip "cannot write ${module%/*}"
echo "$module"
