#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Standard output and error of the ranks: lines are not mixed, nothing is lost, and a slow reader gets everything.
. "$(dirname "$0")/lib.sh"

# unmixed N COUNT: N ranks' lines are whole, complete and in order
unmixed()
{
    awk -v n="$1" -v count="$2" '
        NF != 3 || $3 !~ /^x+$/ || length($3) != 20 + $2 % 60 || $2 != seen[$1] { bad = NR; exit }
        { seen[$1]++ }
        END { for (r = 0; r < n; r++) if (seen[r] != count) bad = bad " count" r; if (bad) print "line " bad; exit bad != "" }' \
        "$work/out" || fail "mixed, lost or reordered lines"
}

promise "lines written in many pieces by many ranks do not mix"
job -n 16 "$probe" lines=200
status_is 0
unmixed 16 200

promise "long lines do not mix"
job -n 4 "$probe" long=200000 long=200000
status_is 0
[ "$(awk '{ print length($0), substr($0, 1, 1) }' "$work/out" | sort | uniq -c | tr -s ' ' | tr '\n' ';')" = \
    " 2 200000 a; 2 200000 b; 2 200000 c; 2 200000 d;" ] || fail "mixed or lost"

promise "of lines beyond every limit no byte is lost"
job -n 2 "$probe" long=3000000
status_is 0
[ "$(tr -d '\n' <"$work/out" | wc -c)" -eq 6000000 ] || fail "lost bytes"

promise "an unfinished last line comes out, and nothing is added to it"
job -n 1 "$probe" say=one part=two
[ "$(od -An -c "$work/out" | tr -d ' \n')" = 'one\ntwo' ] || fail "wrong bytes"
job -n 3 "$probe" part=abc
[ "$(tr '\n' ' ' <"$work/out")" = "abc abc abc" ] || fail "wrong bytes"

promise "one process's output is not held back until the line is complete"
start -n 1 "$probe" part=ready hang
eventually 5 out_has ready || fail "held back"
kill "$job_pid"
finish

promise "-l puts the rank before each line of both streams"
job -l -n 3 "$probe" init say=hello err=world part=end finalize
[ "$(sort "$work/out" | tr '\n' ';')" = "[0] end;[0] hello;[1] end;[1] hello;[2] end;[2] hello;" ] || fail "labels"
[ "$(sort "$work/err" | tr '\n' ';')" = "[0] world;[1] world;[2] world;" ] || fail "labels on stderr"

promise "a slow reader gets everything"
{
    TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -n 4 "$probe" lines=20000
    echo $? >"$work/status"
} | (sleep 2 && cat >"$work/out")
status=$(cat "$work/status")
status_is 0
unmixed 4 20000
clean

promise "a reader that goes away ends endless writers"
{
    TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" "$GASNETRUN" -n 2 yes 2>"$work/err"
    echo $? >"$work/status"
} | head -n 1 >"$work/out"
status=$(cat "$work/status")
status_is 141
clean

promise "what a reader that went away has lost is told, and gives a status of its own"
{
    # shellcheck disable=SC2016 # for the shell of the rank
    TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" "$GASNETRUN" -n 1 \
        sh -c 'echo one; until [ -e "$0" ]; do sleep 0.02; done; echo two' "$work/gone" 2>"$work/err"
    echo $? >"$work/status"
} | {
    read -r line
    echo "$line" >"$work/out"
    exec <&-
    echo >"$work/gone"
}
eventually 10 test -s "$work/status" || fail "no status"
status=$(cat "$work/status")
status_is 74
out_is one
err_lines 1
err_has 'standard output is incomplete: its reader went away before the job had ended'
clean

promise "a reader that went away after the last byte has lost nothing"
{
    # shellcheck disable=SC2016 # for the shell of the rank
    TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" "$GASNETRUN" -n 1 \
        sh -c 'echo one; until [ -e "$0" ]; do sleep 0.02; done' "$work/gone2" 2>"$work/err"
    echo $? >"$work/status"
} | {
    read -r line
    exec <&-
    echo >"$work/gone2"
}
status=$(cat "$work/status")
status_is 0
err_lines 0

promise "a reader that never reads does not keep SIGINT from ending the job"
mkfifo "$work/fifo"
sleep 1000 <"$work/fifo" &
reader=$!
TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -n 2 sh -c 'echo $$ >>'"$work"'/started; exec yes' >"$work/fifo" 2>"$work/err" &
job_pid=$!
eventually 10 test -s "$work/started" || fail "did not start"
sleep 0.3 # time for every buffer on the way to fill; if they do not, the test is only easier
kill -INT "$job_pid"
finish
kill $reader
status_is 130
clean

promise "a full disk is told and gives a status of its own"
if [ -c /dev/full ]; then
    TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -n 2 "$probe" init get rank finalize >/dev/full 2>"$work/err"
    status=$?
    status_is 74
    err_lines 1
    err_has 'cannot write standard output: No space left'
fi

promise "so does a standard output that is closed, if there is something to write"
TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -n 2 "$probe" init get rank finalize >&- 2>"$work/err"
status=$?
status_is 74
err_lines 1
err_has 'cannot write standard output: it is closed'
TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -n 2 true >&- 2>"$work/err"
status=$?
status_is 0
TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -n 2 "$probe" err=world <&- >"$work/out" 2>&-
status=$?
status_is 0
exit 0
