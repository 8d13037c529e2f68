# SPDX-License-Identifier: BSD-3-Clause
# Shared by the tests of the launcher; sourced by each. A test says "promise NAME" and then checks; the first check that fails
# prints the actual result and ends the test. Every job has a watchdog and a mark in its environment,
# and after each job nothing with that mark may live and nothing may be left in the session directory.

. "$(dirname "$0")/../signals.sh"
. "$(dirname "$0")/../busy.sh"
: "${top_builddir:=$(pwd)}"
: "${GASNETRUN:=$top_builddir/spawner/gasnetrun_ibv}"
probe=$top_builddir/tests/launcher/pmix_probe
work=$(mktemp -d "${TMPDIR:-/tmp}/launcher-test.XXXXXX") || exit 1
mkdir "$work/session"
GASNET_TMPDIR=$work/session
GASNET_QUIET=1
export GASNET_TMPDIR GASNET_QUIET
unset GASNET_SPAWN_VERBOSE GASNET_SOFTHCA GASNET_KILL_GRACE GASNET_START_TIMEOUT GASNET_IBV_SPAWNER GASNET_SPAWNER
unset GASNET_SSH_SERVERS GASNET_SSH_NODEFILE GASNET_NODEFILE SLURM_JOB_NODELIST PBS_NODEFILE LSB_HOSTS LSB_MCPU_HOSTS PE_HOSTFILE COBALT_NODEFILE
# Under the address sanitizer softhca is preloaded before the sanitizer's own library, which this
# allows; and libpmix leaks a few bytes in every rank, which these tests ignore.
case ${TRUNKLINE_TEST_SANITIZER-} in
*address*)
    ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0:detect_leaks=0
    export ASAN_OPTIONS
    ;;
esac
mark=launcher-test-$$-$(basename "$work")
job_pid=
promise=none
limit=60 # a hang, not a slow machine

cleanup()
{
    status=$?
    trap - EXIT
    mark=[a-z_-]*$mark # also jobs of functions that run aside
    for p in $(marked); do
        kill -KILL "$p" 2>/dev/null
    done
    rm -rf "$work"
    exit $status
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# The processes of our jobs. One grep for all: a loop would take longer than some jobs live.
marked()
{
    grep -las "TRUNKLINE_TEST_MARK=$mark" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\n'
}

promise()
{
    promise=$1
    echo "-- $promise"
}

fail()
{
    echo "FAILED: $promise: $*"
    for f in out err; do
        [ -s "$work/$f" ] && echo "$f:" && head -c 2000 "$work/$f"
    done
    exit 1
}

# seconds since some start, with two decimals
now() { cut -d' ' -f1 /proc/uptime; }

# faster SECONDS SINCE: whether less time has passed
faster()
{
    awk -v limit="$1" -v a="$2" -v b="$(now)" 'BEGIN { exit !(b - a < limit) }'
}

# in_time SECONDS SINCE: whether at most SECONDS have passed, or three times that on a busy machine
in_time()
{
    faster "$1" "$2" || { is_busy && faster "$(awk -v s="$1" 'BEGIN { print 3 * s }')" "$2"; }
}

# A foreign spawner may need up to $settle seconds to end its helper processes.
settle=0
clean()
{
    eventually "$settle" nothing_marked || fail "processes left: $(for p in $(marked); do tr '\0' ' ' <"/proc/$p/cmdline"; done)"
    [ -z "$(ls "$work/session")" ] || fail "left in the session directory: $(ls "$work/session")"
}

# eventually SECONDS COMMAND...: repeats the command until it succeeds. Its variables are no test's: job calls it too.
eventually()
{
    eventually_limit=$1
    eventually_began=$(now)
    shift
    until "$@"; do
        in_time "$eventually_limit" "$eventually_began" || return 1
        sleep 0.02
    done
}

# job ARGS...: runs the launcher to its end, sets $status; files out, err
job()
{
    TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" "$GASNETRUN" "$@" >"$work/out" 2>"$work/err"
    status=$?
    [ $status -ne 124 ] || fail "not finished after $limit s: $*"
    clean
}

# start ARGS...: runs the launcher in the background, sets $job_pid
start()
{
    : >"$work/out"
    oom_before=$(oom_kills)
    TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" "$@" >"$work/out" 2>"$work/err" </dev/null &
    job_pid=$!
}

# finish: waits for the job started last, sets $status
finish()
{
    eventually "$limit" gone "$job_pid" || fail "launcher still running"
    wait "$job_pid" 2>/dev/null
    status=$?
}

gone()
{
    ! kill -0 "$1" 2>/dev/null || grep -qs '^State:.*Z' "/proc/$1/status"
}

status_is() { [ "$status" -eq "$1" ] || fail "status $status, expected $1"; }
err_has() { grep -q -- "$1" "$work/err" || fail "stderr lacks: $1"; }
# err_has_kill PATTERN: a line that ends with it and says who killed, or, if memory ran out for anybody on this host meanwhile, that
# it may have been the kernel
err_has_kill()
{
    grep -q -- "$1: sent by another process\$" "$work/err" ||
        { [ "$(oom_kills)" != "$oom_before" ] && grep -q -- "$1: the host may be out of memory: " "$work/err"; } ||
        fail "stderr lacks: $1: sent by another process"
}
oom_kills() { sed -n 's/^oom_kill //p' /proc/vmstat; }
err_lines() { [ "$(wc -l <"$work/err")" -eq "$1" ] || fail "stderr has $(wc -l <"$work/err") lines, expected $1"; }
out_is() { [ "$(cat "$work/out")" = "$1" ] || fail "stdout is not: $1"; }
out_has() { grep -q -- "$1" "$work/out"; }
out_count() { [ "$(grep -c -- "$1" "$work/out")" -ge "$2" ]; }
session_empty() { [ -z "$(ls "$work/session")" ]; }
session_exists() { [ -n "$(ls "$work/session")" ]; }
nothing_marked() { [ -z "$(marked)" ]; }

# pids of the processes of the job whose name (comm) is $1
named()
{
    for p in $(marked); do
        [ "$(cat "/proc/$p/comm" 2>/dev/null)" = "$1" ] && echo "$p"
    done
}

# pids of the ranks themselves, not of their children
rank_pids()
{
    guard=$(named gasnetrun-guard)
    for p in $(named pmix_probe); do
        grep -qs "^PPid:[[:space:]]*$guard\$" "/proc/$p/status" && echo "$p"
    done
}

# aside NAME: runs a function with its own jobs in the background, because it mostly waits
aside()
{
    (
        mark=$1-$mark
        work=$work/$1
        mkdir -p "$work/session"
        GASNET_TMPDIR=$work/session
        "$1"
    ) >"$work/$1.log" 2>&1 &
    eval "$1_pid=$!"
}

# joined NAME: waits for that function to end
joined()
{
    eval "wait \$$1_pid"
    result=$?
    cat "$work/$1.log"
    [ $result -eq 0 ] || exit 1
}
