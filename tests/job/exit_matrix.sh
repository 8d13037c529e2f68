#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Item 63 of tests/rules.md as a matrix: its 18 scenarios (exit.c) and 7 crashes (exit_contexts.c), by 1, 2, 4 and 8
# ranks, SEQ and PAR, neighbours, the network and both. Each cell checks the exit code, the time, that every other rank is
# notified, and that all output is written; that no process or zombie is left (the watchdog), and no file, also in
# /dev/shm (job).
#
# EXITS=all, make check-long: all 540 cells. 13 scenarios and 7 crashes, each 4 sizes, SEQ and PAR, 3 ways; 5 scenarios of
# threads, 4 sizes, PAR, 3 ways. make check: 100 of them, each scenario and crash at each size, in turns SEQ and PAR (40 and
# 60) and by all three ways (neighbours 38, network 37, both 25); with a sanitizer 42: sizes 2 and 4, crashes 100 to 102 only.
# Says how many cells were run and how many passed.
. "${top_srcdir:?run through make check}/tests/job/common.sh"

all_scenarios="1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 100 101 102 103 104 105 106"
crash_ways=(backtrace fatal abort segv bus fpe ill)
crash_codes=(100 134 134 139 135 136 132)
crash_names=('' SIGABRT SIGABRT SIGSEGV SIGBUS SIGFPE SIGILL)
slack_ms=4000 # start and end of a job on a busy machine
[ "$sanitizer" = no ] || slack_ms=20000

# If no rank polls, ranks are ended after this time-out; otherwise they are notified long before.
blind_timeout=0.4

is_for_threads() { [ "$1" -ge 14 ] && [ "$1" -le 18 ]; }
is_collective() { [[ " 1 2 6 10 13 14 " == *" $1 "* ]]; }
is_among_blind() { [[ " 5 9 15 16 " == *" $1 "* ]]; }

# A sanitizer reports bad memory accesses, and signals like theirs, in its own way.
is_for_sanitizers() { [ "$sanitizer" = no ] || [ "$1" -lt 103 ]; }

output_is_complete()
{
    here=$(grep -o 'rank [0-9]* was here' "$scratch/out" | sort -u | wc -l)
    [ "$here" -eq "$1" ] || failed "output of $here ranks is there, not of $1"
}

# told LEAST: at least so many SIGQUIT handlers ran, none twice.
told()
{
    handlers=$(grep -c '^SIGQUIT handler of rank' "$scratch/err")
    [ "$handlers" -ge "$1" ] || failed "$handlers ranks were told, not $1"
    [ "$(sort "$scratch/err" | uniq -d | grep -c SIGQUIT)" -eq 0 ] || failed "a rank was told twice"
}

bounded()
{
    bound_ms=$((2000 + 20 * job_size))
    is_among_blind "$1" && bound_ms=400
    is_collective "$1" && bound_ms=0
    [ "$took_ms" -le $((bound_ms + 1000 + slack_ms)) ] || failed "took $took_ms ms"
}

scenario()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=$4"
    is_among_blind "$1" && SETTINGS="$SETTINGS GASNET_EXITTIMEOUT=$blind_timeout"
    job "$2" "$jobs/exit-$3" "$1"
    fails_with "$1" "scenario $1"
    output_is_complete "$2"
    if is_collective "$1"; then
        sed -i '/using softhca/d' "$scratch/err"
        says '^gasnetrun_ibv\|^trunkline' 0
    else
        told $(($2 - 1))
    fi
}

# dead RANK SIGNAL NUMBER: library and launcher report once which rank died of which signal; fatal() and a sanitizer have their
# own messages.
dead()
{
    [ "$sanitizer" = no ] || return
    from="\[$1@.*\]"
    [ "$job_size" -gt 1 ] || from= # alone it has no number
    says "^trunkline$from: pid [0-9]* died of $2" 1
    says "rank $1 (pid [0-9]*) was killed by signal $3" 1
    pid=$(sed -n "s/^gasnetrun_ibv: rank $1 (pid \([0-9]*\)).*/\1/p" "$scratch/err")
    says "^trunkline.*: pid $pid died of $2" 1
}

crash()
{
    which=$(($1 - 100))
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=$4 GASNET_BACKTRACE=1 GASNET_BACKTRACE_TYPE=EXECINFO"
    job "$2" "$jobs/exit_contexts-$3" "${crash_ways[which]}" 100
    fails_with "${crash_codes[which]}" "crash $1"
    output_is_complete $(($2 - (which > 0))) # a rank that dies by a signal loses its own output
    says '^\[[0-9]\] .*exit_contexts-.*\[0x'
    [ "${crash_ways[which]}" != fatal ] ||
        says "^\*\*\* FATAL ERROR (proc $(($2 - 1))): in fatal() at .*: rank $(($2 - 1)) has had enough\$" 1
    [ $which -eq 0 ] || dead $(($2 - 1)) ${crash_names[which]} $((crash_codes[which] - 128))
    told $(($2 - 1))
}

# one SCENARIO N MODE MAXSIZE
one()
{
    is_for_sanitizers "$1" || return
    failures_before=$failures
    if [ "$1" -lt 100 ]; then scenario "$@"; else crash "$@"; fi
    bounded "$1"
    says 'JOB_DEADLINE' 0
    [ "$failures" -ne "$failures_before" ] || echo "$*" >>"$scratch/passed"
}

sizes="1 2 4 8"
[ "$sanitizer" = no ] || sizes="2 4" # jobs take five times as long there

# Sizes, modes and ways alternate with different periods, so that each is combined with each.
part()
{
    for s in $all_scenarios; do
        turn=$((s + s / 2))
        for n in $sizes; do
            modes=(seq par)
            is_for_threads "$s" && modes=(par par)
            echo "$s $n ${modes[turn % 2]} $((turn % 3))"
            turn=$((turn + 1))
        done
    done
}

whole()
{
    for s in $all_scenarios; do
        for n in 1 2 4 8; do
            for mode in seq par; do
                is_for_threads "$s" && [ $mode = seq ] && continue
                for maxsize in 0 1 2; do
                    echo "$s $n $mode $maxsize"
                done
            done
        done
    done
}

lane_count=4
in_lane()
{
    while read -r s n mode maxsize; do
        one "$s" "$n" "$mode" "$maxsize"
    done < <(${cells} | awk "NR % $lane_count == $1")
}
first() { in_lane 0; }
second() { in_lane 1; }
third() { in_lane 2; }
fourth() { in_lane 3; }

cells=part
[ "${EXITS:-part}" != all ] || cells=whole
lane first first
lane second second
lane third third
lane fourth fourth
join_lanes
wanted=$($cells | while read -r s _; do is_for_sanitizers "$s" && echo; done | wc -l)
passed=$(cat "$scratch"/*/passed 2>/dev/null | sort -u | wc -l)
echo "$wanted cells, $passed passed"
command=
[ "$passed" -eq "$wanted" ] || failed "$((wanted - passed)) cells did not pass, or were not run"
finish
