#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gasnetrun_ibv --top shows the counters of the ranks of a running job, whatever they do: exactly, over several hosts, as table and
# JSON, on a terminal and in a file; and does not disturb the job.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
command -v python3 >/dev/null || skip "python3 is not here"
export GASNET_SUPERNODE_MAXSIZE=1
patience=60 # seconds that bound a failure only

# begin [OPTION...] -- PROGRAM...: starts a job; sets launcher.
begin()
{
    command="gasnetrun_ibv $*"
    options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    mkdir "$scratch/tmp"
    (exec env TMPDIR="$scratch/tmp" JOB_DEADLINE=$((limit - 10)) "$GASNETRUN" "${options[@]}" "$@" \
        </dev/null >"$scratch/out" 2>"$scratch/err") &
    launcher=$!
}

# until_true COMMAND...: repeats it while the job lives.
until_true()
{
    until_end=$((SECONDS + patience))
    until "$@" >"$scratch/until" 2>&1; do
        [ $SECONDS -lt $until_end ] && kill -0 "$launcher" 2>/dev/null || {
            failed "never true: $*: $(cat "$scratch/until" "$scratch/json" 2>/dev/null)"
            return 1
        }
        sleep 0.05
    done
}

check()
{
    python3 "$top_srcdir/tests/job/top_check.py" "$@"
}

ask()
{
    "$GASNETRUN" --top --once --json "$launcher" >"$scratch/json" 2>"$scratch/json.err"
}

all_marks()
{
    [ -s "$scratch/marks.0" ] && [ -s "$scratch/marks.1" ] && [ -s "$scratch/marks.2" ]
}

# is_in RANK STATE... [waits WHAT]
is_in()
{
    ask && check state "$scratch/json" "$@"
}

counted()
{
    check counts "$scratch/json" "$scratch/marks" one one two
}

# A row for each rank, whose figures are those of its messages.
table()
{
    "$GASNETRUN" --top "$launcher" --once >"$scratch/table" 2>&1 || failed "--top --once: status $?"
    [ "$(wc -l <"$scratch/table")" -eq 6 ] || failed "--top --once: not a line for each rank: $(cat "$scratch/table")"
    for rank in 0 1 2; do
        host=one
        [ $rank -lt 2 ] || host=two
        former=$(((rank + 2) % 3))
        figures="$((15 + 3 * rank)) +$((15 + 3 * former)) +$((3 + rank)) +2 +$((5 * 100 + 3 * 64 + 2 * 32 + rank * 164))"
        grep -qE "^ +$rank $host +[0-9]+ [a-z]+ +[^ ].* $figures +[0-9.]+s +[1-9][0-9]* +[0-9]+ +[0-9]+ +[0-9.]+M$" "$scratch/table" ||
            failed "--top --once: no row of rank $rank: $(cat "$scratch/table")"
    done
    grep -q $'\033' "$scratch/table" && failed "a terminal's signs in a file"
}

stopped()
{
    pid=$(sed -n 's/^pid //p' "$scratch/marks.1")
    kill -STOP "$pid"
    until_true is_in 1 stopped && counted >"$scratch/said" || failed "of a stopped rank: $(cat "$scratch/said")"
    kill -CONT "$pid"
    until_true is_in 1 sleeping running
}

# Tables are written to a file until the job ends, which is no error.
to_the_end()
{
    "$GASNETRUN" --top "$launcher" >"$scratch/tables" 2>&1 &
    top=$!
    until_true grep -q "per second" "$scratch/tables"
    : >"$scratch/marks.go"
    wait "$launcher"
    status=$?
    [ $status -eq 0 ] || failed "a job that was watched: status $status"
    wait "$top"
    status=$?
    [ $status -eq 0 ] || failed "--top at the end of its job: status $status: $(cat "$scratch/tables")"
    nothing_is_left
}

# job_of MODE: threads that have ended count too.
job_of()
{
    rm -f "$scratch"/marks.*
    begin -n 3 -H =one:2,=two:1 -- "$jobs/top-$1" "$scratch/marks"
    if until_true all_marks && until_true ask; then
        counted >"$scratch/said" || failed "--top --once --json: $(cat "$scratch/said")"
        table
        stopped
        [ "$1" = seq ] || check terminal 3 "$GASNETRUN" --top "$launcher" >"$scratch/said" || failed "$(cat "$scratch/said")"
    fi
    to_the_end
}

seq_job()
{
    job_of seq
}

par_job()
{
    job_of par
}

# One rank waits in a barrier that the other never enters.
waiting()
{
    begin -n 2 -- "$jobs/hang-seq" barrier "$scratch/mark"
    until_true is_in 0 sleeping spinning blocked waits event
    until_true is_in 1 sleeping waits none
    kill "$launcher"
    wait "$launcher"
    nothing_is_left
}

# refused STATUS SENTENCE ARGUMENT...
refused()
{
    refused_status=$1 sentence=$2
    shift 2
    "$GASNETRUN" "$@" >"$scratch/out" 2>"$scratch/err"
    status=$?
    command="gasnetrun_ibv $*"
    [ $status -eq "$refused_status" ] && [ "$(wc -l <"$scratch/err")" -eq 1 ] && grep -q -e "$sentence" "$scratch/err" ||
        failed "not refused by one line: $sentence"
}

for name in seq_job par_job waiting; do
    lane $name $name
done
join_lanes
refused 2 'not the pid of a gasnetrun_ibv' --top nonsense
refused 1 'no gasnetrun_ibv of this user with that pid' --top --once --json $$
refused 2 'top takes one job' --top 1 2
refused 2 'is for gasnetrun_ibv --top alone' --once
finish
