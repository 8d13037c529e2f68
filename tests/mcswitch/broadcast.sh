#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Broadcasts of programs with plain verbs through mcswitchd, on softhca's wire of packets: each member root, every subset, all at
# once, the lock kept; counts without loss; silent, broken and dead members; 1 % loss; a switch that is killed and started again.
. "${top_srcdir:?}/tests/mcswitch/common.sh"
[ "${TRUNKLINE_TEST_SANITIZER:-no}" = no ] || { echo "a sanitized softhca cannot be preloaded; skipped"; exit 77; }
export SOFTHCA_FABRIC=mcswitch-$$ SOFTHCA_ONLY=1 SOFTHCA_WIRE=udp

# members N OPTION...: N processes of the test; fails when one does
members()
{
    local n=$1 rank pids=()
    shift
    port=$((port + 1)) # at the switch's address, which no other test has
    for ((rank = n - 1; rank >= 0; rank--)); do
        LD_PRELOAD=$top_builddir/contrib/softhca/libsofthca.so timeout 200 "$top_builddir/tests/mcswitch/broadcast" \
            $rank "$n" "${vips%%,*}:$port" $controller "$@" >"$work/out$rank" 2>&1 &
        pids+=($!)
    done
    others=("${pids[@]}")
    [ -z "${during-}" ] || $during
    for ((rank = 0; rank < n; rank++)); do
        wait "${pids[n - 1 - rank]}" || fail "rank $rank of $n ($*): $(cat "$work/out$rank")"
    done
    others=()
}

# hostile: strangers and malformed requests at the controller, which must not disturb other members
hostile()
{
    "$top_builddir/tests/mcswitch/controller" $controller || fail "the controller, with broadcasts beside it"
}

# copied_once: exactly one copy for each receiver and packet; repeats after loss or time-outs are counted apart.
copied_once()
{
    local wanted copies
    wanted=$(sed -n "s/^copies //p" "$work/out0") copies=$(copies_once)
    [ "$copies" = "$wanted" ] || fail "$copies copies without those of repeats, $wanted wanted: $(stat)"
}

# Where members contend for the lock, its lease is longer than any delay of a busy machine.
start --udp $vips --lease 60000
during=hostile members 3
copied_once
# Two levels, in one process.
LD_PRELOAD=$top_builddir/contrib/softhca/libsofthca.so timeout 200 "$top_builddir/tests/mcswitch/levels" $controller ||
    fail "two levels: $(stat)"
for name in drop_icrc drop_future; do
    [ "$(counter core $name)" = 0 ] || fail "$name: $(stat)"
done
stop

start --udp $vips --lease 200
members 4 lease=200
[ "$(counter core steals)" -ge 1 ] || fail "no lock was taken after the lease: $(stat)"
stop

start --udp ${vips/,/:45056,}:45056 --loss 1 --lease 60000
members 4 mtu=4096
copied_once
[ "$(counter port lost_in)" -gt 0 ] && [ "$(counter port lost_out)" -gt 0 ] || fail "nothing was lost: $(stat)"
stop

# kill_it: when rank 0 asks for it
kill_it()
{
    until grep -q 'kill me' "$work/out0" || ! kill -0 "${others[-1]}" 2>/dev/null; do sleep 0.02; done
    kill -9 $switch
    { wait $switch; } 2>/dev/null
    rm -f "$work/switch"
    "$mcswitchd" --control $controller --socket "$work/socket" --udp $vips >"$work/switch" 2>&1 &
    switch=$!
    until grep -qs ready "$work/switch" || ! kill -0 $switch 2>/dev/null; do sleep 0.02; done
    touch "$work/killed"
}
# Until its members notice that the switch was killed it takes this time-out eight times, 4.3 s: no delay before should be longer.
start --udp $vips --lease 60000
during=kill_it members 3 timeout=17 rounds=3 killed="$work/killed"
stop
finish
