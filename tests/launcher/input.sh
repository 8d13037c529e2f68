#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Rank 0 gets all of standard input, including end of file; the other ranks get none.
. "$(dirname "$0")/lib.sh"
head -c 5000000 /dev/urandom | od -An -x | tr -d ' ' >"$work/data"

# fed FILE ARGS...: like job, with FILE as standard input
fed()
{
    file=$1
    shift
    TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" "$GASNETRUN" "$@" <"$file" >"$work/out" 2>"$work/err"
    status=$?
    clean
}

for n in 1 3; do
    promise "rank 0 of $n gets every byte of a file"
    fed "$work/data" -n $n "$probe" init 0:cat fence finalize
    status_is 0
    cmp "$work/data" "$work/out" || fail "differs"
done

promise "and of a pipe, written slowly"
{ head -c 100000 "$work/data"; sleep 0.2; tail -c +100001 "$work/data"; } |
    TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" "$GASNETRUN" -n 2 "$probe" 0:cat >"$work/out"
cmp "$work/data" "$work/out" || fail "differs"

promise "the other ranks have an empty one"
fed "$work/data" -n 3 sh -c 'cat | wc -c'
[ "$(sort -n "$work/out" | tr -s ' \n' ' ')" = "0 0 $(wc -c <"$work/data") " ] || fail "$(cat "$work/out")"

# loop ARGS...: a shell loop that reads $work/lines and runs a job in its body; the lines that the
# loop read are in $work/seen
loop()
{
    : >"$work/seen"
    while read -r line; do
        echo "$line" >>"$work/seen"
        TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" "$GASNETRUN" "$@" >>"$work/out" 2>"$work/err" || fail "status $?"
    done
}

promise "a job in a loop that reads lines leaves them to the loop"
printf '1\n2\n3\n4\n' >"$work/lines"
for hosts in "-n 1" "-n 2" "-n 2 -H =a,=b"; do
    # shellcheck disable=SC2086 # several words
    loop $hosts true <"$work/lines"
    [ "$(tr -d '\n' <"$work/seen")" = 1234 ] || fail "$hosts: a file: only $(tr '\n' ' ' <"$work/seen")"
    # shellcheck disable=SC2086 # several words
    cat "$work/lines" | loop $hosts true
    [ "$(tr -d '\n' <"$work/seen")" = 1234 ] || fail "$hosts: a pipe: only $(tr '\n' ' ' <"$work/seen")"
done

promise "a rank that reads one line takes no more"
: >"$work/out"
# shellcheck disable=SC2016 # for the shell of the rank
loop -n 1 sh -c 'read -r line; echo "$line"' <"$work/lines"
[ "$(tr -d '\n' <"$work/seen"),$(tr -d '\n' <"$work/out")" = 13,24 ] || fail "$(cat "$work/seen"), $(cat "$work/out")"

promise "with --stdin none, and with </dev/null, there is nothing to read"
: >"$work/out"
loop -n 2 --stdin none cat <"$work/lines"
[ "$(tr -d '\n' <"$work/seen")" = 1234 ] && out_is "" || fail "$(cat "$work/seen"), $(cat "$work/out")"
fed /dev/null -n 2 cat
status_is 0
out_is ""
fed "$work/lines" -n 1 -stdin=0 cat
cmp "$work/lines" "$work/out" || fail "differs"

promise "what writes to a rank that has closed its input is told" # no timeout(1) here: it would keep the pipe
{
    timeout -k 1 "$limit" yes 2>/dev/null
    echo $? >"$work/writer"
    echo >"$work/go"
} | TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -n 1 sh -c \
    'exec <&-; until [ -e "$0" ]; do sleep 0.02; done' "$work/go" 2>"$work/err" || fail "status $?"
[ "$(cat "$work/writer")" -eq 141 ] || fail "the writer's status is $(cat "$work/writer")"

promise "a job that does not read ends well, however much there is"
yes | TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" "$GASNETRUN" -n 2 "$probe" >"$work/out" 2>"$work/err"
status=$?
status_is 0
clean

promise "what rank 0 does not read is not heaped up"
mkfifo "$work/fifo"
yes >"$work/fifo" &
feeder=$!
TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -n 2 "$probe" init get say=ready hang <"$work/fifo" >"$work/out" 2>"$work/err" &
job_pid=$!
eventually 10 out_count ready 2 || fail "did not start"
sleep 0.5 # gigabytes would pass in this time
for p in $job_pid $(named gasnetrun-guard); do
    rss=$(awk '/^VmRSS/ { print $2 }' "/proc/$p/status")
    [ "$rss" -lt 30000 ] || fail "process $p has grown to $rss kB"
done
kill "$job_pid"
finish
kill $feeder 2>/dev/null
clean

promise "without standard files at all"
TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" "$GASNETRUN" -n 2 "$probe" <&- >&- 2>&-
status=$?
status_is 74 # the ranks' output is lost, and no message can say so
TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" "$GASNETRUN" -n 2 true <&- >&- 2>&-
status=$?
status_is 0
TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" "$GASNETRUN" -n 2 sh -c 'cat; echo out; echo err >&2' <&- >"$work/out" 2>&-
status=$?
status_is 0
[ "$(tr '\n' ' ' <"$work/out")" = "out out " ] || fail "wrong output"
clean

promise "ranks inherit the user's other files, of whatever number"
if command -v bash >/dev/null; then
    for number in 5 63 200; do
        TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" bash -c "exec \"\$@\" $number<\"\$0\"" "$work/data" \
            "$GASNETRUN" -n 1 bash -c "cat <&$number" >"$work/out" 2>"$work/err" </dev/null
        status=$?
        status_is 0
        cmp "$work/data" "$work/out" || fail "file $number differs"
    done
    clean
fi

promise "in the background of a terminal the job runs and leaves the terminal alone"
if command -v script >/dev/null && command -v bash >/dev/null; then
    TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" script -qec \
        "bash -mc '\"$GASNETRUN\" -n 2 \"$probe\" & wait \$!; echo status \$?'" /dev/null >"$work/out" 2>"$work/err" </dev/null
    out_has 'status 0' || fail "did not finish"
    out_has 'rank 1 of 2' || fail "no output"
    clean
fi
exit 0
