# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Shared by the scripts of tests/job and tests/demo; sourced, not run. `job` runs a program as a job under the watchdog;
# `passes`, `fails_with` and the others look at what it did. Scratch files are in $scratch, removed at the end.

set -u
: "${top_builddir:?run through make check}" "${top_srcdir:?}" "${GASNETRUN:?}"
. "$top_srcdir/tests/signals.sh"
. "$top_srcdir/tests/busy.sh"
jobs=$top_builddir/tests/job
sanitizer=${TRUNKLINE_TEST_SANITIZER:-no}
watchdog=$jobs/watchdog
failures=0
limit=${TEST_LIMIT:-100} # seconds for one job: a hundred times the slowest one on an idle machine
command= # what ran last

scratch=$(mktemp -d "${TMPDIR:-/tmp}/trunkline-test-XXXXXX") || exit 1
chmod 755 "$scratch"
trap 'rm -rf "$scratch"' EXIT

# is_cheap N: true in the plain tree, and in a sanitizer's tree if N ranks are few: there each rank takes seconds of a CPU,
# and larger jobs show nothing new.
is_cheap()
{
    [ "$sanitizer" = no ] || [ "$1" -le 5 ]
}

# every N: true for one in N calls of the calling function, beginning with the first; in the plain tree for all. For many similar
# cases.
declare -A asked
every()
{
    local who=${FUNCNAME[1]}
    asked[$who]=$((${asked[$who]:-0} + 1))
    [ "$sanitizer" = no ] || [ $((asked[$who] % $1)) -eq $((1 % $1)) ]
}
trap 'exit 1' INT TERM HUP

skip()
{
    echo "skipped: $*"
    exit 77
}

failed()
{
    echo "FAILED: $*"
    [ -z "$command" ] || echo "    command: $command"
    echo "    status ${status:-?}; standard error:"
    if grep -qs 'JOB_DEADLINE passed' "$scratch/err" || [ "${status:-0}" = 124 ]; then
        stacks <"$scratch/err"
    elif [ -s "$scratch/err" ]; then
        tail -40 "$scratch/err"
    fi | sed 's/^/    | /'
    failures=$((failures + 1))
}

# A job that hangs is reported with the stacks of all its threads, one line each, so that they fit at the end of a long log.
stacks()
{
    awk '
        function close_line() { if (open) print ""; open = 0 }
        match($0, /^(\[[0-9]+\] )*#[0-9]+ +/) {
            first = $0 ~ /^(\[[0-9]+\] )*#0 /
            frame = substr($0, RLENGTH + 1)
            sub(/^0x[0-9a-f]+ in /, "", frame)
            place = frame ~ / at [^ ]*:[0-9]+$/ ? frame : ""
            sub(/^.*[\/ ]/, " ", place)
            if (frame !~ /^</) sub(/ .*/, "", frame)
            if (first) { close_line(); printf "    stack: %s%s", frame, place } else printf " < %s%s", frame, place
            open = 1
            next
        }
        { close_line(); print }
        END { close_line() }' | tail -120
}

# lane NAME FUNCTION...: runs functions in the background, with scratch files of their own; finish waits for all lanes and
# shows what failed in them. For scripts with many short jobs, most of whose time is waiting.
lanes=
lane()
{
    (
        trap - EXIT INT QUIT # in the background the shell ignores the last two, and ranks would inherit that
        scratch=$scratch/$1
        mkdir "$scratch" && chmod 755 "$scratch" || exit 1
        shift
        for function; do
            $function
        done
        [ "$failures" -eq 0 ]
    ) >"$scratch/$1.log" 2>&1 &
    lanes="$lanes $!:$1"
}

join_lanes()
{
    for one in $lanes; do
        wait "${one%%:*}" || failures=$((failures + 1))
        cat "$scratch/${one#*:}.log"
    done
    lanes=
}

finish()
{
    join_lanes
    [ "$failures" -eq 0 ] && exit 0
    echo "$failures failure(s)"
    exit 1
}

# job N PROGRAM [ARGS...]: sets status, took (seconds) and took_ms; output in $scratch/out (or $out) and $scratch/err. Every rank adds a line to
# $scratch/stats when it ends, if it runs over softhca; it must leave no file. SETTINGS holds NAME=VALUE words for its environment, RUN options of the
# launcher.
SETTINGS=
RUN=
out=
job()
{
    job_size=$1
    shift
    command="$SETTINGS gasnetrun_ibv $RUN -n $job_size $*"
    [ -e "$scratch/stats" ] || { : >"$scratch/stats" && chmod 666 "$scratch/stats"; } # for ranks of another user too
    : >"$scratch/stats"
    mkdir "$scratch/tmp"
    job_began=${EPOCHREALTIME/[^0-9]/}
    # shellcheck disable=SC2086 # SETTINGS and RUN are lists of words
    env TMPDIR="$scratch/tmp" SOFTHCA_STATS="$scratch/stats" JOB_DEADLINE=$((limit - 10)) $SETTINGS \
        "$watchdog" "$limit" "$GASNETRUN" $RUN -n "$job_size" "$@" </dev/null >"${out:-$scratch/out}" 2>"$scratch/err"
    status=$?
    job_ended=${EPOCHREALTIME/[^0-9]/}
    took_ms=$(((job_ended - job_began) / 1000))
    took=$(((took_ms + 500) / 1000))
    nothing_is_left
}

# The job had its own directory for temporary files, so a file with our name in /dev/shm must not exist. This and
# no_rnr() start no process for it, because there are more than a thousand jobs.
nothing_is_left()
{
    rmdir "$scratch/tmp" 2>/dev/null || {
        failed "left behind: $(find "$scratch/tmp" -mindepth 1 | head -5 | tr '\n' ' ')"
        rm -rf "$scratch/tmp"
    }
    existing /dev/shm/*[tT][rR][uU][nN][kK][lL][iI][nN][eE]* /dev/shm/*[gG][aA][sS][nN][eE][tT]* \
        /dev/shm/*[sS][oO][fF][tT][hH][cC][aA]* || failed "left behind: $left"
}

# existing FILE...: sets left to those that exist, which patterns without a match do not; true if there are none
existing()
{
    local file
    left=
    for file; do
        [ ! -e "$file" ] && [ ! -L "$file" ] || left="$left $file"
    done
    [ -z "$left" ]
}

# The last job succeeded, and the device counted no RNR event.
passes()
{
    [ "$status" -eq 0 ] || {
        failed "${1:-job}: status $status, not 0"
        return 1
    }
    no_rnr "${1:-job}"
}

# good N PROGRAM [ARGS...]: a job that must pass.
good()
{
    job "$@"
    passes "$2"
}

# needs_softhca: the last job's ranks did not all share memory, and this machine has no port.
needs_softhca()
{
    softhca_nbrhd=${GASNET_SUPERNODE_MAXSIZE:-0}
    softhca_wish=${GASNET_SOFTHCA:-auto}
    for softhca_word in $SETTINGS; do
        case $softhca_word in
        GASNET_SUPERNODE_MAXSIZE=*) softhca_nbrhd=${softhca_word#*=} ;;
        GASNET_SOFTHCA=*) softhca_wish=${softhca_word#*=} ;;
        esac
    done
    existing /sys/class/infiniband/* && [ "$softhca_wish" != never ] && [ "$softhca_nbrhd" != 0 ] && [ "$softhca_nbrhd" -lt "$job_size" ]
}

# A job of one rank, or on a real device, has no counts; otherwise every rank must have left its own.
no_rnr()
{
    local line rnr=
    rnr_lines=0
    while IFS= read -r line; do
        case $line in 'softhca: '*) rnr_lines=$((rnr_lines + 1)) ;; *) continue ;; esac
        case $line in *' rnr 0 '*) ;; *) rnr=$rnr$line$'\n' ;; esac
    done <"$scratch/stats"
    if needs_softhca && [ "$rnr_lines" -lt "$job_size" ]; then
        failed "$1: $rnr_lines ranks counted RNR events, not $job_size"
        return 1
    fi
    if [ -n "$rnr" ]; then
        echo "$rnr"
        failed "$1: a receiver was not ready"
        return 1
    fi
}

fails_with()
{
    [ "$status" -eq "$1" ] || failed "${2:-job}: status $status, not $1"
}

# by_rank NAME SETTING...: makes $scratch/NAME, a wrapper that sets the N-th SETTING for rank N.
by_rank()
{
    local name=$scratch/$1 rank=0 setting
    shift
    echo '#!/bin/sh' >"$name"
    for setting; do
        echo "[ \$PMIX_RANK -ne $rank ] || export $setting" >>"$name"
        rank=$((rank + 1))
    done
    echo 'exec "$@"' >>"$name"
    chmod 755 "$name"
}

# says PATTERN [TIMES]: that many lines of standard error match (default: at least one).
says()
{
    said=$(grep -c -e "$1" "$scratch/err")
    if [ $# -gt 1 ]; then
        [ "$said" -eq "$2" ] || failed "'$1' was said $said times, not $2"
    else
        [ "$said" -gt 0 ] || failed "'$1' was not said"
    fi
}

# within SECONDS: the last job took no longer.
within()
{
    within_limit=$1
    # A sanitizer's builds start and end slowly.
    [ "$sanitizer" = no ] || within_limit=$(($1 * 3))
    [ "$took" -gt "$within_limit" ] || return 0
    ! is_busy || within_limit=$((within_limit * 3))
    [ "$took" -le "$within_limit" ] || failed "took $took s, more than $within_limit"
}
