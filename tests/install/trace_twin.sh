#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The trace twins beside the release libraries: what fragment, package and CMake target each say suffices to build with one, and
# GASNET_TRACEFILE then has what the program did. A release program that is asked for a trace names
# the twin in one line, or, if no twin is installed, how to install it. Its object only has to be
# linked again; the trace then lacks the program's inlined puts and gets between neighbours.
. "${top_srcdir:?run through make check}/tests/install/common.sh"
need_root
make_scratch

cat >"$scratch/client.c" <<'SOURCE'
#include <gasnetex.h>
#if defined(GASNET_TRACE) != WANTED
#    error "the wrong declarations"
#endif
int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Segment_t segment;
    void *address;
    long value = 1;
    if (gex_Client_Init(&client, &ep, &tm, "trace twin", &argc, &argv, 0) != GASNET_OK ||
        gex_Segment_Attach(&segment, tm, 65536) != GASNET_OK)
        return 1;
    gex_Rank_t other = (gex_TM_QueryRank(tm) + 1) % gex_TM_QuerySize(tm);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, other, &address, NULL, NULL, 0));
    for (int i = 0; i < 5; i++)
        gex_RMA_PutBlocking(tm, other, address, &value, sizeof(value), 0);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    gasnet_exit(0);
}
SOURCE

# shellcheck disable=SC2046 # lists of options
object() { gcc -O2 -DWANTED="$3" $(pc --cflags "$2") -c "$scratch/client.c" -o "$scratch/$1.o" || fail "$1 does not compile"; }

# linked NAME OBJECT PACKAGE
# shellcheck disable=SC2046
linked() { gcc "$scratch/$2.o" $(pc --libs "$3") -o "$scratch/$1" || fail "$1 does not link"; }

# traced PROGRAM LEAST MOST: how many of its 5 puts the trace of rank 0 has; a barrier it has in any case
traced()
{
    rm -f "$scratch"/trace-*
    timeout -k 5 60 env LD_LIBRARY_PATH= "GASNET_TRACEFILE=$scratch/trace-%" "$bindir/gasnetrun_ibv" -n 2 "$scratch/$1" >"$scratch/out" 2>&1 ||
        { head -3 "$scratch/out"; fail "$1: status $?"; }
    [ -s "$scratch/trace-0" ] && [ -s "$scratch/trace-1" ] || { fail "$1: no traces"; return; }
    "$bindir/gasnet_trace" "$scratch/trace-0" "$scratch/trace-1" >"$scratch/summary" 2>&1 || fail "$1: gasnet_trace"
    grep -q "^ *barrier_nb " "$scratch/summary" || { cat "$scratch/summary"; fail "$1: no barrier"; }
    puts=$(grep -c ' P put ns=' "$scratch/trace-0")
    [ "$puts" -ge "$2" ] && [ "$puts" -le "$3" ] || fail "$1: $puts puts, not $2 to $3"
    grep -q 'GASNET_TRACEFILE' "$scratch/out" && fail "$1: $(head -1 "$scratch/out")"
}

# told PATTERN: what the release program that is asked for a trace says, in one line
told()
{
    timeout -k 5 60 env LD_LIBRARY_PATH= "GASNET_TRACEFILE=$scratch/none-%" "$bindir/gasnetrun_ibv" -n 2 "$scratch/plain" >"$scratch/out" 2>&1 ||
        fail "a release program that is asked for a trace: status $?"
    [ "$(grep 'records no traces' "$scratch/out" | grep -c -e "$1")" -eq 1 ] || { cat "$scratch/out"; fail "a release program that is asked for a trace does not say: $1"; }
    [ ! -e "$scratch/none-0" ] || fail "a release program writes a trace"
}

object plain gasnet-ibv-seq 0
linked plain plain gasnet-ibv-seq
if [ "$trace_twin" = no ]; then
    told 'no trace twin was configured beside it; make install-trace-twin .* installs gasnet-ibv-seq-trace (pkg-config)'
    finish
fi
told 'build with gasnet-ibv-seq-trace (pkg-config) or ibv-seq-trace.mak, which are installed'
object twin gasnet-ibv-seq-trace 1
linked twin twin gasnet-ibv-seq-trace
linked mixed plain gasnet-ibv-seq-trace
traced twin 5 5
traced mixed 5 5
# The first put to a neighbour may be a call in any program.
GASNET_SUPERNODE_MAXSIZE=0
export GASNET_SUPERNODE_MAXSIZE
traced twin 5 5
traced mixed 0 1

# Each fragment and each package by itself
printf '#include <gasnetex.h>\nint main(void)\n{\n    return gasnet_AMPoll();\n}\n' >"$scratch/poll.c"
cat >"$scratch/twin.make" <<'MAKE'
include $(FRAGMENT)
poll: poll.c
	$(GASNET_CC) $(GASNET_CPPFLAGS) $(GASNET_CFLAGS) poll.c $(GASNET_LDFLAGS) $(GASNET_LIBS) -o $@
MAKE
for mode in $modes; do
    plain_make -B -C "$scratch" -f twin.make "FRAGMENT=$incdir/ibv-conduit/ibv-$mode-trace.mak" "GASNET_PREFIX=$prefix" poll >"$scratch/out" 2>&1 ||
        { tail -3 "$scratch/out"; fail "ibv-$mode-trace.mak"; }
    [ "$shared" = no ] || readelf -d "$scratch/poll" | grep -q "NEEDED.*libgasnet-ibv-$mode-trace" || fail "ibv-$mode-trace.mak links something else"
    # shellcheck disable=SC2046
    gcc $(pc --cflags "gasnet-ibv-$mode-trace") "$scratch/poll.c" $(pc --libs "gasnet-ibv-$mode-trace") -o "$scratch/poll" || fail "gasnet-ibv-$mode-trace.pc"
    grep -q 'GASNET_OPT_CFLAGS *= *-O[2s3]' "$incdir/ibv-conduit/ibv-$mode.mak" && ! grep -q 'GASNET_OPT_CFLAGS *= *-O[2s3]' "$incdir/ibv-conduit/ibv-$mode-trace.mak" &&
        fail "ibv-$mode-trace.mak does not optimise as ibv-$mode.mak does"
done
finish
