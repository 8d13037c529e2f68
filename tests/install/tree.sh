#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# `make install DESTDIR=...` puts every promised file in its place, and none of them knows where it was built.
. "${top_srcdir:?run through make check}/tests/install/common.sh"

rm -rf "$root"
plain_make -C "$top_builddir" install DESTDIR="$root" >"$top_builddir/tests/install/install.log" 2>&1 || {
    tail -20 "$top_builddir/tests/install/install.log"
    echo "make install failed"
    exit 1
}
rm -f "$top_builddir/tests/install/install.log"

present()
{
    [ -e "$1" ] || fail "missing: $1"
}

for file in gasnetex.h gasnet.h gasnet_fwd.h gasnet_mk.h gasnet_config.h gasnet_portable_platform.h gasnet_tools.h \
    gasnet_tools-seq.mak gasnet_tools-par.mak ibv-conduit/gasnet_core_fwd.h \
    ibv-conduit/ibv-seq.mak ibv-conduit/ibv-par.mak ibv-conduit/ibv-parsync.mak; do
    present "$incdir/$file"
done
for mode in $modes; do
    present "$libdir/libgasnet-ibv-$mode.a"
    present "$libdir/libgasnet-ibv-$mode.so"
    present "$libdir/pkgconfig/gasnet-ibv-$mode.pc"
done
for mode in seq par; do
    present "$libdir/libgasnet_tools-$mode.a"
    present "$libdir/libgasnet_tools-$mode.so"
    present "$libdir/pkgconfig/gasnet_tools-$mode.pc"
done
present "$libdir/trunkline/libsofthca.so"
case $(uname -m) in
x86_64 | aarch64) present "$libdir/trunkline/softhca/libibverbs.so.1" ;;
esac
present "$bindir/gasnetrun_ibv"
[ -x "$bindir/gasnetrun_ibv" ] || fail "$bindir/gasnetrun_ibv is not executable"

# What is not part of the interface yet must not be there: clients test for these files.
for file in gasnet_vis.h gasnet_ratomic.h gasnet_coll.h; do
    [ ! -e "$incdir/$file" ] || fail "$file is installed but not implemented"
done

text_files=$(find "$incdir" "$libdir/pkgconfig" -type f)
for place in "$top_builddir" "$root"; do
    # shellcheck disable=SC2086 # a list of files
    grep -lF "$place" $text_files && fail "these files name $place"
done
finish
