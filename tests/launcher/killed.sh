#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Nothing is left when a rank, the launcher, the guard or the PMIx server is killed with SIGKILL; not the
# children of ranks either, even in sessions of their own.
. "$(dirname "$0")/lib.sh"

begin()
{
    start -n 3 "$probe" init get child session say=ready "$@" hang
    eventually 10 out_count ready 3 || fail "ranks did not start"
    [ "$(named pmix_probe | wc -l)" -eq 9 ] || fail "expected 3 ranks and 6 children: $(named pmix_probe)"
}

all_gone() { eventually 8 nothing_marked || fail "processes left: $(marked)"; clean; }

promise "kill -9 of a rank"
begin
victim=$(rank_pids | head -n 1)
kill -KILL "$victim"
finish
status_is 137
err_lines 1
err_has "(pid $victim) was killed by signal 9"
all_gone

promise "kill -9 of the launcher"
begin ignoreterm
kill -KILL "$job_pid"
finish
status_is 137
eventually 8 nothing_marked || fail "processes left: $(marked)"
eventually 2 session_empty || fail "session directory left"
all_gone

promise "kill -9 of the guard"
begin ignoreterm
kill -KILL "$(named gasnetrun-guard)"
finish
status_is 1
err_lines 1
err_has 'guard process of the job was killed'
clean

promise "SIGTERM to the guard ends the job in order"
begin
kill -TERM "$(named gasnetrun-guard)"
finish
status_is 1
err_lines 1
err_has 'guard process was ended by signal 15'
clean

promise "kill -9 of the PMIx server"
begin
kill -KILL "$(named gasnetrun-pmix)"
finish
status_is 1
err_lines 1
err_has_kill 'PMIx server process was killed by signal 9 (SIGKILL: Killed)'
clean

promise "a crash of the PMIx server is one line that names the signal"
begin
kill -SEGV "$(named gasnetrun-pmix)"
finish
status_is 1
err_lines 1
err_has 'PMIx server process was killed by signal 11 (SIGSEGV: Segmentation fault[a-z, ]*): libpmix crashed'
clean

promise "a PMIx server that does not answer keeps nobody for ever"
# shellcheck disable=SC2016 # for the shell of the ranks
PMIX_MCA_ptl_base_handshake_wait_time=1 start -n 2 sh -c 'echo ready $PMIX_MCA_ptl_base_handshake_wait_time
    until [ -e "$0" ]; do sleep 0.02; done; exec "$@"' "$work/go" "$probe" init
eventually 10 out_count 'ready 1' 2 || fail "ranks did not start, or not with what the user set"
kill -STOP "$(named gasnetrun-pmix)"
echo >"$work/go"
finish
[ "$status" -ne 0 ] || fail "status 0"
all_gone
job -n 1 sh -c 'echo "$PMIX_MCA_ptl_base_handshake_wait_time"'
out_is 60

promise "kill -9 of the launcher and the guard at once, of ranks that PMIx does not know"
start -n 3 "$probe" say=ready hang
eventually 10 out_count ready 3 || fail "ranks did not start"
guard=$(named gasnetrun-guard)
kill -STOP "$guard"
kill -KILL "$job_pid" "$guard"
finish
eventually 8 nothing_marked || fail "processes left: $(marked)"
rm -rf "$work"/session/* # no process was left to do it

promise "kill -9 of the launcher while ranks start"
start -n 16 "$probe"
eventually 5 session_exists || fail "no session directory"
kill -KILL "$job_pid"
finish
eventually 8 nothing_marked || fail "processes left: $(marked)"
eventually 2 session_empty || fail "session directory left"

promise "children left behind by a job that ends well are ended, with status 0"
GASNET_KILL_GRACE=0.3 job -n 2 "$probe" init get child session finalize
status_is 0
job -n 2 sh -c 'sleep 1000 & exit 0'
status_is 0

promise "a guard without CPU for longer than it waits for a process: each child is ended, and none is said to survive SIGKILL"
began=$(now)
GASNET_KILL_GRACE=0.2 LD_PRELOAD=$top_builddir/tests/launcher/stalled_kill.so \
    job -n 2 sh -c 'if [ $PMIX_RANK = 0 ]; then sleep 0.5; exit 3; fi; trap "" TERM; setsid -w sh -c "while :; do sleep 1; done"; :'
status_is 3
err_lines 1
if faster 6 "$began"; then fail "the guard was not stalled"; fi

promise "nothing of ours in /dev/shm"
ls /dev/shm 2>/dev/null | grep -E 'gasnetrun|trunkline|pmix' && fail "left in /dev/shm"
exit 0
