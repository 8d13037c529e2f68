#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian's own tools, unmodified, on the software HCA: what they see, and ping-pongs between two
# processes. Also what must stay: nothing in /dev/shm, no cost for programs without verbs.
lib=$top_builddir/contrib/softhca/.libs/libsofthca.so
export SOFTHCA_FABRIC=tools-$$ SOFTHCA_ONLY=1

if [ -n "$TRUNKLINE_TEST_SANITIZER" ] && [ "$TRUNKLINE_TEST_SANITIZER" != no ]; then
    echo "a sanitized library cannot be preloaded into tools that are not; skipped"
    exit 77
fi
for tool in ibv_devices ibv_devinfo ibv_rc_pingpong ibv_ud_pingpong; do
    command -v $tool >/dev/null || {
        echo "$tool is missing (Debian package ibverbs-utils); skipped"
        exit 77
    }
done

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

fail()
{
    echo "FAIL: $*"
    failed=1
}

with()
{
    LD_PRELOAD=$lib timeout 10 "$@"
}

# expect_line TEXT COMMAND...: the output has a line with TEXT (a regular expression)
expect_line()
{
    local text=$1
    shift
    with "$@" >"$work/out" 2>&1 || fail "$* ended with $?"
    grep -Eq -- "$text" "$work/out" || {
        fail "$*: no line like $text"
        cat "$work/out"
    }
}

# pingpong TOOL ARGS...: server in the background, client in front. The client retries until the
# server listens; ports are taken from this process's number.
port=$((20000 + $$ % 20000))
pingpong()
{
    local server status deadline=$((SECONDS + 8))
    port=$((port + 1))
    with "$@" -p $port >"$work/server" 2>&1 &
    server=$!
    while :; do
        with "$@" -p $port localhost >"$work/client" 2>&1
        status=$?
        grep -q "Couldn't connect to localhost" "$work/client" || break
        [ $SECONDS -lt $deadline ] || break
        kill -0 $server 2>/dev/null || break
    done
    [ $status = 0 ] || kill $server 2>/dev/null
    wait $server
    [ $? = 0 ] && [ $status = 0 ] || {
        fail "$*"
        cat "$work/server" "$work/client"
    }
}

shm_before=$(ls -A /dev/shm)

expect_line '^ *softhca0' ibv_devices
expect_line 'port_lid:.*16$' ibv_devinfo -v
expect_line 'GID\[ *0\]' ibv_devinfo -v
SOFTHCA_HCAS=2 SOFTHCA_PORTS=2 expect_line 'hca_id:.softhca1' ibv_devinfo
[ "$(grep -c PORT_ACTIVE "$work/out")" = 4 ] || fail "2 HCAs of 2 ports do not make 4 active ports"
SOFTHCA_LINK=roce expect_line 'link_layer:.*Ethernet' ibv_devinfo -v
SOFTHCA_LINK=roce expect_line 'RoCE v2' ibv_devinfo -v

pingpong ibv_rc_pingpong -n 500 -c
pingpong ibv_rc_pingpong -n 500 -e
pingpong ibv_rc_pingpong -n 100 -s 300000 -c
pingpong ibv_ud_pingpong -n 500 -s 1024
pingpong ibv_ud_pingpong -n 500 -s 1024 -e
SOFTHCA_LINK=roce pingpong ibv_rc_pingpong -n 500 -g 0
SOFTHCA_LINK=roce pingpong ibv_ud_pingpong -n 500 -s 1024 -g 1
SOFTHCA_HCAS=2 SOFTHCA_PORTS=2 pingpong ibv_rc_pingpong -n 500 -d softhca1 -i 2

# A bad setting: one clear line and no device.
SOFTHCA_PORTS=9 with ibv_devinfo >"$work/out" 2>&1 && fail "SOFTHCA_PORTS=9 was taken"
grep -q 'SOFTHCA_PORTS=9 is not a number from 1 to 8' "$work/out" || fail "SOFTHCA_PORTS=9: no reason"

# Programs that know nothing of verbs: no output, no descriptor, no library behind.
out=$(with bash -c 'ls -l /proc/$$/fd | grep -c softhca; grep -c libibverbs /proc/$$/maps' 2>&1)
[ "$out" = $'0\n0' ] || fail "bash under LD_PRELOAD is not untouched: $out"

[ "$(ls -A /dev/shm)" = "$shm_before" ] || fail "something was left in /dev/shm"
exit $failed
