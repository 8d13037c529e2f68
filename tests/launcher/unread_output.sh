#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Unread output delays the end of the launcher by at most GASNET_OUTPUT_TIMEOUT.
. "$(dirname "$0")/lib.sh"

# unread N WORDS...: a job whose output goes to a pipe that nobody reads, then read in $work/out; ends in some seconds
mkfifo "$work/pipe"
unread()
{
    exec 9<>"$work/pipe"
    began=$(now)
    TRUNKLINE_TEST_MARK=$mark GASNET_OUTPUT_TIMEOUT=0.5 timeout -k 1 "$limit" "$GASNETRUN" -n "$@" >"$work/pipe" 2>"$work/err"
    status=$?
    in_time 10 "$began" || fail "too slow"
    clean
    dd if="$work/pipe" of="$work/out" iflag=nonblock 2>"$work/dd" # to where it would wait for more
    exec 9<&-
}

# lost: the number of bytes that the launcher reports as not read
lost() { sed -n 's/^gasnetrun_ibv: \([0-9]*\) bytes of standard output are lost: .*GASNET_OUTPUT_TIMEOUT.*/\1/p' "$work/err"; }

promise "a reader that never reads keeps the launcher for GASNET_OUTPUT_TIMEOUT, and every lost byte is told"
unread 8 "$probe" long=179999 # more than the launcher holds, less than what keeps ranks waiting
status_is 74
err_lines 1
[ "$(($(wc -c <"$work/out") + $(lost)))" -eq 1440000 ] || fail "$(wc -c <"$work/out") read, $(lost) lost"

promise "the status of a job that fails is its own"
unread 1 "$probe" long=999999 exit=3
status_is 3
[ "$(lost)" -gt 0 ] || fail "nothing lost"

promise "a reader that takes its time, but not all of it at once, gets everything"
{
    TRUNKLINE_TEST_MARK=$mark GASNET_OUTPUT_TIMEOUT=2 "$GASNETRUN" -n 1 "$probe" long=499999 2>"$work/err"
    echo $? >"$work/status"
} | (
    for i in 1 2 3 4 5 6; do
        sleep 0.5
        head -c 65536
    done
    exec cat
) >"$work/out"
status=$(cat "$work/status")
status_is 0
[ "$(wc -c <"$work/out")" -eq 500000 ] || fail "lost bytes"

promise "a stderr that nobody reads holds up neither the end of a job nor the rest of its output"
mkfifo "$work/errors"
exec 9<>"$work/errors"
began=$(now)
TRUNKLINE_TEST_MARK=$mark GASNET_OUTPUT_TIMEOUT=0.5 timeout -k 1 "$limit" "$GASNETRUN" -n 2 sh -c \
    'echo "$PMIX_RANK"; [ "$PMIX_RANK" = 1 ] || { head -c 300000 /dev/zero | tr "\0" "\n" >&2; kill -KILL $$; }; sleep 1000' \
    >"$work/out" 2>"$work/errors"
status=$?
exec 9<&-
status_is 137
in_time 15 "$began" || fail "too slow"
[ "$(sort "$work/out" | tr '\n' ' ')" = "0 1 " ] || fail "standard output is lost, too"
clean

promise "at a terminal somebody may read page by page: the time is for ever there, but for who sets one"
kept() { timeout -k 1 "$limit" script -qec "'$GASNETRUN' -t -v -n 1 true" /dev/null <"/dev/null" >"$work/out" 2>"$work/err"; }
if command -v script >/dev/null; then
    kept
    out_has 'output is kept until it is read' || fail "dropped at a terminal"
    GASNET_OUTPUT_TIMEOUT=7 kept
    out_has 'kept for 7 s after the job' || fail "the setting is not minded"
fi
"$GASNETRUN" -t -v -n 1 true 2>"$work/out"
out_has 'kept for 30 s after the job' || fail "kept for ever without a terminal"
exit 0
