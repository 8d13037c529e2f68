#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The debug twins beside the release libraries: fragment, package and CMake target each suffice to build with one; it checks
# arguments that the release library trusts; objects of one do not link with the other; optimised clients get a warning. A release
# program that dies inside the library is told how to build with the twin in one line; one that dies
# anywhere else gets no such line, and ends as before.
. "${top_srcdir:?run through make check}/tests/install/common.sh"
need_root
if [ "$twin" = no ]; then
    echo "skipped: this tree is configured without debug twins"
    exit 77
fi
make_scratch
recommended='the fault is inside the library; .* gasnet-ibv-seq-debug .*ibv-seq-debug.mak'

cat >"$scratch/client.c" <<'SOURCE'
#include <gasnetex.h>
#if GASNET_DEBUG != WANTED
#    error "the wrong declarations"
#endif
int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    const char *how = argc > 1 ? argv[1] : "";
    if (gex_Client_Init(&client, &ep, &tm, "twin test", &argc, &argv, 0) != GASNET_OK)
        return 1;
    if (!strcmp(how, "inside"))
        printf("%p\n", gex_Client_QueryCData((gex_Client_t)(uintptr_t)8));
    if (!strcmp(how, "own"))
        *(volatile int *)(uintptr_t)8 = 1;
    if (!strcmp(how, "rank"))
        printf("%u\n", (unsigned)gex_TM_TranslateRankToJobrank(tm, 77));
    gasnet_exit(0);
}
SOURCE

# build NAME PACKAGE WANTED LIBRARY
# shellcheck disable=SC2046 # lists of options
build()
{
    gcc -DWANTED="$3" $(pc --cflags "$2") "$scratch/client.c" $(pc --libs "$2" | sed "s,-l$2 ,$4 ,") -o "$scratch/$1" || fail "$1 does not build"
}

# ends STATUS PROGRAM HOW [variable]
ends()
{
    want=$1 program=$2 how=$3
    shift 3
    timeout -k 5 60 env LD_LIBRARY_PATH= "$@" "$bindir/gasnetrun_ibv" -n 1 "$scratch/$program" "$how" >"$scratch/out" 2>&1
    got=$?
    [ $got -eq "$want" ] || { head -3 "$scratch/out"; fail "$program $how $*: status $got, not $want"; }
}

says() { grep -c "$recommended" "$scratch/out"; }

# shellcheck disable=SC3045 # dash and bash have it
ulimit -c 0
programs=
if [ "$shared" = yes ]; then
    build shared gasnet-ibv-seq 0 -lgasnet-ibv-seq
    build twin gasnet-ibv-seq-debug 1 -lgasnet-ibv-seq-debug
    programs=shared
fi
if [ "$static" = yes ]; then
    build static gasnet-ibv-seq 0 "$libdir/libgasnet-ibv-seq.a"
    [ "$shared" = yes ] || build twin gasnet-ibv-seq-debug 1 "$libdir/libgasnet-ibv-seq-debug.a"
    programs="$programs static"
fi
for program in $programs; do
    ends 139 "$program" inside
    [ "$(says)" -eq 1 ] || { cat "$scratch/out"; fail "$program: a fault inside the library recommends the twin $(says) times"; }
    [ "$(grep -c 'died of SIGSEGV' "$scratch/out")" -eq 1 ] || fail "$program: no line about the death"
    ends 139 "$program" own
    [ "$(says)" -eq 0 ] || fail "$program: a fault of the client's own recommends the twin"
done
program=${programs% static}
ends 139 "$program" inside GASNET_NO_CATCH_SIGNAL=SEGV
[ "$(says)" -eq 0 ] || fail "GASNET_NO_CATCH_SIGNAL=SEGV: the twin is recommended all the same"
ends 139 twin inside
[ "$(says)" -eq 0 ] || fail "a program of the twin is told to take the twin"
# Arguments that the release library does not check
ends 134 twin rank
grep -q 'rank 77' "$scratch/out" || { cat "$scratch/out"; fail "the twin does not say that there is no rank 77"; }

# crossed SYMBOL OF LIBRARY: an object built for package OF does not link with LIBRARY
# shellcheck disable=SC2046 # lists of options
crossed()
{
    printf '#include <gasnetex.h>\nint main(void)\n{\n    return gasnet_AMPoll();\n}\n' >"$scratch/poll.c"
    gcc $(pc --cflags "$2") "$scratch/poll.c" $(pc --libs "$3") -o "$scratch/crossed" 2>"$scratch/out" && fail "an object of $2 links with $3"
    grep -q "undefined.*$1" "$scratch/out" || fail "the linker does not name $1"
}
crossed trunkline_needs_gasnet_ibv_par_ndebug_fast_v1 gasnet-ibv-par gasnet-ibv-par-debug
crossed trunkline_needs_gasnet_ibv_par_debug_fast_v1 gasnet-ibv-par-debug gasnet-ibv-par

# shellcheck disable=SC2046 # lists of options
gcc -O2 -fsyntax-only $(pc --cflags gasnet-ibv-par-debug) "$scratch/poll.c" 2>&1 | grep -q 'without optimisation' ||
    fail "the twin takes an optimised client"

# Each fragment by itself, with the flags that it recommends
cat >"$scratch/twin.make" <<'MAKE'
include $(FRAGMENT)
poll: poll.c
	$(GASNET_CC) $(GASNET_CPPFLAGS) $(GASNET_CFLAGS) $(GASNET_OPT_CFLAGS) poll.c $(GASNET_LDFLAGS) $(GASNET_LIBS) -o $@
MAKE
for mode in $modes; do
    plain_make -B -C "$scratch" -f twin.make "FRAGMENT=$incdir/ibv-conduit/ibv-$mode-debug.mak" "GASNET_PREFIX=$prefix" poll >"$scratch/out" 2>&1 ||
        { tail -3 "$scratch/out"; fail "ibv-$mode-debug.mak"; }
    [ "$shared" = no ] || readelf -d "$scratch/poll" | grep -q "NEEDED.*libgasnet-ibv-$mode-debug" || fail "ibv-$mode-debug.mak links something else"
    # shellcheck disable=SC2046
    gcc $(pc --cflags "gasnet-ibv-$mode-debug") "$scratch/poll.c" $(pc --libs "gasnet-ibv-$mode-debug") -o "$scratch/poll" || fail "gasnet-ibv-$mode-debug.pc"
done
finish
