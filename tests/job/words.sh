#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# No status but 0 without a line that says who and why, unless a program chose it itself: a table of all ways that launcher
# and library have to one.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_QUIET=1

# words STATUS PATTERN N WAY CODE [NAME=VALUE...]: that pattern is said, once or by every rank.
words()
{
    SETTINGS="TEST_NO_QUIT_HANDLER=1 ${*:6}" job "$3" "$jobs/leave-seq" "$4" "$5"
    fails_with "$1" "$4"
    said=$(grep -c -e "$2" "$scratch/err")
    [ "$said" -ge 1 ] && [ "$said" -le "$3" ] || failed "$4: '$2' was said $said times"
}

# A program's own status is its own word.
its_own()
{
    SETTINGS="TEST_NO_QUIT_HANDLER=1" job "$1" "$jobs/leave-seq" "$2" 7
    fails_with 7 "$2"
    sed -i '/using softhca/d' "$scratch/err"
    says '^gasnetrun_ibv\|^trunkline' 0
}

of_ranks()
{
    its_own 1 leave
    its_own 3 leave
    its_own 3 exit-all
    words 3 '^gasnetrun_ibv: rank . (pid [0-9]*) exited with status 3' 1 _exit 3
    words 3 '^gasnetrun_ibv: rank . (pid [0-9]*) exited with status 3' 2 _exit-all 3
    words 1 '^gasnetrun_ibv: rank 1 (pid [0-9]*) exited with status 0 but without PMIx_Finalize' 2 _exit 0
    words 137 '^gasnetrun_ibv: rank 1 (pid [0-9]*) was killed by signal 9' 2 kill 0
    words 134 '^trunkline.*died of SIGABRT' 2 abort 0
    words 134 'FATAL ERROR (proc 1)' 2 fatal 0
    words 1 '^gasnetrun_ibv: rank 1 (pid [0-9]*) aborted the job with status 1: ended by a signal' 2 sigint 0
    words 1 '^gasnetrun_ibv: rank 0 (pid [0-9]*) exited with status 1' 1 sigterm-all 0
    words 1 '^gasnetrun_ibv: rank . (pid [0-9]*) exited with status 1' 2 sigterm-all 0
}

# Nothing but its watchdog ends a rank that hangs while it leaves.
of_watchdogs()
{
    words 1 '^trunkline.*functions registered with atexit(), or destructors, did not end' 2 exit-all 0 \
        GASNET_EXITTIMEOUT=0.2 TEST_LATE_ATEXIT=1
    SETTINGS="GASNET_EXITTIMEOUT=0.2" job 1 "$jobs/stuck-par" locked
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
lane watchdogs of_watchdogs
lane launcher of_the_launcher
finish
