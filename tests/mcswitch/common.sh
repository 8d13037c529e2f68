# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the scripts that run mcswitchd: start, end, counters. Owns $work (a directory) and the TCP ports it gives out.
# shellcheck shell=bash
mcswitchd=${top_builddir:?}/contrib/mcswitch/mcswitchd
failed=0
# Below the ports that the kernel gives to clients (32768 and up).
port=$((8000 + $$ * 16 % 20000))
work=$(mktemp -d) || exit 1
switch='' others=()

clean_up()
{
    # shellcheck disable=SC2086
    kill -9 $switch "${others[@]}" 2>/dev/null
    wait 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT

fail()
{
    echo "FAIL: $*"
    failed=1
}

finish()
{
    exit $failed
}

# Two addresses of its own in 127/8, below those that softhca takes, for the scripts that run at a time.
vips=127.$((64 + $$ / 16384 % 32)).$(($$ / 64 % 256)).$(($$ % 64 * 4 + 1))
vips=$vips,${vips%.*}.$(($$ % 64 * 4 + 2))

# start OPTION...: a switch whose socket is $work/socket and whose controller is at $controller
start()
{
    local tries
    for ((tries = 0; tries < 20; tries++)); do
        port=$((port + 1))
        controller=127.0.0.1:$port
        rm -f "$work/switch" # not to be taken for the new one's
        "$mcswitchd" --control $controller --socket "$work/socket" "$@" >"$work/switch" 2>&1 &
        switch=$!
        while kill -0 $switch 2>/dev/null; do
            ! grep -qs 'mcswitchd: ready' "$work/switch" || return 0
            sleep 0.02
        done
        wait $switch
        grep -q 'in use' "$work/switch" || break
    done
    fail "the switch does not start: $(cat "$work/switch")"
    return 1
}

# stop: by SIGTERM; the switch must exit with 0 and leave nothing
stop()
{
    kill "$switch"
    wait "$switch" || fail "the switch ended with $?: $(cat "$work/switch")"
    switch=
    [ ! -e "$work/socket" ] || fail "the switch left its socket"
    [ "$(cat "$work/switch")" = 'mcswitchd: ready' ] || fail "the switch had something to say: $(cat "$work/switch")"
}

stat()
{
    "$mcswitchd" --socket "$work/socket" stat "$@"
}

# counter WHAT NAME: the sum over lines that begin with WHAT
counter()
{
    stat | awk -v what="$1" -v name="$2" '$1 == what { for (i = 2; i < NF; i++) if ($i == name) { sum += $(i + 1); seen = 1 } }
        END { print seen ? sum : "none" }'
}

# copies_once: copies of packets that came for the first time; repeats after time-outs on a busy machine are counted apart
copies_once()
{
    stat | awk '$1 == "core" { for (i = 2; i < NF; i += 2) at[$i] = $(i + 1); print at["copies"] - at["repeat_copies"] }'
}
