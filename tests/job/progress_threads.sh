#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# GASNET_RCV_THREAD answers while the program computes and GASNET_SND_THREAD completes what it sent: over the network, in
# shared memory and in a mix, as often and for as long as the settings allow, in each mode of polling, until the job ends.
. "${top_srcdir:?run through make check}/tests/job/common.sh"

par=$jobs/progress_threads-par
with="GASNET_RCV_THREAD=1"
for_long=30 # seconds: the client goes on until all are answered

# answers N ARGS...: the computing rank answered the others.
answers()
{
    good "$@"
    echo "$command:" $(sed -n 's/.* \(median .*\)/\1/p' "$scratch/out") # 15 to 40 us on an idle machine
}

soon()
{
    answers "$@"
    served 0 '[1-9]'
}

# served CLIENT OTHER: how many questions these threads answered outside of barriers.
served()
{
    grep -q "^served by the client's thread $1[0-9]*, by another $2[0-9]*\$" "$scratch/out" ||
        failed "not $1 and $2: $(grep ^served "$scratch/out")"
}

prints()
{
    grep -qx "$1" "$scratch/out" || failed "'$1' is not in: $(cat "$scratch/out")"
}

# figure WORDS: the number before these words in the report of rank 1's thread.
figure()
{
    sed -n "s/^trunkline\[1@.* thread of .* \([0-9.]*\)${1}.*/\1/p" "$scratch/err"
}

# is_at_most NUMBER LIMIT: numbers that may have a fraction; false if one is empty
is_at_most()
{
    [ -n "$1" ] && [ -n "$2" ] && awk -v is="$1" -v most="$2" 'BEGIN { exit is > most }'
}

at_most()
{
    is_at_most "$1" "$2" || failed "$3: ${1:-nothing}, more than $2"
}

answering()
{
    SETTINGS= answers 2 "$par" ping 0.5 spin
    served 0 0
    SETTINGS="$with" soon 2 "$par" ping $for_long spin
    SETTINGS="$with" soon 2 "$par" ping $for_long sleep
    SETTINGS="$with GASNET_SUPERNODE_MAXSIZE=0" soon 2 "$par" ping $for_long sleep
    SETTINGS="$with GASNET_SUPERNODE_MAXSIZE=2" soon 3 "$par" ping $for_long sleep
    SETTINGS="$with GASNET_RCV_THREAD_IDLE=100000" soon 2 "$par" ping $for_long sleep
}

# If the client polls too, either may be first.
modes()
{
    for mode in serialized unserialized; do
        SETTINGS="$with GASNET_RCV_THREAD_POLL_MODE=$mode" soon 2 "$par" ping $for_long sleep
        SETTINGS="$with GASNET_RCV_THREAD_POLL_MODE=$mode" answers 2 "$par" ping $for_long poll
    done
    SETTINGS="$with GASNET_RCV_THREAD_POLL_MODE=Exclusive" soon 2 "$par" ping $for_long poll
    SETTINGS="$with GASNET_RCV_THREAD_POLL_MODE=shared"
    job 2 "$par" ping 1 poll
    fails_with 2
    says "GASNET_RCV_THREAD_POLL_MODE='shared' is not .*serialized|unserialized|exclusive"
}

# A thread that loses its CPU while it is awake counts as awake, and a wake-up that comes late serves several: of three runs, each
# twice as long as the last, one must keep to the limit, which is above 20 because a slice ends with the handler that runs.
rests()
{
    for seconds in 0.5 1 2; do
        SETTINGS="$verbose GASNET_RCV_THREAD_LOAD=20" good 2 "$par" flood $seconds sleep
        ! is_at_most "$(figure ' % of the time')" 45 || return 0
    done
    failed "awake for $(figure ' % of the time') per cent of the time, of 20, and for more than 45 twice before"
}

completes()
{
    for try in 1 2 3; do
        SETTINGS="GASNET_SND_THREAD=1 GASNET_VERBOSEENV=1" good 2 "$par" puts
        ! is_at_most 10 "$(figure ' wake-ups in')" || return 0
    done
    failed "$(figure ' wake-ups in') wake-ups for 60 completions, and less than 10 twice before"
}

limits()
{
    verbose="$with GASNET_VERBOSEENV=1"
    SETTINGS="$verbose GASNET_RCV_THREAD_RATE=20" good 2 "$par" flood 0.5 poll
    at_most "$(figure ' wake-ups in')" "$(sed -n 's/.* wake-ups in \([0-9.]*\) s .*/\1/p' "$scratch/err" | sort -n | awk 'END { print 20 * $1 + 2 }')" "wake-ups"
    rests
    completes
    for mode in unserialized exclusive; do
        SETTINGS="$with GASNET_SND_THREAD=1 GASNET_SND_THREAD_POLL_MODE=$mode GASNET_SND_THREAD_RATE=1000" good 2 "$par" puts
    done
}

starting()
{
    SETTINGS="$with GASNET_SND_THREAD=1 EXPECT_DEVICE=softhca0" soon 2 "$par" defer $for_long
    [ "$(grep -c "^thread [01]: 'softhca0' role [12]" "$scratch/out")" -eq 4 ] || failed "not two threads on each rank"
    SETTINGS="$with GASNET_SUPERNODE_MAXSIZE=0 EXPECT_DEVICE=shm" soon 2 "$par" defer $for_long
    [ "$(grep -c "^thread 0: 'shm' role 1" "$scratch/out")" -eq 2 ] || failed "not one thread on each rank"
    SETTINGS="$with GASNET_VERBOSEENV=1" good 2 "$par" defer-none
    says 'receive thread of .*: never started' 2
    prints 'hidden 1, drivers none none'
    SETTINGS="$with" good 2 "$jobs/progress_threads-seq" puts
    prints 'hidden 0, drivers 1 1'
    says '^trunkline.*: GASNET_RCV_THREAD=1 has no effect here: only libraries for GASNET_PAR'
    SETTINGS="$with GASNET_QUIET=1 MLX5_SINGLE_THREADED=0" good 2 "$jobs/progress_threads-seq" puts
    says 'GASNET_RCV_THREAD' 0
    prints 'hidden 0, drivers 1 0'
}

ending()
{
    SETTINGS="$with GASNET_SND_THREAD=1 GASNET_RCV_THREAD_POLL_MODE=exclusive"
    for way in exit:7 return:7 abort:134; do
        job 2 "$par" end "${way%:*}"
        fails_with "${way#*:}" "${way%:*}"
        within 20
    done
}

case "$(ls /sys/class/infiniband 2>/dev/null)" in
?*) skip "the names of the devices are those of softhca" ;;
esac
lane answering answering
lane modes modes ending
lane limits limits starting
finish
