#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# `make install DESTDIR=...` puts every promised file in its place, and no file contains the path of
# the build.
. "${top_srcdir:?run through make check}/tests/install/common.sh"

rm -rf "$root"
mkdir -p "$top_builddir/tests/install" # `make try` comes here first in a new tree
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

absent()
{
    for file in "$@"; do
        [ ! -e "$file" ] || fail "should not be there: $file"
    done
}

for file in gasnetex.h gasnet.h gasnet_fwd.h gasnet_mk.h gasnet_config.h gasnet_portable_platform.h gasnet_tools.h \
    gasnet_coll.h gasnet_ratomic.h gasnet_vis.h gasnet_tools-seq.mak gasnet_tools-par.mak ibv-conduit/gasnet_core.h \
    ibv-conduit/gasnet_core_fwd.h ibv-conduit/ibv-seq.mak ibv-conduit/ibv-par.mak ibv-conduit/ibv-parsync.mak; do
    present "$incdir/$file"
done
# A debug twin of each mode, unless the tree was configured to go without.
installed="gasnet-ibv-seq gasnet-ibv-par gasnet-ibv-parsync gasnet_tools-seq gasnet_tools-par"
for mode in $modes; do
    if [ "$twin" = yes ]; then
        installed="$installed gasnet-ibv-$mode-debug"
        present "$incdir/ibv-conduit/ibv-$mode-debug.mak"
    else
        absent "$incdir/ibv-conduit/ibv-$mode-debug.mak" "$libdir/pkgconfig/gasnet-ibv-$mode-debug.pc" "$libdir/libgasnet-ibv-$mode-debug.so.1"
    fi
done
# Likewise of trace twins
for mode in $modes; do
    if [ "$trace_twin" = yes ]; then
        installed="$installed gasnet-ibv-$mode-trace"
        present "$incdir/ibv-conduit/ibv-$mode-trace.mak"
    else
        absent "$incdir/ibv-conduit/ibv-$mode-trace.mak" "$libdir/pkgconfig/gasnet-ibv-$mode-trace.pc" "$libdir/libgasnet-ibv-$mode-trace.so.1"
    fi
done
# libraries SHARED STATIC: these kinds are there, and not the other ones
libraries()
{
    for name in $installed; do
        case $1 in yes) present "$libdir/lib$name.so" ;; *) absent "$libdir/lib$name.so" "$libdir/lib$name.so.1" "$libdir/lib$name.la" ;; esac
        case $2 in yes) present "$libdir/lib$name.a" ;; *) absent "$libdir/lib$name.a" "$libdir/lib$name.la" ;; esac
    done
}

libraries "$shared" "$static"
for name in $installed; do
    present "$libdir/pkgconfig/$name.pc"
done
present "$libdir/cmake/Trunkline/TrunklineConfig.cmake"
present "$libdir/cmake/Trunkline/TrunklineConfigVersion.cmake"
present "$libdir/trunkline/libsofthca.so"
for name in libcuda.so.1 libamdhip64.so.5 libhsa-runtime64.so.1 libze_loader.so.1; do
    present "$libdir/trunkline/softgpu/$name"
done
case $(uname -m) in
x86_64 | aarch64)
    present "$libdir/trunkline/softhca/libibverbs.so.1"
    present "$libdir/trunkline/softhca/librdmacm.so.1"
    ;;
esac
present "$bindir/gasnetrun_ibv"
present "$bindir/gasnet_trace"
present "$bindir/gasnet_report"
[ -x "$bindir/gasnetrun_ibv" ] || fail "$bindir/gasnetrun_ibv is not executable"

# The effect of --disable-shared and --disable-static; make takes the same words. one_kind SHARED
# STATIC
one_kind()
{
    libdir=$root-one$TRUNKLINE_TEST_LIBDIR
    plain_make -C "$top_builddir" install-libraries "DESTDIR=$root-one" "install_shared=$1" "install_static=$2" \
        >/dev/null 2>&1 || fail "make install with shared libraries: $1, static ones: $2"
    libraries "$1" "$2"
    plain_make -C "$top_builddir" uninstall-libraries "DESTDIR=$root-one" >/dev/null 2>&1
    find "$root-one" -type f | grep . && fail "left after make uninstall, with shared libraries: $1, static ones: $2"
    rm -rf "$root-one"
}

# The installed headers are the ones that tests/interface checks.
find "$incdir" -name '*.h' | while read -r header; do
    name=${header#"$incdir"/}
    cmp -s "$header" "$top_srcdir/conduit/include/$name" || cmp -s "$header" "$top_srcdir/conduit/include/forward/${name##*/}" || cmp -s "$header" "$top_builddir/conduit/include/$name" || echo "$name"
done >"$root/differs"
[ ! -s "$root/differs" ] || fail "not as in the tree: $(tr '\n' ' ' <"$root/differs")"
rm -f "$root/differs"

text_files=$(find "$incdir" "$libdir/pkgconfig" "$libdir/cmake" -type f)
for place in "$top_builddir" "$root"; do
    # shellcheck disable=SC2086 # a list of files
    grep -lF "$place" $text_files && fail "these files name $place"
done
one_kind no yes
one_kind yes no
finish
