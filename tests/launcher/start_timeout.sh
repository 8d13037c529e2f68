#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# GASNET_START_TIMEOUT counts from the start of the launcher, whichever part does not join: the server, all ranks, one of
# them. The process that did not join is named, with what it was doing.
. "$(dirname "$0")/lib.sh"
GASNET_START_TIMEOUT=0.7
export GASNET_START_TIMEOUT

# late: the job has ended by the limit, and in time (generous: a busy machine)
late()
{
    status_is 1
    err_has 'ending the job (GASNET_START_TIMEOUT sets the limit)'
    in_time 15 "$began" || fail "too slow"
}

stopped_guard()
{
    promise "a guard that is stopped does not keep the job"
    GASNET_START_TIMEOUT=1 start -n 2 "$probe" say=ready hang
    eventually 10 out_count ready 2 || fail "ranks did not start"
    guard=$(named gasnetrun-guard)
    kill -STOP "$guard"
    finish
    status_is 1
    err_has "the guard (pid $guard) does not answer, killing it: stopped"
    eventually 5 nothing_marked || fail "processes left: $(marked)"
    clean
}

stopped_job()
{
    promise "time in which the whole job is stopped does not count, and 0 is no limit"
    GASNET_START_TIMEOUT=0 job -n 2 "$probe" sleep=1000 init finalize
    status_is 0
    GASNET_START_TIMEOUT=2 start -n 2 "$probe" say=ready "await=$work/go2" init finalize
    eventually 10 out_count ready 2 || fail "ranks did not start"
    kill -TSTP "$job_pid"
    sleep 2.5
    echo >"$work/go2"
    kill -CONT "$job_pid"
    finish
    status_is 0
    clean
}

hung_exec()
{
    promise "a program that is never loaded: limits of time and signals are served"
    for end in limit TERM; do
        GASNET_START_TIMEOUT=2
        if [ $end = TERM ]; then GASNET_START_TIMEOUT=60; fi
        GASNET_KILL_GRACE=0.3 LD_PRELOAD=$top_builddir/tests/launcher/hung_exec.so TEST_HUNG_RANK=1 \
            start -n 3 "$probe" init say=ready fence finalize
        eventually 10 out_count ready 2 || fail "ranks did not start"
        began=$(now)
        [ $end = limit ] || kill -TERM "$job_pid"
        finish
        if [ $end = TERM ]; then status_is 143; else late; fi
        [ $end = TERM ] || err_has '^gasnetrun_ibv: rank 1 (pid [0-9]*) has not joined the job'
        in_time 10 "$began" || fail "too slow"
        clean
    done
}

aside hung_exec
aside stopped_guard
aside stopped_job
promise "a rank that never joins"
began=$(now)
job -n 3 "$probe" 2:hang init fence finalize
late
err_has '^gasnetrun_ibv: rank 2 (pid [0-9]*) has not joined the job 0.7 s after the launcher was started'
err_has '^gasnetrun_ibv:   rank 2 (pid [0-9]*): sleeping in p.*; command: .*pmix_probe 2:hang init'
err_has '^gasnetrun_ibv:   the PMIx server (pid [0-9]*): sleeping'
if grep -q '  rank [01]' "$work/err"; then fail "ranks that joined are described"; fi

promise "no rank joins at all, and of many some are described"
began=$(now)
job -n 11 sleep 100
late
err_has 'rank 0 (pid [0-9]*) and 10 others have not joined the job'
err_has '  rank 7 (pid [0-9]*): sleeping in clock_nanosleep; command: sleep 100'
err_has '  3 more ranks have not joined'

promise "a stopped rank, and one that a pipe holds up"
mkfifo "$work/pipe"
GASNET_START_TIMEOUT=1.5 start -n 3 sh -c 'case $PMIX_RANK in 0) kill -STOP $$ ;; 1) read x <"$0" ;; esac; exec "$@"' \
    "$work/pipe" "$probe"
began=$(now)
finish
late
err_has '  rank 0 (pid [0-9]*): stopped'
err_has '  rank 1 (pid [0-9]*): sleeping in open'
clean

promise "a server that does not get ready: the file of libpmix's parameters is a pipe without an end"
mkdir -p "$work/home/.pmix"
mkfifo "$work/home/.pmix/mca-params.conf"
began=$(now)
HOME=$work/home job -n 2 "$probe"
late
err_has 'no rank could be started within 0.7 s: the PMIx server is not ready'
err_has '  the PMIx server (pid [0-9]*): sleeping in open'

promise "a server that is stuck when the ranks come"
GASNET_START_TIMEOUT=2 start -n 2 sh -c 'echo ready; until [ -e "$0" ]; do sleep 0.02; done; exec "$@"' "$work/go" "$probe"
eventually 10 out_count ready 2 || fail "ranks did not start"
kill -STOP "$(named gasnetrun-pmix)"
echo >"$work/go"
began=$(now)
finish
late
err_has '  the PMIx server (pid [0-9]*): stopped'
err_has '  rank 1 (pid [0-9]*): sleeping in recv of socket'
clean

promise "however little address space there is, the job ends"
for kilobytes in 16384 32768 65536 98304; do
    (ulimit -v $kilobytes && TRUNKLINE_TEST_MARK=$mark GASNET_START_TIMEOUT=1 timeout -k 1 "$limit" "$GASNETRUN" -n 2 "$probe" \
        >"$work/out" 2>"$work/err")
    status=$?
    [ $status -ne 124 ] && [ $status -ne 137 ] || fail "not finished within $limit s with $kilobytes KiB"
    [ $status -eq 0 ] || [ -s "$work/err" ] || fail "status $status without a word, with $kilobytes KiB"
    if grep -q 'sets the limit' "$work/err"; then err_has "limited to $((kilobytes / 1024)) MiB a process (ulimit -v)"; fi
    clean
done

joined hung_exec
joined stopped_guard
joined stopped_job
exit 0
