#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# In a library configured with --enable-trace: a random mix that was traced is replayed, each message finds its handler, no earlier than it was sent
# also where hosts have other clocks, and gasnet_trace has its sums;
# programs control traces; files are complete however a rank ends; a file that can't be written causes a message, and the job
# runs. A library without traces prints one line.
. "${top_srcdir:?run through make check}/tests/job/common.sh"

without()
{
    SETTINGS="GASNET_TRACEFILE=$scratch/trace-%" good 2 "$jobs/traced-seq"
    says 'GASNET_TRACEFILE is ignored: .* gasnet-ibv-seq-trace (pkg-config) or ibv-seq-trace.mak' 1
    [ -z "$(ls "$scratch"/trace-* 2>/dev/null)" ] || failed "a file of traces"
}

[ "${TRUNKLINE_TEST_TRACE:-no}" = yes ] || {
    without
    finish
}
command -v python3 >/dev/null || skip "python3 is not here"

# "operation ns" of each event of files of both forms
events_of()
{
    sed -nE -e 's/^[0-9.]+ +[0-9]+ [0-9]+ [A-Z] ([a-z_]+) ns=([0-9]+).*/\1 \2/p' \
        -e 's/^\{"name":"([a-z_]+)",.*"ph":"[Xb]",.*"dur":([0-9]+)\.([0-9]{3}) *,"args".*/\1 \2\3/p' "$@"
}

# summarized FILE...: gasnet_trace has each operation with the calls and the time that the files have
summarized()
{
    events_of "$@" | awk '{ calls[$1]++; ns[$1] += $2 } END { for (op in calls) printf "%s %d %.3f\n", op, calls[op], ns[op] / 1e6 }' |
        sort >"$scratch/summary.wanted"
    "$top_builddir/contrib/trace/gasnet_trace" "$@" >"$scratch/summary" 2>&1 || failed "gasnet_trace: $(tail -1 "$scratch/summary")"
    sed -n '/^Operations/,/^$/p' "$scratch/summary" | awk 'NR > 2 && NF { print $1, $3, $4 }' | sort >"$scratch/summary.found"
    [ -s "$scratch/summary.wanted" ] && cmp -s "$scratch/summary.found" "$scratch/summary.wanted" ||
        failed "gasnet_trace $*: $(diff "$scratch/summary.found" "$scratch/summary.wanted")"
    grep -q "^$# file.*, $mix_ranks ranks of $mix_ranks, .* 0 lost\$" "$scratch/summary" ||
        failed "gasnet_trace: $(head -1 "$scratch/summary")"
}

# mix RANKS PROGRAM FILE [FILE OF A RANK...]: runs the mix, then the checker.
mix()
{
    mix_ranks=$1 mix_program=$2 mix_file=$3
    shift 3
    rm -f "$scratch"/expected.*
    SETTINGS="GASNET_TRACEFILE=$mix_file GASNET_STATSFILE=$scratch/expected-stats.%.json $SETTINGS" good "$mix_ranks" "$mix_program" "$scratch/expected"
    [ $# -gt 0 ] || set -- "$mix_file"
    python3 "$top_srcdir/tests/job/trace_check.py" "$mix_ranks" "$scratch/expected" "$@" >"$scratch/checked" 2>&1 ||
        failed "$mix_program: $(cat "$scratch/checked")"
    summarized "$@"
}

network()
{
    mix 2 "$jobs/counters-seq" "$scratch/t-%" "$scratch/t-0" "$scratch/t-1"
    SETTINGS="COUNTERS_THREADS=3" mix 2 "$jobs/counters-par" "$scratch/t.json"
}

two_rails="SOFTHCA_HCAS=2 GASNET_NUM_QPS=2 GASNET_PUT_STRIPE_SZ=8K GASNET_GET_STRIPE_SZ=8K GASNET_FIREHOSE_LEAST=4096"

# Two rails, large transfers over both, from memory that is registered for them too, and connections on demand
rails()
{
    export TRACE_CHECK=connections
    SETTINGS="$two_rails" mix 3 "$jobs/counters-seq" "$scratch/t-%" "$scratch"/t-{0,1,2}
    awk '/^Rails/ { on = 2; next } on == 2 { on = 1; next } !NF { on = 0 } on { print $1, $3 + $4 + $5, $7 }' "$scratch/summary" >"$scratch/rails.found"
    python3 -c 'import sys
bytes, made = {}, {}
for line in (line for name in sys.argv[1:] for line in open(name, errors="replace") if line[0] != "#"):
    words = dict(word.partition("=")[::2] for word in line.split())
    parts = words.get("rails") or "rail" in words and words["rail"] + ":" + words.get("bytes", "0")
    for part in parts.split(",") if parts else []:
        rail, size = map(int, part.split(":"))
        bytes[rail] = bytes.get(rail, 0) + (int(size) if line.split()[3] in "PGA" else 0)
        made[rail] = made.get(rail, 0) + (" connect " in line)
for rail in sorted(bytes): print(rail, bytes[rail], made[rail])' "$scratch"/t-{0,1,2} >"$scratch/rails.wanted"
    [ -s "$scratch/rails.wanted" ] && cmp -s "$scratch/rails.found" "$scratch/rails.wanted" ||
        failed "gasnet_trace has other rails: $(diff "$scratch/rails.found" "$scratch/rails.wanted")"
    SETTINGS="$two_rails COUNTERS_THREADS=2" mix 2 "$jobs/counters-par" "$scratch/t.json"
}

shared()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0" mix 3 "$jobs/counters-seq" "$scratch/t-%.json" "$scratch"/t-{0,1,2}.json
    SETTINGS="COUNTERS_THREADS=2 GASNET_SUPERNODE_MAXSIZE=0" mix 2 "$jobs/counters-par" "$scratch/t"
}

# The second host's clock is 1000 s ahead of the first's, then also a tenth too fast: the files have one time.
hosts()
{
    export SHIFTED_HOST=b SHIFTED_BY=1000
    RUN='-H =a,=b'
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0" mix 2 "$jobs/counters_shifted-seq" "$scratch/t-%" "$scratch/t-0" "$scratch/t-1"
    grep -q '^clocks of all hosts are aligned to that of rank 0' "$scratch/summary" || failed "not aligned: $(head -3 "$scratch/summary")"
    export SHIFTED_RATE=0.1
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0 COUNTERS_THREADS=2" mix 2 "$jobs/counters_shifted-par" "$scratch/t.json"
    RUN='-H =a:2,=b:2'
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0" mix 4 "$jobs/counters_shifted-seq" "$scratch/t"
}

# lines FILE NUMBER PATTERN
lines()
{
    lines_found=$(grep -c -e "$3" "$1")
    [ "$lines_found" = "$2" ] || failed "$lines_found lines with '$3', not $2"
}

programs()
{
    SETTINGS="TRACED_ON=1 GASNET_TRACEFILE=$scratch/p-%" good 2 "$jobs/traced-seq"
    lines "$scratch/p-1" 20 ' P put .* at=first.c:11$'
    lines "$scratch/p-1" 40 ' P put .* at=_second.c:22$' # the frozen ones too
    lines "$scratch/p-1" 0 'at=frozen\|at=masked.*put\|text=masked\|at=zz'
    lines "$scratch/p-1" 20 ' P put .* at=other.c:66$'
    # calls of all groups of the interface, at the line that their caller set, although handlers set others
    for name in request_short barrier reduce_to_all event_wait gather_all team_create team_destroy domain_create domain_destroy \
        barrier_notify barrier_try; do
        grep -q " $name .* at=caller.c:88\$" "$scratch/p-1" || failed "no $name at caller.c:88"
    done
    lines "$scratch/p-1" 1 ' request_handler .* at=asked.c:1$'
    lines "$scratch/p-1" 1 ' reply_handler .* at=answered.c:2$'
    lines "$scratch/p-1" 0 ' _handler .* at=caller.c\|\(barrier\|wait\|create\|try\|all\|fill\) .* at=a[a-z]*ed.c'
    lines "$scratch/p-1" 1 ' H program .*at=third.c:44 text=text "5"$'
    lines "$scratch/p-1" 1 'text=forced 1$'
    lines "$scratch/p-1" 1 '^# end .* lost=0 how=exit$'
    # of one rank, of some classes, and a rank alone, which puts to itself
    SETTINGS="TRACED_ON=1 GASNET_TRACEFILE=- GASNET_TRACEMASK=^A" good 1 "$jobs/traced-seq"
    says ' P put .* at=first.c:11$' 20
    says ' P put .*at=other.c' 0
    SETTINGS="GASNET_TRACEMASK=P1" job 1 "$jobs/traced-seq"
    [ "$status" -ne 0 ] && grep -q "GASNET_TRACEMASK='P1'" "$scratch/err" || failed "a mask with a digit was taken"
}

ends()
{
    SETTINGS="TRACED_ON=1 TRACED_ABORT=1 GASNET_TRACEFILE=$scratch/a.json" job 2 "$jobs/traced-seq"
    [ "$status" -ne 0 ] || failed "the job ended with 0 after an abort"
    python3 -c 'import json, sys
events = json.load(open(sys.argv[1]))
assert sum(e["name"] == "put" for e in events) >= 80, "puts"
assert any(e["name"] == "end" and e["args"]["how"] != "exit" for e in events), "end"' "$scratch/a.json" 2>"$scratch/python" ||
        failed "after an abort: $(tail -1 "$scratch/python")"
    ln -s /dev/full "$scratch/full.json"
    for file in /dev/full "$scratch/none/here-%" "$scratch/full.json"; do
        SETTINGS="TRACED_ON=any GASNET_TRACEFILE=$file" job 2 "$jobs/traced-seq"
        fails_with 74 "GASNET_TRACEFILE=$file"
        said=$(grep -c 'GASNET_TRACEFILE: cannot' "$scratch/err")
        [ "$said" -ge 1 ] && [ "$said" -le 2 ] || failed "$said lines, not one of each rank, for $file"
    done
}

lane network network
lane rails rails
lane shared shared
lane hosts hosts
lane programs programs
lane ends ends
finish
