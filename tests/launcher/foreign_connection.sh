#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Processes outside of a job connect to its PMIx server's TCP port repeatedly, while it starts, runs and ends. Those of another user
# have no effect; one of our own user delays the job, but not for long.
. "$(dirname "$0")/lib.sh"

dir=$work
chmod 711 "$dir"
cp "$top_builddir/tests/launcher/foreign_connection" "$dir/stranger" || fail "cannot copy foreign_connection"
chmod 755 "$dir/stranger"

# The port on which the PMIx server of the job listens; any user can read it in /proc/net/tcp.
find_port()
{
    server=$(named gasnetrun-pmix)
    port=
    for s in $(ls -l "/proc/${server:-none}/fd" 2>/dev/null | sed -n 's/.*socket:\[\([0-9]*\)\]$/\1/p'); do
        hex=$(awk -v s="$s" '$4 == "0A" && $10 == s { sub(/.*:/, "", $2); print $2 }' /proc/net/tcp)
        [ -z "$hex" ] || port=$(printf '%d' "0x$hex")
    done
    [ -n "$port" ]
}

# visit NAME MODE [CONNECTIONS]: starts a foreign process with $as; its output is in $work/NAME
visit()
{
    visitor=$1
    shift
    # shellcheck disable=SC2086 # several words
    $as "$dir/stranger" "$port" "$@" >"$work/$visitor" &
    visitors="$visitors $!"
    eventually 10 grep -qs connected "$work/$visitor" || fail "no connection"
}

leave()
{
    for p in $visitors; do
        kill "$p" 2>/dev/null
        wait "$p" 2>/dev/null
    done
    visitors=
}

# begin: a job whose ranks join when $work/go1 exists and finalize when $work/go2 does
begin()
{
    rm -f "$work/go1" "$work/go2"
    start -n 3 "$probe" say=ready "await=$work/go1" init keys get say=joined "await=$work/go2" get finalize rank
    eventually 10 out_count ready 3 || fail "ranks did not start"
    find_port || fail "no port"
}

is_good()
{
    finish
    status_is 0
    out_count 'rank [012] of 3' 3 || fail "output"
    err_lines 0
    clean
}

# The kernel reports the owner of the connection, so these connections do not get the 5 s that a
# process of the same user gets.
refused_at_once()
{
    eventually 2 grep -qs refused "$work/$1" || fail "$mode: never refused"
    refused_ms=$(sed -n 's/^refused after //p' "$work/$1")
    [ "$refused_ms" -lt 3000 ] || is_busy || fail "$mode: $(cat "$work/$1")"
}

# The kernel reports our own user as owner: each connection gets 5 s, or 1 s if it comes while
# another waits.
own_at_start()
{
    promise "a process of our own user that connects and does not speak delays a start, and no more"
    begin
    visit one drip 1
    visit two silent 1
    echo >"$work/go1"
    eventually 15 out_count joined 3 || fail "not joined within 15 s"
    echo >"$work/go2"
    is_good
    grep -q refused "$work/one" && grep -q refused "$work/two" || fail "never refused"
    leave
}

own_at_end()
{
    promise "and an end"
    begin
    echo >"$work/go1"
    eventually 15 out_count joined 3 || fail "not joined within 15 s"
    visit one byte 1
    echo >"$work/go2"
    is_good
    leave
}

# A connection that blocks libpmix for longer than a start may take ends the job, even if all ranks
# have connected.
own_for_too_long()
{
    promise "a PMIx server that does not answer when the time for joining is over is told"
    GASNET_START_TIMEOUT=2.4 # twice that is less than the 5 s for which the stranger stops libpmix
    export GASNET_START_TIMEOUT
    begin
    echo >"$work/go1"
    if ! eventually 2 out_count joined 3; then
        echo "not joined within 2 s: this machine is too busy to tell"
        echo >"$work/go2" # if it has joined since
        finish
        return 0
    fi
    visit one drip 1
    finish
    status_is 1
    err_has 'the PMIx server (pid [0-9]*) does not answer after GASNET_START_TIMEOUT; it is .*, another thread is sleeping in poll.*; ending the job'
    clean
    leave
}

# A handshake is checked before libpmix sees any of it: the check rejects handshakes that libpmix
# would refuse late, or trust.
own_handshakes()
{
    promise "wrong handshakes of our own user are refused, and the job does not notice"
    begin
    echo >"$work/go1"
    eventually 15 out_count joined 3 || fail "not joined within 15 s"
    rank=$(named pmix_probe | head -n 1)
    nspace=$(tr '\0' '\n' <"/proc/$rank/environ" | sed -n 's/^PMIX_NAMESPACE=//p')
    "$dir/stranger" "$port" handshakes "$nspace" >"$work/answers"
    [ "$(grep -c '^refused' "$work/answers")" -eq 39 ] || fail "$(sort "$work/answers" | uniq -c)"
    echo >"$work/go2"
    is_good
}

visitors=
as=
aside own_handshakes
aside own_for_too_long
aside own_at_start
aside own_at_end
as="setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all"
if [ "$(id -u)" = 0 ] && $as "$dir/stranger" 2>/dev/null; [ $? -eq 2 ]; then
    promise "another user who connects has no effect on start, run and end of a job"
    for mode in silent byte drip junk huge brief close reset; do
        begin
        visit one $mode
        visit two silent
        echo >"$work/go1"
        eventually 10 out_count joined 3 || fail "$mode: not joined within 10 s"
        echo >"$work/go2"
        is_good
        case $mode in brief | close | reset) ;; *) refused_at_once one ;; esac
        leave
    done
else
    echo "not root, or a second user cannot run $dir/stranger: strangers of our own user only"
fi

joined own_handshakes
joined own_at_start
joined own_at_end
joined own_for_too_long
exit 0
