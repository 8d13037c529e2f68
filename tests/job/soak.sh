#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs in which any rank ends at any moment, by any cause: killed, stopped (and then another process ends the job), by exit(),
# _exit(),
# abort() or SIGTERM; while it starts, in a barrier, in a flood of messages, among puts and gets, or leaving. The rest ends
# within the bound, with the right status, and leaves nothing. SOAK_RUNS of them (30; make check-long has 1000), by SOAK_SEED,
# which is printed; then how long the ends took.
. "${top_srcdir:?run through make check}/tests/job/common.sh"

runs=${SOAK_RUNS:-30}
seed=${SOAK_SEED:-$(($(date +%s) % 32768))}
phases=(start barrier flood putget exit)
kinds=(killed stopped exit _exit abort terminated)
lane_count=3

timeout=1 grace=1
slack_ms=2000 # what a busy machine may add
[ "$sanitizer" = no ] || slack_ms=15000
bound_ms=$((timeout * 1000 + grace * 1000 + slack_ms))

# No process notices a stopped rank until the user or another rank ends the job.
launcher_of()
{
    ancestor=$1
    while [ -n "$ancestor" ] && [ "$ancestor" -gt 1 ]; do
        grep -q '^Name:.gasnetrun_ibv$' "/proc/$ancestor/status" 2>/dev/null && break
        ancestor=$(sed -n 's/^PPid:\t//p' "/proc/$ancestor/status" 2>/dev/null)
    done
    echo "$ancestor"
}

want_the_end()
{
    sleep 0.05
    ender=$(cat "$dir/ready.$(((victim + 1) % n))" 2>/dev/null)
    if [ $((run % 2)) -eq 0 ] && [ "$phase" != start ] && [ -n "$ender" ]; then
        kill -s RTMIN "$ender"
    else
        kill -s INT "$(launcher_of "$1")"
    fi 2>/dev/null
}

# In the background: waits for the victim, then for the moment.
strike()
{
    while [ ! -e "$dir/ready.$victim" ]; do
        [ ! -e "$dir/over" ] || return
        sleep 0.01
    done
    pid=$(cat "$dir/ready.$victim")
    sleep "$moment"
    [ ! -e "$dir/over" ] || return
    echo "${EPOCHREALTIME/[^0-9]/}" >"$dir/struck"
    case $kind in
    killed) kill -s KILL "$pid" ;;
    stopped) kill -s STOP "$pid" && want_the_end "$pid" ;;
    exit) kill -s USR1 "$pid" ;;
    _exit) kill -s USR2 "$pid" ;;
    abort) kill -s ABRT "$pid" ;;
    terminated) kill -s TERM "$pid" ;;
    esac 2>/dev/null
}

# The lines that the launcher may print. A signal while all ranks leave with 4 may be too late to change that.
is_right()
{
    [ "$phase" = exit ] && [ "$status" -eq 4 ] && return
    case $kind in
    killed) [ "$status" -eq 137 ] ;;
    stopped) [ "$status" -eq 130 ] || [ "$status" -eq 9 ] ;;
    exit | _exit) [ "$status" -eq 3 ] ;;
    abort) [ "$status" -eq 134 ] ;;
    terminated) [ "$status" -eq 143 ] ;;
    esac
}

# Derives all random choices of a run from its number, so that it can be repeated alone: SOAK_ONLY.
draw()
{
    RANDOM=$(((seed * 1000 + run) % 32768))
    n=$((2 + RANDOM % 4)) victim=$((RANDOM % n))
    phase=${phases[RANDOM % 5]} kind=${kinds[RANDOM % 6]}
    moment=0.0$((RANDOM % 10))$((RANDOM % 10))
    mode=seq maxsize=$((RANDOM % 3))
    [ $((RANDOM % 2)) -eq 0 ] || mode=par
}

soak()
{
    run=$1
    draw
    dir=$scratch/soak
    rm -rf "$dir"
    mkdir "$dir"
    chmod 777 "$dir"
    strike &
    SETTINGS="SOAK_DIR=$dir GASNET_SUPERNODE_MAXSIZE=$maxsize GASNET_EXITTIMEOUT=$timeout GASNET_KILL_GRACE=$grace"
    job $n "$jobs/soak-$mode" $phase
    ended=${EPOCHREALTIME/[^0-9]/}
    : >"$dir/over"
    wait $!
    what="run $run of seed $seed: rank $victim of $n $kind $moment s into $phase"
    is_right || failed "$what: status $status"
    if [ ! -e "$dir/struck" ]; then
        [ "$phase" = exit ] || failed "$what: it never came there"
        return # all had left before
    fi
    end_ms=$(((ended - $(cat "$dir/struck")) / 1000))
    [ "$end_ms" -le $bound_ms ] || failed "$what: the end took $end_ms ms"
    [ "$end_ms" -lt 0 ] || echo "$end_ms" >>"$scratch/ends"
}

in_lane()
{
    for ((i = $1; i < runs; i += lane_count)); do
        [ -n "${SOAK_ONLY-}" ] && [ "$i" -ne "$SOAK_ONLY" ] || soak "$i"
    done
}
first() { in_lane 0; }
second() { in_lane 1; }
third() { in_lane 2; }

echo "seed $seed"
lane first first
lane second second
lane third third
join_lanes
command=
sort -n "$scratch"/*/ends | awk '{ at[NR] = $1 } END {
    printf "%d ends, ms: min %d, median %d, 90 %% %d, max %d\n", NR, at[1], at[int((NR + 1) / 2)], at[int(NR * 0.9)], at[NR] }'
finish
