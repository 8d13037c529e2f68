#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The replacement libibverbs.so.1, found by LD_LIBRARY_PATH alone: it exports the same symbols as the host's, other
# programs run with it, and without the host's library calls fail cleanly.
. "${top_srcdir:?}/tests/softhca/tools_common.sh"
prepare ibverbs-utils ibv_devinfo ibv_rc_pingpong
replacement=$top_builddir/contrib/softhca/replace
[ -e "$replacement/libibverbs.so.1" ] || {
    echo "the replacement is not built on this machine (see the end of configure's output); skipped"
    exit 77
}
host=$(sed -n "s/^SOFTHCA_HOST_LIBDIR = //p" "$top_builddir/Makefile")

with()
{
    LD_LIBRARY_PATH=$replacement timeout 120 "$@"
}

# exports LIBRARY: kind, name@version of what it defines; SOFTHCA_1 is what our librdmacm.so.1 takes from our libibverbs.so.1
exports()
{
    readelf -W --dyn-syms "$1" | awk '$5 ~ /GLOBAL|WEAK/ && $7 != "UND" && !/SOFTHCA_1/ { print $4, $8 }' | sort -u
}

# nodes LIBRARY: versions and what they inherit
nodes()
{
    readelf -W -V "$1" | awk '/^Version needs/ { exit } !/SOFTHCA_1/ && /Name:|Parent/ { print $NF }'
}

for name in libibverbs.so.1 librdmacm.so.1; do
    exports "$host/$name" >"$work/host"
    exports "$replacement/$name" >"$work/ours"
    [ "$(wc -l <"$work/host")" -gt 60 ] || fail "cannot read the exports of $host/$name"
    diff "$work/host" "$work/ours" || fail "the exports of $name differ from the host's (< host, > ours)"
    diff <(nodes "$host/$name") <(nodes "$replacement/$name") || fail "the version nodes of $name differ"
done

# All symbols are bound before the program runs, so a missing one is found.
LD_BIND_NOW=1 expect_line 'hca_id:.softhca0' ibv_devinfo -v
together ibv_rc_pingpong -n 300 -c
together ibv_rc_pingpong -n 300 -e
with "$top_builddir/tests/softhca/dlvsym_client" here || fail "a program that uses dlvsym"
LD_BIND_NOW=1 expect_line 'channel made.*first softhca0' "$top_builddir/tests/softhca/rdmacm_client"
with "$top_builddir/tests/vm/cm_events" 10.83.0.1 >"$work/out" || fail "cm_events on the replacement"
diff "$top_srcdir/tests/softhca/cm_events.txt" "$work/out" || fail "cm_events on the replacement"

# Both libraries in one program: one list of devices.
SOFTHCA_ONLY=0 LD_PRELOAD=$lib with ibv_devinfo -l >"$work/out" 2>&1
[ "$(grep -c 'softhca0' "$work/out")" = 1 ] || fail "preload and replacement together: $(cat "$work/out")"

# Without the host's library our devices work, other calls fail cleanly, and one line says why.
SOFTHCA_REAL=/no/such/file expect_line 'hca_id:.softhca0' ibv_devinfo
SOFTHCA_REAL=/no/such/file with "$top_builddir/tests/softhca/dlvsym_client" absent 2>"$work/err" ||
    fail "a program that uses dlvsym, with no library behind"
[ "$(grep -c 'SOFTHCA_REAL=/no/such/file cannot be loaded' "$work/err")" = 1 ] ||
    fail "no reason why the library behind is missing: $(cat "$work/err")"
# It never loads itself, under any name.
ln -s "$(realpath "$replacement/libibverbs.so.1")" "$work/other.so"
SOFTHCA_REAL=$work/other.so SOFTHCA_ONLY=0 expect_line 'is the replacement itself' ibv_devinfo

finish
