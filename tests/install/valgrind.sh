#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Under valgrind with the installed suppressions a program of two ranks that communicate over the
# network gets one report, for its own leak, and no report for the library.
. "${top_srcdir:?run through make check}/tests/install/common.sh"
need_root
command -v valgrind >/dev/null || { echo "skipped: there is no valgrind (Debian package valgrind)"; exit 77; }
if [ "$TRUNKLINE_TEST_SANITIZER" != no ]; then
    echo "skipped: valgrind runs no program with a sanitizer"
    exit 77
fi
make_scratch
suppressions=$prefix/share/trunkline/trunkline.supp
[ -e "$suppressions" ] || fail "missing: $suppressions"

cat >"$scratch/client.c" <<'SOURCE'
#include <gasnetex.h>
int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Segment_t segment;
    void *address;
    long value = 1;
    if (gex_Client_Init(&client, &ep, &tm, "valgrind", &argc, &argv, 0) != GASNET_OK ||
        gex_Segment_Attach(&segment, tm, 65536) != GASNET_OK)
        return 1;
    void *volatile lost = malloc(77);
    lost = NULL;
    gex_Rank_t other = (gex_TM_QueryRank(tm) + 1) % gex_TM_QuerySize(tm);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, other, &address, NULL, NULL, 0));
    gex_RMA_PutBlocking(tm, other, address, &value, sizeof(value), 0);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    gasnet_exit(0);
}
SOURCE
# shellcheck disable=SC2046 # lists of options
gcc -g $(pc --cflags gasnet-ibv-seq) "$scratch/client.c" $(pc --libs gasnet-ibv-seq) -o "$scratch/client" || fail "the client does not build"

timeout -k 5 100 env LD_LIBRARY_PATH= "$bindir/gasnetrun_ibv" -n 2 -- valgrind -q --leak-check=full "--suppressions=$suppressions" \
    "$scratch/client" >"$scratch/out" 2>&1 || { head -5 "$scratch/out"; fail "status $?"; }
all=$(grep -c '^==[0-9]*== [^ ]' "$scratch/out")
lost=$(grep -c '^==[0-9]*== 77 bytes in 1 blocks are definitely lost' "$scratch/out")
[ "$all" -eq 2 ] && [ "$lost" -eq 2 ] || { head -30 "$scratch/out"; fail "$all reports, $lost of them of 77 bytes, not one of each rank"; }
finish
