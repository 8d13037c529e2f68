#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every status but 0 comes with a line that names the process and the reason, unless the program chose it: a table of all causes in
# launcher and library.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_QUIET=1

# words STATUS PATTERN N WAY CODE [NAME=VALUE...]: a line matches the pattern, once or for every rank.
words()
{
    SETTINGS="TEST_NO_QUIT_HANDLER=1 ${*:6}" job "$3" "$jobs/exit_contexts-seq" "$4" "$5"
    fails_with "$1" "$4"
    said=$(grep -c -e "$2" "$scratch/err")
    [ "$said" -ge 1 ] && [ "$said" -le "$3" ] || failed "$4: '$2' was said $said times"
}

# A status that the program chose needs no line.
its_own()
{
    SETTINGS="TEST_NO_QUIT_HANDLER=1" job "$1" "$jobs/exit_contexts-seq" "$2" 7
    fails_with 7 "$2"
    sed -i '/using softhca/d' "$scratch/err"
    says '^gasnetrun_ibv\|^trunkline' 0
}

# Crashed: exit_matrix.sh. Killed, or gone without a word and status 0: exit_contexts.sh, items 67 and 68
of_ranks()
{
    its_own 1 leave
    its_own 3 leave
    its_own 3 exit-all
    words 3 '^gasnetrun_ibv: rank . (pid [0-9]*) exited with status 3' 1 _exit 3
    words 3 '^gasnetrun_ibv: rank . (pid [0-9]*) exited with status 3' 2 _exit-all 3
    words 130 '^gasnetrun_ibv: rank 1 (pid [0-9]*) aborted the job with status 130: ended by SIGINT' 2 sigint 0
    words 143 '^gasnetrun_ibv: rank 0 (pid [0-9]*) was killed by signal 15 (SIGTERM' 1 sigterm-all 0
    words 143 '^gasnetrun_ibv: rank . (pid [0-9]*) was killed by signal 15 (SIGTERM' 2 sigterm-all 0
}

# One rank gets the signal: over each transport, with a SIGQUIT handler of its own or without.
of_signals()
{
    for maxsize in 0 1; do
        for signal in 1:SIGHUP 2:SIGINT 3:SIGQUIT 13:SIGPIPE; do
            words $((128 + ${signal%:*})) "rank 2 (pid [0-9]*) .*ended by ${signal#*:}" 3 signal ${signal%:*} GASNET_SUPERNODE_MAXSIZE=$maxsize
        done
        words 143 '^gasnetrun_ibv: rank 2 (pid [0-9]*) was killed by signal 15 (SIGTERM' 3 signal 15 GASNET_SUPERNODE_MAXSIZE=$maxsize
    done
    for number in 1 2 13 15; do
        job 3 "$jobs/exit_contexts-seq" signal $number
        fails_with $((128 + number)) "signal $number with a handler that returns"
        SETTINGS="TEST_QUIT_CODE=4" job 3 "$jobs/exit_contexts-seq" signal $number
        fails_with 4 "signal $number with a handler that leaves"
    done
}

# The line names the cause, not its consequences, even if the launcher sees the cause later: here a shell waits for the rank and
# then sleeps.
of_causes()
{
    for quit in TEST_NO_QUIT_HANDLER=1 TEST_QUIT_CODE=4; do
        # shellcheck disable=SC2016 # for the shell in between
        SETTINGS="$quit GASNET_SUPERNODE_MAXSIZE=1 GASNET_QP_TIMEOUT=8" \
            job 3 sh -c '"$@"; status=$?; [ $status -ne 255 ] || sleep 0.6; exit $status' \
            sh "$jobs/exit_contexts-seq" vanish-among-talkers 255
        fails_with 255 "_exit(255) seen late"
        says '^trunkline.*transport retry counter exceeded' # they knew before
        says '^gasnetrun_ibv: rank 2 (pid [0-9]*) exited with status 255' 1
    done
}

# Codes of ranks that leave because of another's exit do not change that exit's code (item 82).
of_codes()
{
    for maxsize in 0 1; do
        for by in gasnet_exit exit; do
            SETTINGS="GASNET_SUPERNODE_MAXSIZE=$maxsize TEST_QUIT_CODE=4 TEST_QUIT_BY=$by" job 4 "$jobs/exit_contexts-seq" leave 3
            fails_with 3 "$by in SIGQUIT handlers"
            says '^SIGQUIT handler' 3
        done
    done
    SETTINGS="TEST_QUIT_CODE=4 TEST_QUIT_BY=thread" job 4 "$jobs/exit_contexts-par" leave-thread-heeds-quit 3
    fails_with 3 "threads that heed SIGQUIT handlers"
    says '^SIGQUIT handler' 3
}

# A job in which a rank never reached its end must not have status 0.
of_blind_ranks()
{
    words 1 'aborted the job with status 1: not all processes came to the end of the job' 2 leave-among-blind 0 GASNET_EXITTIMEOUT=0.3
    words 7 'aborted the job with status 7: not all processes came to the end of the job' 2 leave-among-blind 7 GASNET_EXITTIMEOUT=0.3
}

# Only its watchdog ends a rank that hangs while it leaves.
of_watchdogs()
{
    words 1 '^trunkline.*functions registered with atexit(), or destructors, did not end' 2 exit-all 0 \
        GASNET_EXITTIMEOUT=0.2 TEST_LATE_ATEXIT=1
    SETTINGS="GASNET_EXITTIMEOUT=0.2" job 1 "$jobs/unresponsive_rank-par" locked
    fails_with 5 locked
    says '^trunkline.*did not leave within the time for it' 1
}

of_the_launcher()
{
    out=/dev/full
    words 74 '^gasnetrun_ibv: cannot write standard output: No space left' 1 leave 0
    out=
    words 1 '^gasnetrun_ibv: TRUNKLINE_SOFTHCA_LIB=/no/such: no such file' 1 leave 0 \
        TRUNKLINE_SOFTHCA_LIB=/no/such GASNET_SOFTHCA=always
}

lane ranks of_ranks
lane watchdogs of_watchdogs of_codes
lane signals of_signals
lane causes of_causes of_blind_ranks
lane launcher of_the_launcher
finish
