# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the scripts that preload the software HCA into other people's programs: preparation, checks of
# what a tool prints, and pairs of a server and a client on this host. Owns $work (a directory), the
# fabric's name and the TCP ports it gives out.
# shellcheck shell=bash
lib=${top_builddir:?}/contrib/softhca/libsofthca.so
export SOFTHCA_FABRIC=tools-$$ SOFTHCA_ONLY=1
failed=0
# Below the ports that the kernel gives to clients (32768 and up); scripts that begin one after the other have 200 each.
port=$((10000 + $$ % 110 * 200))

# prepare PACKAGE TOOL...: or skip, when a tool is missing
prepare()
{
    local package=$1 tool
    shift
    if [ "${TRUNKLINE_TEST_SANITIZER:-no}" != no ]; then
        echo "a sanitized library cannot be preloaded into tools that are not; skipped"
        exit 77
    fi
    for tool in "$@"; do
        command -v "$tool" >/dev/null || {
            echo "$tool is missing (Debian package $package); skipped"
            exit 77
        }
    done
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
}

fail()
{
    echo "FAIL: $*"
    failed=1
}

# The limit is for hangs; a loaded machine may be slow.
with()
{
    LD_PRELOAD=$lib timeout 120 "$@"
}

# In the background: $! is the process that passes a signal on to the command (after `with ... &` it would be
# a shell, and the command would live on).
with_behind()
{
    LD_PRELOAD=$lib exec timeout 120 "$@"
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

# listening PORT: a process listens for TCP connections there. Read from the kernel: a try to connect would
# be taken for the client.
listening()
{
    local hex
    printf -v hex '%04X' "$1"
    grep -qE "^ *[0-9]+: [0-9A-F]+:$hex [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# await_server PID PORT: until it listens, or ended
await_server()
{
    local tries=0
    while ! listening "$2"; do
        [ $((tries += 1)) -lt 3000 ] && kill -0 "$1" 2>/dev/null || return 1
        sleep 0.02
    done
}

# Sets $port to the next free port
next_port()
{
    port=$((port + 1))
    while listening $port; do
        port=$((port + 1))
    done
}

# together COMMAND...: the same command as server in the background and as client of localhost in front;
# what they print is in $work/server and $work/client
together()
{
    local server client_status
    next_port
    with_behind "$@" -p $port >"$work/server" 2>&1 &
    server=$!
    await_server $server $port
    with "$@" -p $port localhost >"$work/client" 2>&1
    client_status=$?
    # Its partner gone, a server may wait for ever.
    [ $client_status = 0 ] || kill $server 2>/dev/null
    wait $server && [ $client_status = 0 ] && return
    fail "$*"
    cat "$work/server" "$work/client"
    return 1
}

# finish: the script's own end
finish()
{
    # Others (Open MPI of another test) have their own files there.
    ! ls -A /dev/shm | grep -E "softhca|$SOFTHCA_FABRIC" || fail "something was left in /dev/shm"
    exit $failed
}
