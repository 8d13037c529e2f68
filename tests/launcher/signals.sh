#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Signals to the launcher end the job: SIGTERM to every rank, SIGKILL after the grace period.
. "$(dirname "$0")/lib.sh"

# begin WORDS...: starts 3 ranks that join, say "ready", and do the words
begin()
{
    start -n 3 "$probe" init get "$@" say=ready hang
    eventually 10 out_count ready 3 || fail "ranks did not start"
}

for pair in INT:130 TERM:143 HUP:129 QUIT:131; do
    promise "SIG${pair%:*} ends all ranks with status ${pair#*:}"
    begin
    kill -"${pair%:*}" "$job_pid"
    finish
    status_is "${pair#*:}"
    if [ "$pair" = TERM:143 ]; then
        err_lines 1
        err_has 'got signal 15 (.*), ending 3 ranks'
    else
        err_lines 0 # the user who typed it knows
    fi
    clean
done

promise "ranks get SIGTERM first and may answer it"
start -n 2 "$probe" init get term=9 say=ready hang
eventually 10 out_count ready 2 || fail "ranks did not start"
kill -INT "$job_pid"
finish
status_is 130
clean

promise "a rank that ignores SIGTERM is killed after GASNET_KILL_GRACE"
GASNET_KILL_GRACE=0.5
export GASNET_KILL_GRACE
begin ignoreterm
began=$(now)
kill -TERM "$job_pid"
finish
status_is 143
faster 0.4 "$began" && fail "no grace given"
in_time 10 "$began" || fail "too slow"
clean

promise "the second SIGINT does not wait for the grace period"
GASNET_KILL_GRACE=60
begin ignoreterm
began=$(now)
kill -INT "$job_pid"
sleep 0.1 # two signals at once would be one; the order is what is tested, not the time
kill -INT "$job_pid"
finish
status_is 130
in_time 15 "$began" || fail "waited"
clean
unset GASNET_KILL_GRACE

promise "a stopped rank answers SIGTERM, too"
GASNET_KILL_GRACE=60
export GASNET_KILL_GRACE
begin
began=$(now)
kill -STOP "$(named pmix_probe | head -n 1)"
kill -TERM "$job_pid"
finish
status_is 143
in_time 10 "$began" || fail "it slept through it"
clean
unset GASNET_KILL_GRACE

# Whether the launcher and all its ranks are stopped
all_stopped()
{
    for p in $job_pid $(named pmix_probe); do
        grep -qs '^State:.*T' "/proc/$p/status" || return 1
    done
}
none_stopped()
{
    for p in $job_pid $(named pmix_probe); do
        ! grep -qs '^State:.*T' "/proc/$p/status" || return 1
    done
}

promise "Ctrl-Z stops the whole job, SIGCONT lets it go on, Ctrl-C ends it"
begin
kill -TSTP "$job_pid"
eventually 10 all_stopped || fail "not all stopped"
kill -CONT "$job_pid"
eventually 10 none_stopped || fail "not all go on"
kill -INT "$job_pid"
finish
status_is 130
err_lines 0
clean

promise "SIGUSR1 goes to the ranks"
start -n 2 "$probe" init get say=ready hang
eventually 10 out_count ready 2 || fail "ranks did not start"
kill -USR1 "$job_pid"
finish
status_is 138
clean

promise "SIGHUP is ignored under nohup"
(trap '' HUP; exec env TRUNKLINE_TEST_MARK="$mark" "$GASNETRUN" -n 2 "$probe" init get say=ready hang \
    >"$work/out" 2>"$work/err" </dev/null) &
job_pid=$!
eventually 10 out_count ready 2 || fail "ranks did not start"
kill -HUP "$job_pid"
kill -USR2 "$job_pid" # arrives after SIGHUP, ends the ranks
finish
status_is 140
clean

promise "an inherited SIGCHLD that is ignored hides no end of a rank"
start_ignoring_children()
{
    env --ignore-signal=CHLD TRUNKLINE_TEST_MARK="$mark" timeout -s KILL 20 "$GASNETRUN" -n 2 "$probe" init "$@" \
        >"$work/out" 2>"$work/err" </dev/null &
    job_pid=$!
    finish
}
start_ignoring_children finalize
status_is 0
start_ignoring_children finalize exit=3
status_is 3
clean
exit 0
