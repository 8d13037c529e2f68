#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Causes of the end of a job: the right exit code, in bounded time, SIGQUIT handlers on the ranks that are left behind, and
# nothing left running (the watchdog sees to that). Scenarios are those of exit.c; exit_matrix.sh has those of item 63 by sizes,
# modes and ways to peers.
. "${top_srcdir:?run through make check}/tests/job/common.sh"

# ends N PROGRAM SCENARIO [CODE]
ends()
{
    job "$1" "$2" "$3"
    fails_with "${4:-$3}" "scenario $3"
    within 10
    [ "$(grep -c 'JOB_DEADLINE' "$scratch/err")" -eq 0 ] || failed "scenario $3: a rank stayed until its own deadline"
}

# The ranks that did not call exit were notified: their SIGQUIT handlers ran.
others_are_told()
{
    told=$(grep -c '^SIGQUIT handler of rank [1-9]' "$scratch/err")
    [ "$told" -ge "$1" ] || failed "$told ranks were told, not $1"
}

# gasnet_exit() writes unflushed output; it does not run atexit functions.
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
        for scenario in 19 24 30; do
            ends $n "$seq" $scenario
        done
    done
    for scenario in 1 3 10 11 12; do
        ends 3 "$seq" $scenario
        leaves_cleanly
    done
    # Before start-up there is no job to leave: for example after a usage error of a client.
    ends 3 "$seq" 34
    leaves_cleanly
    # Returning from main runs what was registered with atexit(), also before start-up, on every rank.
    ends 3 "$seq" 2
    says 'atexit function ran' 3
}

item_63_one_leaves()
{
    for scenario in 8 25; do
        ends 3 "$seq" $scenario
        others_are_told 2
    done
    ends 3 "$seq" 23
    ends 3 "$seq" 26 143
    ends 3 "$seq" 20 137
    ends 2 "$par" 20 137
    others_are_told 1
    if [ "$sanitizer" = no ]; then # a sanitizer reports bad memory accesses in its own way
        ends 3 "$seq" 21 139
        says 'died of SIGSEGV' 1
    fi
    ends 3 "$seq" 22 134
}

# Three ranks: not a power of two.
item_63_with_threads()
{
    for scenario in 14 17 18; do
        ends 3 "$par" $scenario
    done
}

# If ranks give different codes the job has the largest one, over each transport.
one_code_for_all()
{
    export GASNET_SUPERNODE_MAXSIZE
    for shape in 1:2 1:5 0:7 2:5 3:8 0:12; do
        GASNET_SUPERNODE_MAXSIZE=${shape%:*} n=${shape#*:}
        for scenario in 31 32; do
            # If the machine delays a rank for longer than the grace, handlers run; that must not happen each time.
            for try in 1 2 3 4; do
                # shellcheck disable=SC2016 # for the shell in between
                job $n sh -c '"$@"; echo "status $?" >&2' sh "$seq" $scenario
                [ $try -lt 4 ] && grep -q 'SIGQUIT handler' "$scratch/err" || break
            done
            says "^status $n$" $n
            says 'SIGQUIT handler' 0
            within 10
        done
    done
    says 'atexit function ran' $n # of the last scenario, which leaves by exit()
}

# Rank 1 was the first rank to be notified, or to return.
rank_1_came_first()
{
    grep -e '^SIGQUIT' -e 'is back' "$scratch/err" | head -1 | grep -q 'rank 1$'
}

# Rank 0, which elects the rank that notifies the others, does not answer: the others are notified nevertheless, and
# none is killed.
rank_0_is_away()
{
    for maxsize in 0 1; do
        # It does not poll for a second. A busy machine may run no other rank in this second, but not each time.
        for _ in 1 2 3 4; do
            SETTINGS="GASNET_SUPERNODE_MAXSIZE=$maxsize" ends 3 "$seq" 33
            ! rank_1_came_first || break
        done
        says '^SIGQUIT handler of rank' 2
        rank_1_came_first || failed "rank 1 was not told before rank 0 was back"
        sed -i '/using softhca/d' "$scratch/err"
        says '^gasnetrun_ibv\|^trunkline' 0
    done
    SETTINGS=
}

lane all item_63_all_leave
lane one item_63_one_leaves
lane threads item_63_with_threads
lane codes one_code_for_all
lane away rank_0_is_away
finish
