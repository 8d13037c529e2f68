#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A rank that dies without notice, at any place, ends the job with a line that names it, even if the launcher does not
# see the death: here a shell between launcher and rank survives.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=0
kill=$jobs/kill-seq

# Switches off warnings of a busy machine, which would count here. The watchdog limits the time.
export GASNET_QUIET=1

# unseen N RANK COMMAND...: the launcher does not see the death of that rank.
unseen()
{
    unseen_size=$1 hidden=$2
    shift 2
    # shellcheck disable=SC2016 # for the shell in between
    job "$unseen_size" sh -c '"$@"; status=$?; [ "$PMIX_RANK" != '"$hidden"' ] || sleep 60; exit $status' sh "$@"
}

noticed()
{
    fails_with 1 "$1"
    says "^trunkline.*neighbour rank $2 (.*, pid [0-9]*) died: $3" 1
    says '^trunkline' 1
}

# everywhere N PLACES...: dies in each of them.
everywhere()
{
    everywhere_size=$1
    shift
    for place in "$@"; do
        unseen "$everywhere_size" 1 "$kill" "$place"
        noticed "$place" 1 'it was killed'
    done
}

of_two() { everywhere 2 slot put long barrier asleep asked poll busy _exit; }
of_eight() { everywhere 8 slot put barrier asleep asked; }
of_many() { everywhere 64 slot barrier; }

with_threads()
{
    kill=$jobs/kill-par
    everywhere 3 slot barrier asleep
}

# A rank that reported its crash itself is not reported again.
told_already()
{
    unseen 3 1 "$kill" fault
    fails_with 1 "a fault"
    says '^trunkline.1@.*died of SIGFPE' 1
    says '^trunkline' 1
}

# Nor is a rank that left in order; the next one is watched.
in_order()
{
    SETTINGS="GASNET_CATCH_EXIT=0" good 3 "$kill" left
    says '^trunkline' 0
    SETTINGS="GASNET_CATCH_EXIT=0" unseen 3 2 "$kill" behind
    noticed "behind one that left" 2 'it was killed'
}

# Only the launcher reports a death that it saw, unless it was slow.
seen()
{
    for try in 1 2 3; do
        job 4 "$kill" busy
            [ "$(grep -c '^trunkline' "$scratch/err")" -ne 0 ] || break
    done
    fails_with 137 "busy"
    says 'rank 1 (pid [0-9]*) was killed by signal 9' 1
    says '^trunkline' 0
}

# Without pidfds.
denied()
{
    unseen 3 1 "$jobs/deny_syscalls" pidfd_open -- "$kill" busy
    if [ "$status" -eq 77 ]; then
        echo "not tried: filters for system calls are not allowed"
    else
        noticed "without pidfds" 1 'it was killed'
    fi
}

# Its daemons outlive the command for a moment, so it runs under a time limit instead of the watchdog.
foreign_launcher()
{
    command -v mpirun >/dev/null || {
        echo "not tried: mpirun is not there (Debian package openmpi-bin)"
        return
    }
    mkdir "$scratch/mpi"
    root=
    [ "$(id -u)" -ne 0 ] || root=--allow-run-as-root
    for place in slot busy; do
        command="mpirun -n 3 kill-seq $place"
        # shellcheck disable=SC2016,SC2086 # for the shell in between; may be empty
        TMPDIR=$scratch/mpi timeout -k 5 "$limit" mpirun $root --oversubscribe -n 3 \
            sh -c '"$@"; status=$?; [ "$PMIX_RANK" != 1 ] || sleep 60; exit $status' sh "$kill" $place \
            </dev/null >"$scratch/out" 2>"$scratch/err"
        status=$?
        [ "$status" -ne 0 ] && [ "$status" -lt 124 ] || failed "$command: status $status"
        says '^trunkline.*neighbour rank 1 (.*, pid [0-9]*) died: it was killed' 1
    done
}

lane two of_two
lane eight of_eight seen
lane many of_many in_order
lane others with_threads told_already denied foreign_launcher
finish
