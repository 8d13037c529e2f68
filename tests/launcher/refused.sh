#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Containers whose seccomp filters refuse system calls: ranks start all the same, as elsewhere.
. "$(dirname "$0")/lib.sh"

deny=$top_builddir/tests/job/deny_syscalls
"$deny" -- true
if [ $? -eq 77 ]; then
    echo "SKIPPED: filters of system calls are not allowed here"
    exit 77
fi
allowed=$GASNETRUN
echo data >"$work/data"

# refusing WORDS...: from now on the launcher runs under such a filter
refusing()
{
    GASNETRUN=$work/refusing
    printf '#!/bin/sh\nexec "%s" %s -- "%s" "$@"\n' "$deny" "$*" "$allowed" >"$GASNETRUN"
    chmod +x "$GASNETRUN"
}

# What a rank inherits: its signals, the files beside its standard ones (ls has one more for the directory), and what one of them has.
# shellcheck disable=SC2016 # for the rank's shell
inherited='grep "^Sig[BIC]" /proc/self/status | tr "\n" " "; ls /proc/self/fd | tr "\n" " "; cat <&7'
inherits()
{
    TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" sh -c 'trap "" USR2; exec "$@" 7<"$0"' "$work/data" \
        "$GASNETRUN" -n 1 sh -c "$inherited" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    status_is 0
    clean
}
promise "without a filter ranks inherit ignored signals and files"
inherits
cp "$work/out" "$work/expected"
out_has data || fail "file 7 is missing"

# runs_as_elsewhere: under the present filter
runs_as_elsewhere()
{
    job -n 4 "$probe"
    status_is 0
    err_lines 0
    [ "$(sort "$work/out" | tail -n 1)" = "rank 3 of 4" ] || fail "wrong output"
    inherits
    cmp "$work/expected" "$work/out" || fail "inherited: $(cat "$work/out"), elsewhere: $(cat "$work/expected")"
    job -n 2 "$work/there is no such program"
    status_is 2
    err_lines 1
    start -n 4 "$probe" init get say=ready hang
    eventually 10 out_count ready 4 || fail "ranks did not start"
    kill -TERM "$job_pid"
    finish
    status_is 143
    clean
}

# Docker's filter answers ENOSYS for clone3, because libc makes threads by it unless the kernel does not know it.
for filter in "close_range unshare pidfd_open ENOSYS clone3" "ENOSYS clone3 close_range unshare pidfd_open" "close_range unshare" \
    "ENOSYS close_range unshare" "unshare ENOSYS close_range" close_range unshare "ENOSYS clone3"; do
    promise "with a filter on: $filter"
    refusing "$filter"
    runs_as_elsewhere
done

promise "where libc can make no threads the launcher says so"
refusing clone3
job -n 2 "$probe"
status_is 1
err_has 'the PMIx server cannot start: .* look at the limits of processes'
exit 0
