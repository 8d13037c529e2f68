#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The installed examples build with their own Makefile and CMakeLists.txt as a newcomer would build them, without a warning, and
# run under the installed launcher.
. "${top_srcdir:?run through make check}/tests/install/common.sh"
need_root
if [ "$TRUNKLINE_TEST_SANITIZER" != no ]; then
    echo "skipped: clients of a library with sanitizers are built with the same ones"
    exit 77
fi
make_scratch
docs=$root${TRUNKLINE_TEST_DOCDIR:?}/examples
cp "$docs/ring.c" "$docs/count1.c" "$docs/Makefile" "$docs/CMakeLists.txt" "$scratch/" || fail "$docs is not complete"

# shows WORDS: the output has this many lines with them
shows()
{
    [ "$(grep -c "$2" "$scratch/out")" -eq "$1" ] || { head -8 "$scratch/out"; fail "not $1 lines with '$2'"; }
}

good()
{
    shows 2 'a greeting from [01]: hello'
    shows 2 'process [01] of 2: 1024 words, 0 wrong'
    shows 2 'process [01] of 2: the sum is 300'
}

plain_make -C "$scratch" "PREFIX=$prefix" MODE=seq all >"$scratch/out" 2>&1 || { tail -5 "$scratch/out"; fail "make"; }
grep -i 'warning' "$scratch/out" && fail "the examples do not build in silence"
env LD_LIBRARY_PATH= timeout -k 5 60 make -C "$scratch" "PREFIX=$prefix" MODE=seq run >"$scratch/out" 2>&1 || { tail -5 "$scratch/out"; fail "make run"; }
good
if [ "$twin" = yes ]; then
    plain_make -B -C "$scratch" "PREFIX=$prefix" DEBUG=-debug OPT=-g all >"$scratch/out" 2>&1 || { tail -5 "$scratch/out"; fail "make DEBUG=-debug"; }
    env LD_LIBRARY_PATH= timeout -k 5 60 make -C "$scratch" "PREFIX=$prefix" DEBUG=-debug OPT=-g run >"$scratch/out" 2>&1 || { tail -5 "$scratch/out"; fail "make run with the twin"; }
    good
fi
plain_make -C "$scratch" PREFIX= 2>&1 | grep -q 'pkg-config does not know .*make PREFIX=' || fail "without a library the Makefile does not say what to do"
env PKG_CONFIG_LIBDIR=/nonexistent make -C "$scratch" clean >"$scratch/out" 2>&1 || { tail -5 "$scratch/out"; fail "make clean wants a library"; }
[ ! -e "$scratch/ring" ] || fail "make clean leaves the programs"

command -v cmake >/dev/null || finish
build_type=Release
[ "$TRUNKLINE_TEST_DEBUG" = no ] || build_type=Debug
{ cmake -S "$scratch" -B "$scratch/build" "-DCMAKE_PREFIX_PATH=$prefix" "-DCMAKE_BUILD_TYPE=$build_type" -DCMAKE_C_COMPILER=gcc &&
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL cmake --build "$scratch/build"; } >"$scratch/out" 2>&1 || { tail -5 "$scratch/out"; fail "cmake"; }
: >"$scratch/out"
for program in ring count1; do
    env LD_LIBRARY_PATH= timeout -k 5 60 "$bindir/gasnetrun_ibv" -n 2 "$scratch/build/$program" >>"$scratch/out" 2>&1 || fail "$program, built by cmake"
done
good
finish
