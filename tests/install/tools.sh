#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A client of the tools alone builds against the installed copy with pkg-config and with the make fragments, in C and C++,
# with the shared and with the static library, and runs; with a conduit's library it needs no other.
. "${top_srcdir:?run through make check}/tests/install/common.sh"
need_root
if [ "$TRUNKLINE_TEST_SANITIZER" != no ]; then
    echo "clients of a library with sanitizers are built with the same ones"
    exit 77
fi
make_scratch
cp "$here/tools.c" "$here/tools.make" "$scratch/"

ran=0
run()
{
    if [ "$(timeout -k 5 60 env LD_LIBRARY_PATH= "$1" 2>"$scratch/err")" = "tools: ok" ]; then
        ran=$((ran + 1))
    else
        head -5 "$scratch/err"
        fail "$1 did not run"
    fi
}

# shellcheck disable=SC2046,SC2086 # lists of options
with_pkg_config()
{
    name=gasnet_tools-$1
    [ "$(pc --modversion "$name")" = 2025.8.0 ] || fail "$name has the wrong version"
    $(pc --variable=GASNETTOOLS_CC "$name") $(pc --cflags "$name") "$scratch/tools.c" $(pc --libs "$name") -o "$scratch/pc-$1" ||
        return 1
    $(pc --variable=GASNETTOOLS_CXX "$name") -x c++ $(pc --cflags "$name") "$scratch/tools.c" -x none $(pc --libs "$name") \
        -o "$scratch/pc-$1-cxx" || return 1
    [ "$shared" = no ] || readelf -d "$scratch/pc-$1" | grep -q "NEEDED.*lib$name" || fail "pc-$1 is not linked with the shared library"
    [ "$(pc --variable=GASNETTOOLS_TOOLLIB_NAME "$name")" = "$name" ] || fail "$name does not tell the library's name"
}

for mode in seq par; do
    programs="mak-$mode mak-$mode-cxx"
    [ "$static" = no ] || programs="$programs mak-$mode-static"
    with_pkg_config "$mode" || fail "pkg-config gasnet_tools-$mode"
    # shellcheck disable=SC2086 # a list
    plain_make -C "$scratch" -f tools.make "FRAGMENT=$incdir/gasnet_tools-$mode.mak" "GASNET_PREFIX=$prefix" \
        SOURCE=tools.c "OUT=mak-$mode" $programs >"$scratch/make.log" 2>&1 || {
        tail -5 "$scratch/make.log"
        fail "gasnet_tools-$mode.mak"
    }
    for program in "pc-$mode" "pc-$mode-cxx" "mak-$mode" "mak-$mode-static" "mak-$mode-cxx"; do
        [ -x "$scratch/$program" ] && run "$scratch/$program"
    done
done
for mode in $modes; do
    # shellcheck disable=SC2046 # lists of options
    gcc $(pc --cflags "gasnet-ibv-$mode") "$scratch/tools.c" $(pc --libs "gasnet-ibv-$mode") -o "$scratch/conduit-$mode" ||
        fail "the tools of gasnet-ibv-$mode"
    [ -x "$scratch/conduit-$mode" ] && run "$scratch/conduit-$mode"
done
echo "$ran clients of the tools ran"
expected=13
[ "$static" = yes ] || expected=11
[ $ran -eq $expected ] || fail "$expected were expected"
finish
