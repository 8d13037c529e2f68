#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Leaving from signal handlers, from atexit(), from several threads at once, and dying: items 64 to 69 of tests/rules.md, and the
# one crash of item 63 that exit_matrix.sh does not have. WAY is one of exit_contexts.c's; the last rank leaves, or all do.
. "${top_srcdir:?run through make check}/tests/job/common.sh"

# leaves N WAY CODE [STATUS]: in time, with that status, without a line from launcher or library, and with all the output of
# the ranks that were alive to write it.
leaves()
{
    job "$1" "$program" "$2" "$3"
    fails_with "${4:-$3}" "$2"
    within 10
    says 'JOB_DEADLINE' 0
}

# SIGQUIT handlers ran once on each rank that did not call exit, and on no rank that did.
told()
{
    says '^SIGQUIT handler of rank' "$1"
    [ "$(sort "$scratch/err" | uniq -d | grep -c SIGQUIT)" -eq 0 ] || failed "a rank was told twice"
}

printed()
{
    [ "$(grep -o 'was here' "$scratch/out" | wc -l)" -eq "$1" ] || failed "the output of some rank is lost"
}

# No rank printed a message.
quietly()
{
    sed -i '/using softhca/d' "$scratch/err"
    says '^gasnetrun_ibv\|^trunkline' 0
}

# One rank exits, two are notified, three print.
one_of_three()
{
    leaves 3 "$1" "$2"
    told 2
    printed 3
}

item_64_from_a_signal_handler()
{
    for way in alarm-poll alarm-handler alarm-hsl alarm-memory alarm-print alarm-exit alarm-abort alarm-talk raise; do
        one_of_three $way 64
        says 'atexit function' 0
    done
    one_of_three alarm-poll 0
}

item_64_from_signal_handlers_of_all()
{
    for code in 0 64; do
        leaves 3 alarm-all $code
        quietly
        leaves 1 alarm-poll $code
    done
    for victim in 0 2; do
        SETTINGS=VICTIM=$victim RUN=-v leaves 3 raise-among-leaving 64 # they leave in order
        told 0
        says 'aborted the job' 0
    done
    SETTINGS=
    leaves 3 early-alarm-poll 64
    told 2
}

# The code of the rank that leaves in a handler counts, even if it is not the largest: all ranks agree on it.
item_64_the_code_counts()
{
    for shape in 0:3 0:12 2:4 1:3; do
        for victim in 0 1 2 3; do
            n=${shape#*:}
            [ $victim -lt $n ] || continue
            SETTINGS="VICTIM=$victim GASNET_SUPERNODE_MAXSIZE=${shape%:*}"
            # shellcheck disable=SC2016 # for the shell in between
            job $n sh -c '"$@"; status=$?; echo "status $status" >&2; exit $status' sh "$program" raise-with-own-codes 64
            fails_with $((63 + n)) "$victim of $n"
            within 10
            says 'SIGQUIT handler' 0
            says "^status $((63 + n))$" "$n"
        done
    done
    SETTINGS=
}

# Also if others are notified late, because that rank passes no notice on along the tree of leaders.
item_64_the_larger_code_counts()
{
    for victim in 1 5 7; do
        SETTINGS="VICTIM=$victim GASNET_SUPERNODE_MAXSIZE=1" leaves 12 raise-among-pollers 64 65
    done
    SETTINGS=
}

# The others do not wait for a rank that ended alone.
one_has_left_before()
{
    for maxsize in 0 1 2; do
        SETTINGS="GASNET_CATCH_EXIT=0 GASNET_EXITTIMEOUT=60 GASNET_SUPERNODE_MAXSIZE=$maxsize" leaves 4 behind-one-that-left 64
        told 2
        printed 4
        quietly
    done
    SETTINGS=
}

item_64_from_atexit()
{
    one_of_three atexit 65
    leaves 3 atexit-all 65
    leaves 3 atexit-all 0
    told 0
    quietly
}

# All have left with 0 when one exits with a status: the others have time to end.
item_64_late_status()
{
    for hosts in "" "-H =a:1,=b:2" "-H =a:2,=b:1"; do
        RUN=$hosts SETTINGS=TEST_LATE_STATUS=3 leaves 3 exit-all 0 3
        says '^late end of rank' 2
    done
    RUN="" SETTINGS=
}

# Exit notices come to a rank that is leaving.
item_64_again_while_leaving()
{
    leaves 3 messages-all 64
    leaves 3 messages-all 0
    quietly
}

item_64_from_threads_at_once()
{
    one_of_three threads-leave 64
    for code in 0 64; do
        leaves 3 threads-leave-all $code
        quietly
    done
    one_of_three threads-talk 64 # and a signal comes to one of them
}

item_65_sigquit_handlers_run()
{
    one_of_three leave 65
    leaves 8 leave 65
    told 7
    leaves 3 leave-all 65
    told 0
    printed 3
    quietly
    SETTINGS=TEST_NO_QUIT_HANDLER=1 leaves 3 leave 65
    told 0
    printed 3
    SETTINGS=
}

item_66_threads_do_not_keep_a_process()
{
    one_of_three threads-stay 66
    leaves 3 threads-stay-all 66
    told 0
    quietly
}

item_67_a_rank_is_killed()
{
    leaves 3 kill 0 137
    told 2
    says 'rank 2 (pid [0-9]*) was killed by signal 9' 1
    leaves 8 kill 0 137
    told 7
}

item_68_a_rank_calls__exit()
{
    leaves 3 _exit 68
    told 2
    leaves 3 _exit 0 1
    says 'rank 2 .* without PMIx_Finalize' 1
    leaves 3 _exit-all 68
}

item_69_between_init_and_attach()
{
    leaves 3 early-leave 69
    told 2
    printed 3
    leaves 3 early-leave-all 69
    told 0
    leaves 3 early-kill 69 137
}

# The other crashes: exit_matrix.sh
item_63_a_stack_overflows()
{
    [ "$sanitizer" = no ] || return # which reports it in its own way
    SETTINGS="GASNET_BACKTRACE=1 GASNET_BACKTRACE_TYPE=EXECINFO" leaves 2 overflow 0 139
    SETTINGS=
    told 1
    says '^trunkline\[1@.*died of SIGSEGV' 1
}

# Two lanes for each mode: most of the time is waiting.
from_signals="item_64_from_a_signal_handler item_64_from_signal_handlers_of_all item_64_from_atexit item_64_the_code_counts"
other_ways="item_63_a_stack_overflows item_64_again_while_leaving item_64_late_status item_65_sigquit_handlers_run item_67_a_rank_is_killed
    item_68_a_rank_calls__exit item_69_between_init_and_attach one_has_left_before"
# shellcheck disable=SC2086 # lists
both_lanes()
{
    lane "$1-signals" $from_signals item_64_the_larger_code_counts
    lane "$1" $other_ways
}
program=$jobs/exit_contexts-seq
both_lanes seq
program=$jobs/exit_contexts-par
both_lanes par
lane threads item_64_from_threads_at_once item_66_threads_do_not_keep_a_process
finish
