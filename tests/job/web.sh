#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gasnetrun_ibv --top --web shows a running job in a browser of this user on this host: live numbers, and an answer to nobody and
# nothing else. It ends with the job, and does not disturb it.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
command -v python3 >/dev/null || skip "python3 is not here"
export GASNET_SUPERNODE_MAXSIZE=1
patience=60 # seconds that bound a failure only
needed=$top_builddir/contrib/report/gasnet_report
[ -x "$needed" ] || failed "no $needed"

# until_true COMMAND...: repeats it while the job lives.
until_true()
{
    until_end=$((SECONDS + patience))
    until "$@"; do
        [ $SECONDS -lt $until_end ] && kill -0 "$launcher" 2>/dev/null || {
            failed "never true: $*"
            return 1
        }
        sleep 0.02
    done
}

begin()
{
    command="gasnetrun_ibv -n 2 top-seq"
    mkdir "$scratch/tmp"
    (exec env TMPDIR="$scratch/tmp" JOB_DEADLINE=$((limit - 10)) "$GASNETRUN" -n 2 "$jobs/top-seq" "$scratch/marks" \
        </dev/null >"$scratch/out" 2>"$scratch/err") &
    launcher=$!
    until_true test -s "$scratch/marks.0" -a -s "$scratch/marks.1"
}

# watch [PORT]: starts --top --web; sets top, address and port.
watch()
{
    "$GASNETRUN" --top "$launcher" --web "$@" >"$scratch/top.out" 2>"$scratch/top.err" &
    top=$!
    until_true grep -q http "$scratch/top.err"
    address=$(sed -n 's/^gasnet_report: \(http:[^ ]*\)$/\1/p' "$scratch/top.err")
    port=${address#http://127.0.0.1:}
    port=${port%%/*}
}

is_closed()
{
    ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null
}

# The kernel knows whose a connection is. Without root nobody can be another user.
other_user()
{
    [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null || return
    path=/${address#http://*/}
    setpriv --reuid 65534 --regid 65534 --clear-groups bash -c \
        "exec 3<>/dev/tcp/127.0.0.1/$port && printf 'GET $path HTTP/1.1\r\nHost: 127.0.0.1:$port\r\n\r\n' >&3 && cat <&3" \
        >"$scratch/other" 2>&1
    ! grep -q 'HTTP/1.1' "$scratch/other" || failed "another user got an answer: $(head -1 "$scratch/other")"
    until_true grep -q 'refused a connection of user 65534' "$scratch/top.err"
}

# While another one runs: refused with one line.
refused()
{
    refused_status=$1 sentence=$2
    shift 2
    "$GASNETRUN" "$@" >"$scratch/refused" 2>&1
    status=$?
    [ $status -eq "$refused_status" ] && [ "$(wc -l <"$scratch/refused")" -eq 1 ] && grep -q -e "$sentence" "$scratch/refused" ||
        failed "gasnetrun_ibv $*: status $status: $(cat "$scratch/refused")"
}

begin
watch
python3 "$top_srcdir/tests/job/web_check.py" "$address" "$scratch/marks" >"$scratch/said" 2>&1 || failed "$(cat "$scratch/said")"
other_user
refused 1 "cannot listen on port $port of 127.0.0.1: Address already in use" --top "$launcher" --web "$port"
refused 2 'web 65536: not a port between 0 (any) and 65535; a job is named before it' --top --web 65536
refused 2 'web and --json exclude each other' --top --web --json
refused 2 'is for gasnetrun_ibv --top alone' --web
# The server ends with its launcher, and another one can have the port at once.
kill -KILL "$top"
{ wait "$top"; } 2>/dev/null
until_true is_closed
first=$address
watch "$port"
[ "$address" != "$first" ] || failed "two servers with one key"
: >"$scratch/marks.go"
wait "$launcher"
status=$?
fails_with 0 "a job that was watched"
nothing_is_left
wait "$top"
status=$?
[ $status -eq 0 ] || failed "--top --web at the end of its job: status $status: $(cat "$scratch/top.err")"
is_closed || failed "the server lives longer than the job"
finish
