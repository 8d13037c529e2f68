#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gasnet_trace without a job: the sums of recorded traces, of one file and of several, in both forms and from standard input; wrong
# options give status 2; a file that is not a trace gives status 1 and a line with the file and the line number.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
tool=$top_builddir/contrib/trace/gasnet_trace

# run STATUS ARGS...
run()
{
    local expected=$1
    shift
    command="gasnet_trace $*"
    "$tool" "$@" >"$scratch/out" 2>"$scratch/err"
    status=$?
    [ "$status" -eq "$expected" ] || failed "status $status, not $expected"
}

has() { grep -qE -- "$1" "$scratch/out" || failed "nothing printed like '$1': $(cat "$scratch/out")"; }
# The only line of standard error, and nothing else is printed.
only() { [ "$(cat "$scratch/err")" = "gasnet_trace: $1" ] && [ ! -s "$scratch/out" ] || failed "not the one line '$1'"; }

cat >"$scratch/t-0" <<'END'
# start rank=0 size=2 pid=11 monotonic=1000000000 realtime=5 offset=0 error=0 host=node1 boot=b
1.000000100 0 0 P put ns=2000 peer=1 bytes=4096 at=main.c:10
1.000003000  0 0 P put ns=4000  peer=1 bytes=4096 path=bounce at=main.c:10
1.000010000 0 0 A request_handler ns=3000 peer=1 handler=200 seq=1 at=main.c:12
1.000008000 0 0 S event_wait ns=10000 at=main.c:12
1.000020000 0 0 H program ns=0 at=main.c:13 text=half of it
1.000021000 0 0 I lost ns=0 bytes=7
# end rank=0 monotonic=2000000000 realtime=6 lost=7 how=exit
END
cat >"$scratch/t-1.json" <<'END'
[
{"name":"trunkline","ph":"M","pid":0},
{"name":"process_name","cat":"I","ph":"M","pid":1,"args":{"name":"rank 1 on node2"}},
{"name":"start","cat":"I","ph":"i","s":"p","pid":1,"tid":0,"ts":1000000.000,"args":{"rank":1,"size":2,"pid":12,"monotonic":1000000000,"realtime":5,"offset":-7,"error":2500,"host":"node2","boot":"c"}},
{"name":"request_short","cat":"A","ph":"X","pid":1,"tid":0,"ts":1000001.000,"dur":1.500,"args":{"rank":1,"peer":0,"handler":200,"seq":1,"at":"side.c:7"}},
{"name":"message","cat":"A","ph":"s","id":"1>0#1","pid":1,"tid":0,"ts":1000001.000},
{"name":"barrier","cat":"B","ph":"X","pid":1,"tid":0,"ts":1000005.000 ,"dur":90.000  ,"args":{"rank":1}}
]
END

run 0 "$scratch/t-0" "$scratch/t-1.json"
has '^2 files, 2 ranks of 2, 2 threads, 7 events, 7 lost$'
has '^clocks of all hosts are aligned to that of rank 0, with errors of up to 2\.500 us$'
has '^  put +P +2 +0\.006 +0\.006 +3\.000 +4\.000 +8192$'
has '^  event_wait +S +1 +0\.010 +0\.007 +10\.000 +10\.000 +0$'
has '^  event_wait +1 +0\.010 +0\.007 .*  rank 0 thread 0 at 1\.000008000, main\.c:12$'
has '^  barrier +1 .*  rank 1 thread 0 at 1\.000005000$'
has '^ +0 +5 +0\.020 +0\.016 +0\.007 +0\.003 +7  exit +node1$'
has '^ +1 +2 +0\.094 +0\.091 +0\.090 +0\.000 +0  none +node2$'
has '^ +0 +1 +2 +8192 +0\.006 +3\.000 +4\.000$'
has '^ +1 +0 +1 +0 +0\.002 +1\.500 +1\.500$'
has '^ +2 +0\.006 .*  put +main\.c:10$'
has '^ +1 +0\.004 .* 4096  put +bounce$'
[ "$(sed -n '/^Operations/,/^$/s/^  \([a-z_]*\) .*/\1/p' "$scratch/out" | tr '\n' ' ')" = "operation barrier event_wait put request_handler request_short program " ] ||
    failed "not sorted by time"
tail -n +2 "$scratch/out" >"$scratch/wanted"
cat "$scratch/t-0" "$scratch/t-1.json" | run 0 -
tail -n +2 "$scratch/out" | cmp -s - "$scratch/wanted" || failed "standard input has other sums"
run 0 --top=1 "$scratch/t-0" "$scratch/t-1.json"
has '^  and 3 more \(--top\)$'
run 0 "$scratch/t-0" "$scratch/t-0"
has 'starts 2 times'
printf '1.0000' >>"$scratch/t-0"
run 0 "$scratch/t-0"
has '^1 file ends within a line'

grep -q '^Rails' "$scratch/out" && failed "rails of traces that have none"

# Rails, connections and registrations, in both forms; as JSON for programs
cat >"$scratch/r-0" <<'END'
# start rank=0 size=2 pid=11 monotonic=1000000000 realtime=5 host=node1 boot=b
1.000000100 0 0 P put ns=2000 peer=1 bytes=300 path=striped rails=0:100,1:200 at=main.c:10
1.000003000 0 0 A request_medium ns=900 peer=1 bytes=40 path=inline rail=1 handler=200 seq=1
1.000004000 0 0 I register ns=1500 bytes=4096 path=region
1.000000000 0 0 I connect ns=9000 peer=1 rail=0
END
cat >"$scratch/r-1.json" <<'END'
[
{"name":"trunkline","ph":"M","pid":0},
{"name":"get","cat":"G","ph":"X","pid":1,"tid":0,"ts":1000001.000,"dur":1.500,"args":{"rank":1,"peer":0,"bytes":50,"path":"striped","rails":"0:20,1:30","at":"\"a:7"}},
{"name":"connect","cat":"I","ph":"b","id":"1-0.2@1","pid":1,"tid":0,"ts":1000000.000,"dur":7.000,"args":{"rank":1,"peer":0,"rail":1}},
{"name":"connect","cat":"I","ph":"e","id":"1-0.2@1","pid":1,"tid":0,"ts":1000007.000}
]
END
run 0 "$scratch/r-0" "$scratch/r-1.json"
has '^  connect +I +2 +0\.016 +0\.000 +8\.000 +9\.000 +0$'
has '^ +0 +2 +100 +20 +0 +0 +1$'
has '^ +1 +3 +200 +30 +40 +0 +1$'
has '^ +1 +0\.001 +0\.001 .* 40  request_medium +inline$'
has '^ +1 +0\.002 .* 4096  register +region$'
run 0 --json "$scratch/r-0" "$scratch/r-1.json"
command -v python3 >/dev/null && {
    python3 -c 'import json, sys
sums = json.load(sys.stdin)
assert sums["events"] == 6 and sums["size"] == 2 and [rank["host"] for rank in sums["ranks"]] == ["node1", ""], sums
assert [list(rail.values()) for rail in sums["rails"]] == [[0, 2, 100, 20, 0, 0, 1], [1, 3, 200, 30, 40, 0, 1]], sums["rails"]
assert {line["line"] for line in sums["lines"]} == {"main.c:10", "\"a:7"}, sums["lines"]
assert {(path["operation"], path["path"], path["ns"]) for path in sums["paths"]} == {
    ("put", "striped", 2000), ("get", "striped", 1500), ("request_medium", "inline", 900), ("register", "region", 1500)}, sums["paths"]
assert {op["operation"]: op["calls"] for op in sums["operations"]}["connect"] == 2, sums["operations"]' <"$scratch/out" 2>"$scratch/python" ||
        failed "--json: $(tail -1 "$scratch/python")"
}

# Files that are not traces, and files that can't be read.
echo "a line of the program" >>"$scratch/t-1.json"
run 1 "$scratch/t-0" "$scratch/t-1.json"
only "$scratch/t-1.json:9: not a line of a trace of trunkline"
run 1 - <"$top_builddir/spawner/gasnetrun_ibv"
only "standard input:1: not a line of a trace of trunkline"
head -c 300000 /dev/zero >"$scratch/zeros"
run 1 "$scratch/zeros"
only "$scratch/zeros:1: not a line of a trace of trunkline"
run 1 - </dev/null
only "standard input:1: the file is empty"
run 1 "$scratch/none"
only "$scratch/none: No such file or directory"
run 1 "$scratch"
only "$scratch:1: Is a directory"

# Options.
run 0 --help
has '^usage: gasnet_trace '
run 0 --version
has '^trunkline [0-9]'
run 2
only "no file: usage: gasnet_trace [--top N | --json] FILE... (-: standard input)"
run 2 --tops "$scratch/t-0"
only "--tops: no such option, or its value is missing (--help)"
run 2 --top
run 2 --top=-1 "$scratch/t-0"
only "-1: --top takes a number from 0 to 1000000"
run 2 --top 1000001 "$scratch/t-0"

command="gasnet_trace --help >/dev/full"
"$tool" --help >/dev/full 2>"$scratch/err"
status=$?
[ "$status" -eq 1 ] && [ "$(cat "$scratch/err")" = "gasnet_trace: cannot write standard output: No space left on device" ] ||
    failed "not the line for a full disk"
finish
