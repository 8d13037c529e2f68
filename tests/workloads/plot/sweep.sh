#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# workload-sweep: all combinations are run, tables and reports contain them, and a picture has a
# line or a bar for each; each refusal is one line.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
sweep=$top_srcdir/tests/workloads/plot/workload-sweep
export SOFTHCA_HCAS=2 GASNET_NUM_QPS=2

# swept WORKLOAD ARGS...
swept()
{
    command="workload-sweep $*"
    rm -rf "$scratch/out"
    "$watchdog" "$limit" "$sweep" --build "$top_builddir" --out "$scratch/out" --seconds 0.25 "$@" \
        >"$scratch/log" 2>"$scratch/err" </dev/null
    status=$?
}

# leaves WORKLOAD ROWS SERIES: in the picture, all panels together.
leaves()
{
    [ "$status" -eq 0 ] || failed "status $status"
    [ "$(wc -l <"$scratch/out/$1.csv")" -eq $(($2 + 1)) ] || failed "$1: not a header and $2 rows"
    # On a busy machine one of them may make no progress in so short a time.
    python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert len(r) == int(sys.argv[2]) and all(
        "rate_mops" in one["summary"] and one["status"] == "PASS" for one in r) and 2 * sum(
        one["summary"]["rate_mops"] > 0 for one in r) > len(r)' \
        "$scratch/out/$1.json" "$2" 2>>"$scratch/err" || failed "$1: not $2 reports"
    grep -q '^</svg>' "$scratch/out/$1.svg" || failed "$1: no picture"
    [ "$(grep -c '<g class="series">' "$scratch/out/$1.svg")" -eq "$3" ] || failed "$1: not $3 series in the picture"
}

swept kv --axis window=1,4 --axis put=5 --axis dist=uniform,zipf --axis keys=200 --axis transport=write-send,am-medium
leaves kv 8 6
swept swarm --axis ranks=2 --axis vms=1,2 --axis window=16 --axis unsig=4,8
leaves swarm 4 5
# Rounds: all runs are kept, and a line's points are their medians with bars.
swept swarm --axis ranks=2 --axis vms=1,2 --axis window=4 --axis unsig=4 --rounds 3
leaves swarm 6 5
python3 - "$scratch/out/swarm.json" "$scratch/out/swarm.txt" 2>>"$scratch/err" <<'EOF_PYTHON' || failed "a point is not the median of its rounds"
import json, sys
reports = json.load(open(sys.argv[1]))
rates = sorted(one["summary"]["rate_mops"] for one in reports if one["axes"]["vms"] == "1")
words = open(sys.argv[2]).read().split("\nseries ")[1].splitlines()[1].split()
assert sorted({one["round"] for one in reports}) == [1, 2, 3] and len(rates) == 3
assert [float(word) for word in words[1:]] == [rates[1], rates[0], rates[2]], (words, rates)
EOF_PYTHON
# 2 threads in groups of 2, and both by themselves; a group of 2 needs 2 threads.
swept sharing --axis threads=1,2 --axis degree=1,2 --axis window=4
leaves sharing 3 8
python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); e = {(one["axes"]["threads"], one["axes"]["degree"]): one["summary"]
    for one in r}; two = e["2", "2"]; assert e["1", "1"]["efficiency"] == 1 and abs(two["efficiency"] *
    e["2", "1"]["rate_per_thread_mops"] - two["rate_per_thread_mops"]) < 1e-9' "$scratch/out/sharing.json" 2>>"$scratch/err" ||
    failed "efficiency is not the rate by that of degree 1"

# said STATUS TEXT ARGS...
said()
{
    expected=$1 text=$2
    shift 2
    swept "$@"
    [ "$status" -eq "$expected" ] || failed "status $status, not $expected"
    [ "$(tail -1 "$scratch/err" | grep -c "$text")" -eq 1 ] || failed "'$text' was not said"
}
said 2 "'window' is not NAME=A,B" kv --axis window
said 2 "is not a number from 0.01" kv --seconds 0
said 2 "is not a number from 1 to 1000" kv --rounds 0
said 2 "invalid choice" kvv
said 2 "at least 2" kv --axis ranks=1
said 2 "names the build tree" kv --build /nowhere
said 1 "1 of 1 runs failed, the first: .* ended with status 2: kv: .*is not a whole number" kv --axis window=3 --axis put=5 --axis dist=uniform
# The others go on.
said 1 "1 of 2 runs failed" swarm --axis vms=1,x --axis window=4 --axis unsig=4
[ "$(wc -l <"$scratch/out/swarm.csv")" -eq 2 ] || failed "not a header and a row"
# Names that would overlap: no picture, but the tables.
said 1 "no picture, the tables are in" kv --axis window=1 --axis put=5 --axis transport=am-medium \
    --axis dist=uniform,zipf:0.500000000000000000,zipf:0.900000000000000000
[ ! -e "$scratch/out/kv.svg" ] && [ "$(wc -l <"$scratch/out/kv.csv")" -eq 4 ] || failed "not tables alone"
# An existing folder is left as it is.
mkdir "$scratch/old" && echo mine >"$scratch/old/swarm.csv"
said 2 "old exists and is no empty folder" swarm --out "$scratch/old"
[ "$(ls "$scratch/old")$(cat "$scratch/old/swarm.csv")" = swarm.csvmine ] || failed "an old result is no longer what it was"
[ ! -e "$scratch/out" ] || failed "a folder was made for nothing"

# An interrupt in the second run: its ranks end, and the first one's results and picture are there.
rm -rf "$scratch/out"
command="an interrupted sweep"
setsid "$sweep" --build "$top_builddir" --out "$scratch/out" --seconds 2 swarm --axis vms=1,2 --axis window=4 --axis unsig=4 \
    >"$scratch/log" 2>"$scratch/err" </dev/null &
one=$!
for ((i = 0; i < 600; i++)); do
    grep -q '^1/2 ' "$scratch/log" && break
    sleep 0.1
done
sleep 1
kill -INT $one
wait $one
status=$?
[ "$status" -eq 1 ] || failed "status $status, not 1"
grep -q 'interrupted after 1 of 2 runs; .* has what was measured' "$scratch/err" || failed "nobody said that it was interrupted"
[ "$(wc -l <"$scratch/out/swarm.csv")" -eq 2 ] || failed "not a header and a row"
grep -q '^</svg>' "$scratch/out/swarm.svg" || failed "no picture of what was measured"
said 1 "/dev/null/x" kv --out /dev/null/x --axis window=1 --axis put=5 --axis dist=uniform --axis transport=am-medium
finish
