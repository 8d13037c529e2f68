#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A process that SIGKILL does not end, here one that has changed its user: the job ends in bounded time and says which process is
# left, whatever else the job ends for. Processes in the kernel's uninterruptible sleep are left in the same way.
if [ -z "${UNKILLABLE-}" ]; then
    [ "$(id -u)" = 0 ] || {
        echo "not root: no program of another user can be made"
        exit 77
    }
    as="setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all"
    $as true 2>/dev/null || {
        echo "setpriv cannot change the user here"
        exit 77
    }
    here=$(cd "$(dirname "$0")" && pwd)
    $as test -x "${GASNETRUN:-$top_builddir/spawner/gasnetrun_ibv}" -a -r "$here/lib.sh" || {
        echo "the build tree is not readable for an ordinary user"
        exit 77
    }
    UNKILLABLE=$(mktemp -d /tmp/unkillable.XXXXXX) || exit 1
    trap 'rm -rf "$UNKILLABLE"' EXIT
    export UNKILLABLE TMPDIR=/tmp
    chmod 755 "$UNKILLABLE"
    : >"$UNKILLABLE/stay"
    cp "$top_builddir/tests/launcher/other_user" "$UNKILLABLE/" && chmod 4755 "$UNKILLABLE/other_user" || exit 1
    $as timeout 5 "$UNKILLABLE/other_user" "$UNKILLABLE/none" >/dev/null || {
        echo "programs that change the user are forbidden in /tmp"
        exit 77
    }
    $as sh "$here/unkillable.sh"
    exit
fi
. "$(dirname "$0")/lib.sh"
GASNET_KILL_GRACE=0.2
export GASNET_KILL_GRACE
name="rank 1 (pid [0-9]*) is [a-z ]*"
left="processes of the job do not end even by SIGKILL; they are left behind: $name"

# at_once: the launcher waits once for the process, 5 s, and a second for its output
at_once() { in_time 8 "$began" || fail "not over within 8 s"; }

# Rank 1, or another rank of that script, stays; rank 0 ends the job.
# shellcheck disable=SC2016 # for the rank
one_stays='if [ $PMIX_RANK = 1 ]; then exec $UNKILLABLE/other_user $UNKILLABLE/stay; fi; sleep 0.3; exit 3'

one_host()
{
    promise "a rank that exits with a status: the status, and both lines"
    began=$(now)
    job -n 2 sh -c "$one_stays"
    status_is 3
    err_lines 2
    err_has "rank 0 .* exited with status 3"
    err_has "$left"
    at_once
}

two_hosts()
{
    promise "other hosts: the line names the host"
    began=$(now)
    job -H =n0:1,=n1:1 -n 2 sh -c "$one_stays"
    status_is 3
    err_lines 2
    err_has "host n1: $left"
    at_once
}

by_signal()
{
    promise "a signal to the launcher: its line, and the one that comes when it no longer waits for a reader"
    # shellcheck disable=SC2016 # for the rank
    start -n 2 sh -c 'if [ $PMIX_RANK = 1 ]; then exec $UNKILLABLE/other_user $UNKILLABLE/stay; fi; exec sleep 1000'
    eventually 10 out_has another || fail "rank 1 did not start"
    began=$(now)
    kill -TERM "$job_pid"
    finish
    status_is 143
    err_lines 2
    err_has "got signal 15"
    err_has "$left"
    at_once
    clean
}

left_behind()
{
    promise "processes that ranks left behind: status 1, one line"
    began=$(now)
    # shellcheck disable=SC2016 # for the rank
    job -n 1 sh -c 'for i in 1 2 3 4; do $UNKILLABLE/other_user $UNKILLABLE/stay & done; sleep 0.3'
    status_is 1
    err_lines 1
    err_has "they are left behind: pid [0-9]* is [a-z ]*, pid [0-9]* is [a-z ]*, pid [0-9]* is [a-z ]*, and 1 more"
    at_once
}

aside one_host
aside two_hosts
aside by_signal
aside left_behind
joined one_host
joined two_hosts
joined by_signal
joined left_behind
