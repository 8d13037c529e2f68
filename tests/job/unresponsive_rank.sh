#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A rank leaves while another is stopped, spins, takes no signal, or prints into a pipe without reader; and the launcher is killed
# meanwhile. Everything ends within the bound in README, and nothing is left (the watchdog checks).
. "${top_srcdir:?run through make check}/tests/job/common.sh"

# The bound: the time of an exit, then that to kill ranks that do not obey SIGTERM. 3 s more if output can't be flushed.
timeout=0.7 grace=0.6
bound_ms=$((700 + 600))
flush_ms=3000
slack_ms=1500 # of a busy machine
[ "$sanitizer" = no ] || slack_ms=6000

# stuck N PROGRAM WAY
stuck()
{
    SETTINGS="GASNET_EXITTIMEOUT=$timeout GASNET_KILL_GRACE=$grace" job "$@"
    says 'JOB_DEADLINE' 0
}

# Counted from when rank 0 leaves or kills the launcher: output of a killed launcher may be lost.
ended_in()
{
    began=$(sed -n 's/^at //p' "$scratch/err" | head -1)
    took_ms=$(((job_ended - ${began:-$job_began}) / 1000))
    [ "$took_ms" -le $(($1 + slack_ms)) ]
}

# bounded BOUND STATUS N PROGRAM WAY: tries three times, because a busy machine may be late once.
bounded()
{
    for _ in 1 2 3; do
        stuck "${@:3}"
        fails_with "$2" "$5"
        ended_in "$1" && return
    done
    failed "$5: took $took_ms ms, more than $1 and $slack_ms"
}

# While a rank is stuck the job can't end before the time-out, and a rank that ignores signals is killed.
ends_by_force()
{
    for way in stopped spinning deaf; do
        bounded $bound_ms 5 "$1" "$2" $way
        [ "$took_ms" -ge 700 ] || failed "$way: over before the time-out, $took_ms ms"
    done
}

launcher_dies()
{
    for way in waiting stopped deaf leaving; do
        bounded $bound_ms 137 "$1" "$2" launcher-$way
    done
}

is_running() { [ -e "/proc/$1" ] && ! grep -q '^State:.[ZX]' "/proc/$1/status" 2>/dev/null; }

any_runs()
{
    for pid in $(sed -n 's/^pid //p' "$scratch/err"); do
        is_running "$pid" && return 0
    done
    return 1
}

# Reads the output only when all ranks have started and ended, and prints after how many ms.
late_reader()
{
    reader_began=${EPOCHREALTIME/[^0-9]/}
    until [ "$(grep -c '^pid ' "$scratch/err")" -eq "$1" ]; do
        sleep 0.02
    done
    while any_runs; do
        sleep 0.02
    done
    echo $(((${EPOCHREALTIME/[^0-9]/} - reader_began) / 1000)) >"$scratch/gone_ms"
    timeout 20 cat <"$scratch/fifo" >/dev/null
}

# The launcher keeps what was printed for a reader that comes late; ranks are gone long before.
nobody_reads()
{
    for way in printing flushing; do
        mkfifo "$scratch/fifo"
        : >"$scratch/err"
        exec 9<>"$scratch/fifo"
        late_reader "$1" 9<&- &
        out=$scratch/fifo stuck "$1" "$2" $way
        exec 9<&-
        wait $!
        fails_with 5 $way
        gone_ms=$(cat "$scratch/gone_ms")
        [ "$gone_ms" -le $((bound_ms + flush_ms + slack_ms)) ] || failed "$way: ranks were there for $gone_ms ms"
        rm "$scratch/fifo"
    done
}

# A lock that is never released does not delay a rank longer than that.
keeps_a_lock()
{
    bounded $((bound_ms + flush_ms)) 5 2 "$jobs/unresponsive_rank-par" locked
}

shared() { GASNET_SUPERNODE_MAXSIZE=0 ends_by_force 3 "$jobs/unresponsive_rank-seq"; }
verbs() { GASNET_SUPERNODE_MAXSIZE=1 ends_by_force 2 "$jobs/unresponsive_rank-par"; }
mixed() { GASNET_SUPERNODE_MAXSIZE=2 ends_by_force 4 "$jobs/unresponsive_rank-seq"; }
launcher_of_shared() { GASNET_SUPERNODE_MAXSIZE=0 launcher_dies 4 "$jobs/unresponsive_rank-par"; }
launcher_of_verbs() { GASNET_SUPERNODE_MAXSIZE=1 launcher_dies 2 "$jobs/unresponsive_rank-seq"; }
unread() { GASNET_SUPERNODE_MAXSIZE=0 nobody_reads 3 "$jobs/unresponsive_rank-seq"; }

lane unread unread
lane shared shared
lane verbs verbs
lane mixed mixed
lane lock keeps_a_lock
lane launcher launcher_of_shared launcher_of_verbs
finish
