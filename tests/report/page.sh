#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Reports of jobs in a browser (page.py): of 4 ranks on two hosts, of 6 over two rails, of two with threads, of one that was aborted, of one
# that did nothing, of 64 and 1024 that were made up, and of one with hostile names. Then the command line: bad options, files that are no
# input.
# Pages and pictures stay in tests/report/pages of the build tree.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
tool=$top_builddir/contrib/report/gasnet_report
worker=$top_builddir/tests/report/worker
pages=$top_builddir/tests/report/pages

# recorded NAME N MODE [SETTINGS...]: runs the job; its files are in $scratch/NAME
recorded()
{
    local ranks=$2 mode=$3 files=$scratch/$1
    shift 3
    mkdir "$files"
    SETTINGS="GASNET_STATSFILE=$files/stats-%.json GASNET_QUIET=1 $*"
    [ "${TRUNKLINE_TEST_TRACE_TWIN:-no}" = no ] || SETTINGS="$SETTINGS GASNET_TRACEFILE=$files/trace-%.json"
    job "$ranks" "$worker-$mode"
}

# run STATUS ARGS...
run()
{
    local expected=$1
    shift
    command="gasnet_report $*"
    "$tool" "$@" >"$scratch/out" 2>"$scratch/err"
    status=$?
    [ "$status" -eq "$expected" ] || failed "status $status, not $expected"
}
only() { [ "$(cat "$scratch/err")" = "gasnet_report: $1" ] && [ ! -s "$scratch/out" ] || failed "not the one line '$1'"; }

command_line()
{
    run 0 --help
    grep -q '^usage: gasnet_report ' "$scratch/out" || failed "no usage"
    run 0 --version
    run 2
    only "no file: usage: gasnet_report [-o FILE.html] [--title TEXT] FILE..."
    run 2 --nothing "$scratch/none"
    only "--nothing: no such option, or it takes no value (--help)"
    run 2 -xo "$scratch/none"
    only "-x: no such option, or it takes no value (--help)"
    run 2 --output
    only "-o: its value is missing (--help)"
    run 2 --serve -o "$scratch/none"
    only "-o: --serve writes no file: it takes a port and nothing else"
    # "-o stats-*.json": the list of files without the name of a report before it
    cp "$scratch"/seq4/stats-0.json "$scratch/kept.json"
    run 2 -o "$scratch/kept.json" "$scratch"/seq4/stats-1.json
    only "-o $scratch/kept.json: this file is not a report: it is not replaced; name another one, or remove it"
    cmp -s "$scratch"/seq4/stats-0.json "$scratch/kept.json" || failed "statistics are replaced by a report"
    run 2 -o "" "$scratch/none"
    only "-o: the name of the report is empty"
    run 1 -o "$scratch/no.html" "$scratch/none"
    only "$scratch/none: No such file or directory"
    run 1 -o "$scratch/no.html" "$scratch"
    only "$scratch: Is a directory"
    : >"$scratch/nothing"
    run 1 -o "$scratch/no.html" "$scratch/nothing"
    only "$scratch/nothing: the file is empty"
    head -c 300000 /dev/zero >"$scratch/zeros"
    run 1 -o "$scratch/no.html" "$scratch/zeros"
    only "$scratch/zeros:1: not a line of statistics, of a trace or of --top --json of trunkline"
    # Neither memory nor time for a file without end
    [ "$sanitizer" != no ] || {
        limit_was=$(ulimit -Sv)
        ulimit -Sv 1500000
        run 1 -o "$scratch/no.html" /dev/zero
        cp "$scratch/err" "$scratch/zeros.err"
        run 1 -o "$scratch/no.html" - < <(cat "$scratch"/seq4/stats-0.json /dev/zero)
        only "standard input:2: not a line of statistics, of a trace or of --top --json of trunkline"
        cp "$scratch/zeros.err" "$scratch/err"
        ulimit -Sv "$limit_was"
        only "/dev/zero:1: not a line of statistics, of a trace or of --top --json of trunkline"
    }
    run 1 -o "$scratch/no.html" "$tool"
    [ "$(wc -l <"$scratch/err")" -eq 1 ] || failed "more than one line about a program"
    sed '1s/"counters":{/"counters":[/' "$scratch"/seq4/stats-0.json >"$scratch/broken"
    run 1 -o "$scratch/no.html" "$scratch/broken"
    [ -z "$(ls "$scratch"/no.html* 2>/dev/null)" ] || failed "a report that failed is left behind"
    run 1 -o "$scratch/none/x.html" "$scratch"/seq4/stats-0.json
    only "cannot create $scratch/none/x.html: No such file or directory"
    (umask 027 && "$tool" -o "$scratch/mode.html" "$scratch"/seq4/stats-0.json)
    [ "$(stat -c %a "$scratch/mode.html")" = 640 ] || failed "the mode of a report is $(stat -c %a "$scratch/mode.html")"
    run 0 -o "$scratch/mode.html" "$scratch"/seq4/stats-0.json
    run 1 -o /dev/full "$scratch"/seq4/stats-0.json
    only "cannot write /dev/full: No space left on device"
    run 0 -o - "$scratch"/seq4/stats-0.json
    cp "$scratch/out" "$scratch/one.html"
    run 0 -o "$scratch/two.html" - <"$scratch"/seq4/stats-0.json
    cmp -s "$scratch/one.html" "$scratch/two.html" || failed "standard input and output make another report"
    grep -qE '(src|href)="?(https?:)?//|@import|url\(' "$scratch/one.html" && failed "the report loads something"
}

hostile()
{
    local evil='<b></script><script>alert(1)</script>\"&'"'"'<img src=x onerror=alert(1)>'
    mkdir "$scratch/hostile"
    cat >"$scratch/hostile/stats.json" <<END
{"rank":0,"ranks":1,"host":"$evil","pid":7,"seconds":1.000000,"end":"$evil","counters":{"puts_inline":3,"sleeps":1},"sizes":{"puts_inline":{"8":3}},"settings":{"$evil":"$evil"}}
END
    cat >"$scratch/hostile/trace.json" <<END
[
{"name":"put","cat":"P","ph":"X","pid":0,"tid":0,"ts":1000000.000,"dur":1.000,"args":{"rank":0,"peer":0,"bytes":24,"path":"self","at":"$evil:1"}},
{"name":"put","cat":"P","ph":"X","pid":0,"tid":0,"ts":1000002.000,"dur":1.000,"args":{"rank":0,"peer":1,"bytes":24,"path":"<b>","at":"$evil:2"}},
{"name":"program","cat":"H","ph":"X","pid":0,"tid":0,"ts":1000003.000,"dur":0.000,"args":{"rank":0,"text":"$evil"}}
]
END
    cat >"$scratch/hostile/top.json" <<END
{"job":1,"program":"$evil","size":2,"hosts":1,"silent_hosts":0,"ranks":[{"rank":1,"host":"$evil","pid":2,"state":"$evil","waits_for":"$evil","wait_seconds":20.000000,"seconds":0.000000,"threads":0,"rails":0,"memory_kb":0,"private_kb":0,"counters":null,"why":"$evil"}]}
END
}

RUN="-H =n0,=n1"
recorded seq4 4 seq GASNET_AM_CREDITS_PP=4 GASNET_SUPERNODE_MAXSIZE=0
passes
RUN=
# Six ranks: barriers do not connect them all, so that some calls wait for a connection.
[ "${TRUNKLINE_TEST_TRACE_TWIN:-no}" = no ] || {
    recorded rails6 6 seq SOFTHCA_HCAS=2 GASNET_NUM_QPS=2 GASNET_PUT_STRIPE_SZ=16K REPORT_STEPS=2
    passes
}
recorded par2 2 par
passes
recorded aborted 2 seq REPORT_END=abort
[ "$status" -ne 0 ] || failed "the job ended with 0 after an abort"
mkdir "$scratch/empty"
# A rank that did nothing
sed 's/:[1-9][0-9]*\([,}]\)/:0\1/g; s/"ranks":0/"ranks":1/; s/"settings":{.*/"settings":{}}/; s/"sizes":{.*},"settings"/"sizes":{},"settings"/' \
    "$scratch"/seq4/stats-0.json >"$scratch/empty/stats.json"
command_line
command -v python3 >/dev/null || skip "python3 is not here"
hostile
for ranks in 64 1024; do
    is_cheap $((ranks / 64)) || continue
    mkdir "$scratch/made$ranks"
    python3 "$top_srcdir/tests/report/made_job.py" "$scratch/seq4/stats-0.json" "$ranks" $((ranks / 16 + 4)) "$scratch/made$ranks" >/dev/null ||
        failed "no made job of $ranks ranks"
done
[ "$sanitizer" = no ] || {
    for files in seq4 par2 aborted hostile made64; do
        run 0 -o "$scratch/page.html" "$scratch/$files"/*
    done
    finish
}
python3 -B -c "import sys; sys.path.insert(0, '$top_srcdir/tests/report'); import browser; sys.exit(0 if browser.program() else 1)" || {
    [ "$failures" -eq 0 ] || finish
    skip "Chromium is not here (contrib/install-packages.sh browser): pages were not looked at"
}
rm -rf "$pages"
mkdir -p "$pages"
command="page.py"
python3 -B "$top_srcdir/tests/report/page.py" "$tool" "$scratch" "$pages" >"$scratch/checked" 2>&1
status=$?
[ "$status" -eq 0 ] || failed "$(tail -20 "$scratch/checked")"
finish
