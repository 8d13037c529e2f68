#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A client outside the tree builds against the installed copy with pkg-config and with the make fragments, in C and C++,
# with the shared and with the static library, and runs as a job of two under the installed launcher; so does a client that
# was written for the release before.
. "${top_srcdir:?run through make check}/tests/install/common.sh"
need_root
if [ "$TRUNKLINE_TEST_SANITIZER" != no ]; then
    echo "clients of a library with sanitizers are built with the same ones; the job tests of such a tree show that they run"
    exit 77
fi
make_scratch
cp "$here/client.c" "$here/client018.c" "$here/forms.h" "$here/client.make" "$scratch/"
limit=60 # seconds for one job; it takes well under one

ran=0
run()
{
    if ! timeout -k 5 $limit env LD_LIBRARY_PATH= "$bindir/gasnetrun_ibv" -n 2 "$1" >"$scratch/out" 2>"$scratch/err"; then
        head -5 "$scratch/out" "$scratch/err"
        fail "$1 did not run"
    elif [ "$(sort "$scratch/out")" != "rank 0 of 2: ok
rank 1 of 2: ok" ]; then
        cat "$scratch/out"
        fail "$1 printed something else"
    else
        ran=$((ran + 1))
    fi
}

# shellcheck disable=SC2046 # lists of options
of_the_release_before()
{
    name=gasnet-ibv-par
    for std in c99 c17 c2x; do
        $(pc --variable=GASNET_CC $name) -std=$std -Wall -Wextra -Werror $(pc --cflags $name) "$scratch/client018.c" $(pc --libs $name) -o "$scratch/018-$std" || return 1
    done
    $(pc --variable=GASNET_CXX $name) -x c++ -Wall -Wextra -Werror $(pc --cflags $name) "$scratch/client018.c" -x none $(pc --libs $name) -o "$scratch/018-cxx" || return 1
    run "$scratch/018-c99"
    run "$scratch/018-cxx"
}

uses_shared()
{
    readelf -d "$1" | grep -q "NEEDED.*libgasnet-ibv-$2"
}

# shellcheck disable=SC2046,SC2086 # lists of options
with_pkg_config()
{
    name=gasnet-ibv-$1
    [ "$(pc --modversion "$name")" = 2025.8.0 ] || fail "$name has the wrong version"
    cc=$(pc --variable=GASNET_CC "$name")
    cxx=$(pc --variable=GASNET_CXX "$name")
    $cc $(pc --cflags "$name") "$scratch/client.c" $(pc --libs "$name") -o "$scratch/pc-$1" || return 1
    $cxx -x c++ $(pc --cflags "$name") "$scratch/client.c" -x none $(pc --libs "$name") -o "$scratch/pc-$1-cxx" || return 1
    if [ "$static" = yes ]; then
        libs=$(pc --libs "$name" | sed "s,-l$name ,$libdir/lib$name.a ,")
        $cc $(pc --cflags "$name") "$scratch/client.c" $libs -o "$scratch/pc-$1-static" || return 1
        uses_shared "$scratch/pc-$1-static" "$1" && fail "pc-$1-static is linked with the shared library"
    fi
    [ "$shared" = no ] || uses_shared "$scratch/pc-$1" "$1" || fail "pc-$1 is not linked with the shared library"
    for flag in $(pc --cflags --libs "$name"); do
        case $flag in
        -O* | -W[a-km-z]* | --param*) fail "$name exports $flag" ;;
        esac
    done
}

# shellcheck disable=SC2086 # a list
with_fragment()
{
    programs="mak-$1 mak-$1-cxx"
    [ "$static" = no ] || programs="$programs mak-$1-static"
    plain_make -C "$scratch" -f client.make "FRAGMENT=$incdir/ibv-conduit/ibv-$1.mak" "GASNET_PREFIX=$prefix" \
        SOURCE=client.c "OUT=mak-$1" "MODE=$1" "STATIC_LIBRARY=$libdir/libgasnet-ibv-$1.a" $programs >"$scratch/make.log" 2>&1 || {
        tail -5 "$scratch/make.log"
        return 1
    }
}

# Each -l name must be found in the -L directories or the compiler's own: find modules look there.
libraries_findable()
{
    plain_make -C "$scratch" -f client.make "FRAGMENT=$incdir/ibv-conduit/ibv-$1.mak" "GASNET_PREFIX=$prefix" OUT=x show >"$scratch/flags"
    libs=$(sed -n 's/^LIBS=//p' "$scratch/flags")
    dirs=$(for word in $libs; do case $word in -L*) echo "${word#-L}" ;; esac; done)
    for word in $libs; do
        case $word in -l*) ;; *) continue ;; esac
        found=no
        for dir in $dirs; do
            { [ -e "$dir/lib${word#-l}.so" ] || [ -e "$dir/lib${word#-l}.a" ]; } && found=yes
        done
        case $(gcc "-print-file-name=lib${word#-l}.so")$(gcc "-print-file-name=lib${word#-l}.a") in */*) found=yes ;; esac
        [ $found = yes ] || fail "ibv-$1.mak: $word is not in any -L directory"
    done
    grep -q "^CPPFLAGS=.*-DGASNET_$(upper "$1")" "$scratch/flags" || fail "ibv-$1.mak does not define the mode"
}

for mode in $modes; do
    with_pkg_config "$mode" || fail "pkg-config gasnet-ibv-$mode"
    with_fragment "$mode" || fail "ibv-$mode.mak"
    libraries_findable "$mode"
    for program in "pc-$mode" "pc-$mode-cxx" "pc-$mode-static" "mak-$mode" "mak-$mode-static" "mak-$mode-cxx"; do
        [ -x "$scratch/$program" ] && run "$scratch/$program"
    done
done
of_the_release_before || fail "a client of the release before does not compile"
echo "$ran clients ran"
expected=20
[ "$static" = yes ] || expected=14
[ $ran -eq $expected ] || fail "$expected were expected"
finish
