#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every way to the end of a job: the right exit code, in bounded time, SIGQUIT handlers on the ranks that are left behind, and
# nothing left running (the watchdog sees to that). Scenarios are those of exit.c.
. "${top_srcdir:?run through make check}/tests/job/common.sh"

# ends N PROGRAM SCENARIO [CODE]
ends()
{
    job "$1" "$2" "$3"
    fails_with "${4:-$3}" "scenario $3"
    within 10
    [ "$(grep -c 'JOB_DEADLINE' "$scratch/err")" -eq 0 ] || failed "scenario $3: a rank stayed until its own deadline"
}

# The ranks that did not ask for it were told: their handlers ran.
others_are_told()
{
    told=$(grep -c '^SIGQUIT handler of rank [1-9]' "$scratch/err")
    [ "$told" -ge "$1" ] || failed "$told ranks were told, not $1"
}

# Output that was not flushed before gasnet_exit() is there; atexit functions were not run by it.
leaves_cleanly()
{
    grep -q 'rank [0-9]* leaves' "$scratch/out" || failed "the last output is lost"
    says 'atexit function ran' 0
}

seq=$jobs/exit-seq
par=$jobs/exit-par

item_63_all_leave()
{
    for n in 1 3; do
        for scenario in 1 2 6 12 13 19 24 30; do
            ends $n "$seq" $scenario
        done
    done
    for scenario in 1 3 5 10 11 12; do
        ends 3 "$seq" $scenario
        leaves_cleanly
    done
    # Returning from main runs what was registered with atexit(), also before start-up, on every rank.
    ends 3 "$seq" 2
    says 'atexit function ran' 3
}

item_63_one_leaves()
{
    for scenario in 3 5 8 9 11 25; do
        ends 3 "$seq" $scenario
        [ $scenario -eq 11 ] || others_are_told 2
    done
    ends 3 "$seq" 4
    ends 3 "$seq" 7
    others_are_told 2
    ends 3 "$seq" 23
    ends 3 "$seq" 26 1
    ends 3 "$seq" 20 137
    others_are_told 2
    if [ "$sanitizer" = no ]; then # a sanitizer has its own word on bad memory accesses
        ends 3 "$seq" 21 139
        says 'died of SIGSEGV' 1
    fi
    ends 3 "$seq" 22 134
    ends 8 "$seq" 3
    others_are_told 7
}

# All scenarios of the list in the other mode as well, and those that need threads.
item_63_with_threads()
{
    for scenario in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do
        ends 2 "$par" $scenario
    done
    for scenario in 14 15 18; do
        ends 4 "$par" $scenario
    done
    ends 2 "$par" 20 137
}

lane all item_63_all_leave
lane one item_63_one_leaves
lane threads item_63_with_threads
finish
