#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The output of `pkg-config --static` links a program with the conduit's archive; a fully static program links too, or the linker
# misses only libraries that PMIx and hwloc need and do not name (doc/limitations.md).
. "${top_srcdir:?run through make check}/tests/install/common.sh"
need_root
if [ "$static" = no ] || [ "$TRUNKLINE_TEST_SANITIZER" != no ]; then
    echo "skipped: without archives, or with sanitizers, which have none"
    exit 77
fi
make_scratch

# shellcheck disable=SC2046 # lists of options
link() { gcc "$@" $(pc --cflags gasnet-ibv-seq) "$here/client.c" $(pc --static --libs gasnet-ibv-seq | sed "$edit") -o "$scratch/client" >"$scratch/out" 2>&1; }

edit="s,-lgasnet-ibv-seq ,$libdir/libgasnet-ibv-seq.a ,"
link || { tail -3 "$scratch/out"; fail "the archive does not link"; }
[ "$(timeout -k 5 60 env LD_LIBRARY_PATH= "$bindir/gasnetrun_ibv" -n 1 "$scratch/client" 2>/dev/null)" = "rank 0 of 1: ok" ] || fail "a client of the archive"

edit=
if link -static; then
    echo "a program that is static as a whole links here"
    finish
fi
grep -q "undefined reference" "$scratch/out" || { tail -3 "$scratch/out"; fail "the linker misses something else"; }
# The linker names the object first, then its undefined symbols.
awk '/\.o\)/ { from = $0 } /undefined reference/ && from !~ /lib(pmix|hwloc)\.a\(/ { print from ": " $0 }' "$scratch/out" >"$scratch/ours"
[ -s "$scratch/ours" ] && { head -3 "$scratch/ours"; fail "not PMIx's alone"; }
finish
