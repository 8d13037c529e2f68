#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gasnetrun_ibv --explain names the cause of each hang that hang.c makes, and changes nothing in the job. A signal has the same
# effect, and so has GASNET_STALL_SECONDS without a request.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1
patience=60 # seconds until a job hangs, on a busy machine

# begin N WAY [MODE]: starts a job that hangs; sets launcher. Its PATH has no gdb: stacks take a second of a CPU each.
begin()
{
    mkdir "$scratch/tmp" "$scratch/bin"
    command="$SETTINGS hang-${3:-seq} $2 as $1 ranks"
    : >"$scratch/err"
    rm -f "$scratch/mark"
    # shellcheck disable=SC2086 # SETTINGS is a list of words
    (exec env TMPDIR="$scratch/tmp" PATH="${job_path-$scratch/bin}" JOB_DEADLINE=$((limit - 10)) $SETTINGS \
        "$GASNETRUN" -n "$1" "$jobs/hang-${3:-seq}" "$2" "$scratch/mark" </dev/null >"$scratch/out" 2>"$scratch/err") &
    launcher=$!
}

end()
{
    kill "$launcher"
    wait "$launcher"
    status=$?
    [ "$status" -eq 143 ] || failed "$command: status $status, not that of the SIGTERM that ended it"
    nothing_is_left
    rm -rf "$scratch/bin"
}

# until_says FILE PATTERN... [-- COMMAND...]: repeats the command, if any, until for each pattern a line of the file matches.
until_says()
{
    until_file=$1
    shift
    patterns=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        patterns+=("$1")
        shift
    done
    [ $# -eq 0 ] && set -- : || shift
    until_end=$((SECONDS + patience))
    while :; do
        "$@"
        lacks=
        for pattern in "${patterns[@]}"; do
            grep -qE -e "$pattern" "$until_file" || lacks=$pattern
        done
        [ -n "$lacks" ] || return 0
        [ $SECONDS -lt $until_end ] && kill -0 "$launcher" 2>/dev/null || break
        sleep 0.1
    done
    failed "$command: no line '$lacks', but:"
    sed 's/^/    | /' "$until_file"
    return 1
}

ask()
{
    "$GASNETRUN" --explain "$launcher" >"$scratch/text" 2>&1
}

# explained N WAY MODE PATTERN...: the job hangs, and --explain has a line for each pattern.
explained()
{
    begin "$1" "$2" "$3"
    shift 3
    until_says "$scratch/text" "$@" -- ask
    end
}

nobody="waits for nothing of the library"
barriers()
{
    explained 4 barrier seq "^  ranks 0-2 wait.* in barrier [0-9]+: rank 3 has not entered it \(up to" "^  rank 3 $nobody.* pause"
    explained 3 named seq "^  .*0.* wait.* in named barrier 1: rank 1 has not entered it" "^  rank 1 $nobody"
    explained 2 circle seq "^  circle: rank (0 waits for rank 1, which waits for rank 0|1 waits for rank 0, which waits for rank 1)$" \
        "^  rank 0 .*in barrier [0-9]+: rank 1 has not" "^  rank 1 .*in named barrier 1: rank 0 has not"
    explained 3 collective seq "in collective [0-9]+ of team [0-9a-f]+: rank 1 has not entered it" "^  rank 1 $nobody"
    explained 3 team seq "in gex_TM_Split for rank 1" "^  rank 1 $nobody"
    explained 3 destroy seq "in gex_TM_Destroy for rank 1" "^  rank 1 $nobody"
}

messages()
{
    explained 2 credit seq "^  rank 0 waits to send a message, for a credit of rank 1: all 12 are out" "^  rank 1 $nobody"
    explained 2 handler seq "^  rank 1 runs a handler that has not returned" \
        "^  rank 0 waits for a condition.*for rank 1, which has not answered [0-9]+ request"
    explained 2 event seq "^  rank 0 waits for an event, .*for rank 1, which has not answered [0-9]+ request" "^  rank 1 $nobody"
    SETTINGS="GASNET_CONNECT_STATIC=0" explained 2 connection seq "^  rank 0 waits to send a message, to be connected with rank 1" \
        "^  rank 1 $nobody"
}

# A stopped rank stays stopped.
stopped()
{
    explained 2 put seq "^  rank 0 waits for an event, .*for rank 1, which has not answered" "^  rank 1 is stopped"
    job_path=$PATH
    begin 3 stopped seq
    its_stack="stack of rank 1"
    # Programs with a sanitizer have too many symbols for gdb's time limit.
    command -v gdb >/dev/null && [ "$sanitizer" = no ] && its_stack='(stop|stopped) \(hang.c:[0-9]+\)'
    until_says "$scratch/text" "^  rank 1 is stopped" "^  .*in barrier [0-9]+: rank 1 has not entered it" "$its_stack" -- ask
    ask
    grep -q "^  rank 1 is stopped" "$scratch/text" || failed "the stopped rank was continued by being asked about"
    end
    unset job_path
}

locks()
{
    explained 2 lock par "^  rank 1 waits for a lock \(gex_HSL_t\) at 0x[0-9a-f]+, which thread [0-9]+ of the same process holds" \
        "^  rank 0 wait.*in barrier [0-9]+: rank 1 has not entered it"
}

# refusing_gdb: puts a gdb into the path of later jobs that may not attach, as in containers and under Yama.
refusing_gdb()
{
    mkdir "$scratch/refusing"
    printf '#!/bin/sh\necho "Could not attach to process."\necho "ptrace: Operation not permitted."\n' >"$scratch/refusing/gdb"
    chmod +x "$scratch/refusing/gdb"
    job_path=$scratch/refusing:/usr/bin:/bin
}

# Without gdb, and where gdb may not attach, ranks show their stacks themselves, with static functions too.
own_stacks()
{
    [ "$sanitizer" = no ] || return 0 # its programs catch signals in its own way
    explained 2 lock par "^  stack of rank 1:" "(trunkline_hsl_wait|gex_HSL_Lock|lock) .*< main" " < hold"
    refusing_gdb
    explained 2 handler seq "^  rank 1 runs a handler" "^    .*on_stay.* < main"
    SETTINGS="GASNET_NO_CATCH_SIGNAL=*" explained 2 handler seq \
        "can't be read: gdb says: ptrace: Operation not permitted.; the rank does not catch the signal to show them itself"
    explained 3 stopped seq "stack of rank 1" "can't be read: gdb says: ptrace: Operation not permitted.; a stopped process can't show them itself"
    unset job_path
}

# Without a request, and by a user's signal.
by_itself()
{
    SETTINGS="GASNET_STALL_SECONDS=0.3" begin 3 barrier seq
    until_says "$scratch/err" "in barrier [0-9]+: rank 2 has not entered it"
    end
    SETTINGS="GASNET_STALL_SECONDS=0.3 GASNET_CONNECT_STATIC=0" begin 2 connection seq
    until_says "$scratch/err" "to be connected with rank 1"
    end
    begin 2 barrier seq
    until_says "$scratch/text" "rank 1 has not entered it" -- ask
    kill -RTMIN "$launcher"
    until_says "$scratch/err" "in barrier [0-9]+: rank 1 has not entered it"
    end
}

# Several hosts: each guard answers for its own host.
hosts()
{
    rm -f "$scratch/mark"
    mkdir "$scratch/tmp" "$scratch/bin"
    command="hang-seq barrier on two virtual hosts"
    (exec env TMPDIR="$scratch/tmp" PATH="$scratch/bin" JOB_DEADLINE=$((limit - 10)) \
        "$GASNETRUN" -n 4 -H =one:2,=two:2 "$jobs/hang-seq" barrier "$scratch/mark" </dev/null >"$scratch/out" 2>"$scratch/err") &
    launcher=$!
    until_says "$scratch/text" "^  ranks 0-2 wait.* in barrier [0-9]+: rank 3 has not entered it" -- ask
    end
}

# A job that does not hang gets requests all the time, from before its guard is ready until its end, and is not
# disturbed.
asked()
{
    mkdir "$scratch/tmp" "$scratch/bin"
    command="am-seq on two virtual hosts, asked all the time"
    (exec env TMPDIR="$scratch/tmp" PATH="$scratch/bin" JOB_DEADLINE=$((limit - 10)) \
        "$GASNETRUN" -n 4 -H =one:2,=two:2 "$jobs/am-seq" </dev/null >"$scratch/out" 2>"$scratch/err") &
    launcher=$!
    answers=0
    while kill -0 "$launcher" 2>/dev/null; do
        ask && answers=$((answers + 1))
    done
    wait "$launcher"
    status=$?
    [ $status -eq 0 ] || failed "a job that is asked ends with status $status"
    [ $answers -gt 0 ] || failed "no question was answered: $(cat "$scratch/text")"
    nothing_is_left
}

# A process that is no launcher, a pid that does not exist, another user's process.
refused()
{
    "$GASNETRUN" --explain nonsense >"$scratch/text" 2>&1
    status=$?
    [ $status -eq 2 ] && grep -q 'not the pid of a gasnetrun_ibv' "$scratch/text" || failed "--explain nonsense: status $status"
    "$GASNETRUN" --explain $$ >"$scratch/text" 2>&1
    status=$?
    [ $status -eq 1 ] && grep -q 'no gasnetrun_ibv of this user with that pid' "$scratch/text" || failed "--explain of a shell: status $status"
}

for name in barriers messages stopped locks own_stacks by_itself hosts asked; do
    lane $name $name
done
join_lanes
refused
finish
