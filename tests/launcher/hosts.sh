#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Jobs on several (virtual) hosts: the maps, exchanges and fences of PMIx over them, output, input and
# signals, how such a job ends, and that nothing is left when any part of it is killed or stopped, wherever it is in the
# tree of guards. The head's messages grow with the hosts, not with the ranks.
. "$(dirname "$0")/lib.sh"
unset GASNET_SSH_HEARTBEAT GASNET_SSH_OUT_DEGREE
three='-H =n0:2,=n1:2,=n2:1 -n 5'

# ppid PID
ppid() { sed -n 's/^PPid:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null; }

# rank_of HOST: the pid of a rank there, not of a child of one
rank_of()
{
    for p in $(named pmix_probe); do
        [ "$(cat "/proc/$(ppid "$p")/comm" 2>/dev/null)" = gasnetrun-guard ] || continue
        ! tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qx "TRUNKLINE_HOST=$1" || { echo "$p" && return; }
    done
}

guard_of() { ppid "$(rank_of "$1")"; }

# server_of HOST: the PMIx server there
server_of()
{
    guard=$(guard_of "$1")
    for p in $(named gasnetrun-pmix); do
        [ "$(ppid "$p")" != "$guard" ] || echo "$p"
    done
}

# start_chain WORDS: five ranks on three hosts, whose guards are a chain
start_chain()
{
    # shellcheck disable=SC2086
    GASNET_SSH_OUT_DEGREE=1 start $three "$probe" init get "$@" say=ready hang
    eventually 15 out_count ready 5 || fail "ranks did not start"
}

# begin WORDS: the same, with children of the ranks, some in sessions of their own
begin() { start_chain child session "$@"; }

all_gone() { eventually 8 nothing_marked || fail "processes left: $(marked)"; clean; }

# shellcheck disable=SC2086
exchanges()
{
    for degree in 0 1 2; do
        promise "maps, direct questions and fences of some and of all ranks, out degree $degree"
        GASNET_SSH_OUT_DEGREE=$degree job $three "$probe" init map=n0:2,n1:2,n2:1 put 0:ask=4 1:ask=3 2:ask=0 \
            3:ask=4 4:ask=0 among=4,0 among=0,4 among=2,3 among=1,3,4 get fence rank finalize
        status_is 0
        err_lines 0
        out_count 'of 5' 5 || fail "output lost"
    done

    promise "a question waits for its answer; the one for a rank that has left gets none"
    job $three "$probe" init 4:ask=0 0:sleep=200 0:put fence finalize
    status_is 0
    job $three "$probe" init 0:finalize 0:exit=0 1:finalize 1:exit=0 4:sleep=500 4:ask=0 finalize
    status_is 99
    err_has 'PMIx_Get'
}

# shellcheck disable=SC2086
endings()
{
    promise "the first rank that fails decides, and its host is named"
    job $three "$probe" init get 3:exit=3 hang
    status_is 3
    err_has '^gasnetrun_ibv: rank 3 (pid [0-9]* on n1) exited with status 3; ending the other 4$'
    err_lines 1
    job $three "$probe" init get 4:kill=11 hang
    status_is 139
    err_has 'rank 4 (pid [0-9]* on n2) was killed by signal 11'
    err_lines 1
    job $three "$probe" init get 2:abortmsg=6 hang
    status_is 6
    err_has 'rank 2 (pid [0-9]* on n1) aborted the job with status 6: I have had enough'
    job $three /dev/null
    status_is 2

    promise "leftovers of ranks on each host are ended, with status 0"
    GASNET_KILL_GRACE=0.2 job $three "$probe" init get child session finalize
    status_is 0
    job $three sh -c 'sleep 1000 & exit 0'
    status_is 0
}

# shellcheck disable=SC2086
streams()
{
    promise "output by lines with labels, of all hosts"
    GASNET_SSH_OUT_DEGREE=1 job -l $three "$probe" lines=200
    [ "$(sort -u "$work/out" | wc -l)" -eq 1000 ] || fail "lines lost"
    ! grep -vE '^\[([0-4])\] \1 [0-9]+ x+$' "$work/out" || fail "lines mixed"

    promise "standard input of some size reaches rank 0"
    awk 'BEGIN { for (i = 0; i < 60000; i++) print "a line of input", i }' >"$work/in"
    job $three "$probe" 0:cat <"$work/in"
    cmp -s "$work/in" "$work/out" || fail "input changed on its way"
}

# count RANKS EACH: the head's messages of a PMIx program on four hosts
count()
{
    job -vv -n "$1" -H "=a:$2,=b:$2,=c:$2,=d:$2" "$probe" init get finalize
    status_is 0
    sed -n 's/.*head: \([0-9]*\) messages.*/\1/p' "$work/err"
}

messages()
{
    promise "the head's messages grow with the hosts, not with the ranks"
    few=$(count 4 1)
    many=$(count 64 16)
    echo "messages of the head, 4 hosts: $few with 4 ranks, $many with 64"
    [ -n "$many" ] && [ "$few" -le 100 ] && [ "$many" -le 160 ] || fail "$few and $many"
}

kills()
{
    promise "kill -9 of a rank"
    begin
    kill -KILL "$(rank_of n2)"
    finish
    status_is 137
    err_has 'on n2) was killed by signal 9'
    err_lines 1
    all_gone

    promise "kill -9 of the launcher"
    begin ignoreterm
    kill -KILL "$job_pid"
    finish
    eventually 8 nothing_marked || fail "processes left: $(marked)"
    eventually 2 session_empty || fail "session directory left"

    for host in n0 n1 n2; do
        promise "kill -9 of the guard of $host, in a chain"
        begin ignoreterm
        kill -KILL "$(guard_of $host)"
        finish
        status_is 1
        err_has "^gasnetrun_ibv: host $host: its guard process was killed$"
        err_lines 1
        all_gone
    done

    promise "kill -9 of a PMIx server"
    begin
    kill -KILL "$(server_of n1)"
    finish
    status_is 1
    err_has_kill '^gasnetrun_ibv: host n1: the PMIx server process was killed by signal 9 (SIGKILL: Killed)'
    err_lines 1
    all_gone

    # Then no process would own the children of ranks.
    promise "kill -9 of the launcher and of two guards at once"
    start_chain ignoreterm
    guards="$(guard_of n0) $(guard_of n2)"
    # shellcheck disable=SC2086
    kill -KILL $job_pid $guards 2>/dev/null
    finish
    eventually 8 nothing_marked || fail "processes left: $(marked)"
    rm -rf "$work"/session/* # nobody was left to do it
}

stops()
{
    for host in n0 n2; do
        promise "a guard that is stopped is a lost host: $host"
        GASNET_SSH_HEARTBEAT=0.2 begin
        kill -STOP "$(guard_of $host)"
        finish
        status_is 1
        err_has "^gasnetrun_ibv: host $host: no sign of life for 0.8 s"
        all_gone
    done

    promise "a job that is stopped by its terminal goes on, whatever the heartbeat"
    GASNET_SSH_HEARTBEAT=0.1 begin 0:say=ready 0:await="$work/go" 0:exit=4
    rank=$(rank_of n2)
    kill -TSTP "$job_pid"
    eventually 5 grep -qs '^State:.*T' "/proc/$rank/status" || fail "rank runs"
    sleep 0.7
    kill -CONT "$job_pid"
    eventually 5 grep -qs '^State:.*S' "/proc/$rank/status" || fail "rank stays stopped"
    : >"$work/go"
    finish
    status_is 4
    all_gone

    promise "SIGTERM to the launcher ends all"
    begin
    kill -TERM "$job_pid"
    finish
    status_is 143
    all_gone
}

for part in exchanges endings streams messages kills stops; do
    aside $part
done
for part in exchanges endings streams messages kills stops; do
    joined $part
done
exit 0
