#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gasnetrun_ibv --report writes a page about a job, however it ends and on whatever hosts it runs: with the counters of all ranks. It
# keeps the status of the job, leaves nothing behind, and says in one line what the page lacks.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
command -v python3 >/dev/null || skip "python3 is not here"
export GASNET_SUPERNODE_MAXSIZE=1
patience=60 # seconds that bound a failure only
needed=$top_builddir/contrib/report/gasnet_report
[ -x "$needed" ] || failed "no $needed"

# begin N [OPTION...] -- PROGRAM...: starts a job whose page is page.html; sets launcher.
begin()
{
    command="gasnetrun_ibv $*"
    size=$1
    options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    mkdir "$scratch/tmp"
    (exec env TMPDIR="$scratch/tmp" JOB_DEADLINE=$((limit - 10)) "$GASNETRUN" --report "$scratch/page.html" -n "$size" "${options[@]}" "$@" \
        </dev/null >"$scratch/out" 2>"$scratch/err") &
    launcher=$!
}

# ended STATUS: the job ends with it.
ended()
{
    wait "$launcher"
    status=$?
    fails_with "$1"
    nothing_is_left
}

# all_marks N: all ranks of top-seq have done what they count.
all_marks()
{
    until_end=$((SECONDS + patience))
    for ((rank = 0; rank < $1; rank++)); do
        until [ -s "$scratch/marks.$rank" ]; do
            [ $SECONDS -lt $until_end ] && kill -0 "$launcher" 2>/dev/null || {
                failed "rank $rank has left no mark"
                return 1
            }
            sleep 0.02
        done
    done
}

pid_of()
{
    sed -n 's/^pid //p' "$scratch/marks.$1"
}

# shows FILE ARGUMENT...: what report_check.py says of the page
shows()
{
    python3 "$top_srcdir/tests/job/report_check.py" "$@" >"$scratch/shown" 2>&1 || failed "$(cat "$scratch/shown")"
}

# In a library configured with --enable-trace each program records a trace.
traces=no lines_without=1
[ "${TRUNKLINE_TEST_TRACE:-no}" = no ] || traces=yes lines_without=0

# A job that ends well, of a program that records no trace; and one of the trace twin.
well()
{
    RUN="--report $scratch/page.html" good 2 "$jobs/am-seq"
    shows "$scratch/page.html" stats=0,1 hosts=1 "timeline=$traces" "title=Report of am-seq"
    says 'the report .*/page.html lacks a time line, for which the program must be linked with a trace twin$' "$lines_without"
    says '' "$lines_without"
    RUN="--report $scratch/page.html" good 2 "$jobs/report_traced"
    # Not those by which --report collects files
    shows "$scratch/page.html" stats=0,1 hosts=1 timeline=yes no_setting=GASNET_STATSFILE no_setting=GASNET_TRACEFILE
    [ ! -s "$scratch/err" ] || failed "words about a page that lacks nothing"
}

# On two virtual hosts one rank fails after it has left in order.
failing()
{
    RUN="--report $scratch/page.html -H =n0,=n1" job 4 sh -c "'$jobs/am-seq' && exit \$PMIX_RANK"
    fails_with 3
    shows "$scratch/page.html" stats=0,1,2,3 hosts=2 "timeline=$traces"
}

# A fatal signal in one rank; the others are ended. Two hosts, by a command in place of ssh that runs both here.
aborted()
{
    export GASNET_SSH_CMD="'$top_srcdir/tests/launcher/fake_ssh.sh'" FAKE_SSH_DIR=$scratch TRUNKLINE_TEST_MARK=none
    begin 2 -H node1,node2 -- "$jobs/top-seq" "$scratch/marks"
    all_marks 2 && kill -ABRT "$(pid_of 1)"
    ended 134
    shows "$scratch/page.html" stats=0,1 hosts=1 "marks=$scratch/marks" "how=1:a fatal signal" "how=0:ended by SIGTERM"
    unset GASNET_SSH_CMD FAKE_SSH_DIR TRUNKLINE_TEST_MARK
}

# ^C
interrupted()
{
    begin 3 -H =n0:2,=n1:1 -- "$jobs/top-seq" "$scratch/marks"
    all_marks 3 && kill -INT "$launcher"
    ended 130
    shows "$scratch/page.html" stats=0,1,2 hosts=2 "marks=$scratch/marks"
}

# A rank that has no time to write anything: what was seen of it last. Samples are taken each second.
killed()
{
    begin 2 -- sh -c "echo pid \$\$ >'$scratch/marks.'\$PMIX_RANK && exec '$jobs/hang-seq' barrier '$scratch/mark'"
    all_marks 2 && sleep 2 && kill -KILL "$(pid_of 1)"
    ended 137
    shows "$scratch/page.html" stats=0 top=1 hosts=1
    says 'lacks statistics of 1 rank (first: 1), which wrote none' 1
}

# A launcher that is killed leaves no empty page.
orphaned()
{
    begin 2 -- "$jobs/top-seq" "$scratch/marks"
    all_marks 2
    kill -KILL "$launcher"
    { wait "$launcher"; } 2>/dev/null
    status=$?
    [ ! -e "$scratch/page.html" ] || failed "an empty page"
    until_end=$((SECONDS + patience)) # guards end by themselves
    while [ -n "$(ls "$scratch/tmp")" ] && [ $SECONDS -lt $until_end ]; do
        sleep 0.05
    done
    nothing_is_left
}

# The tool fails; or ^Z, which it alone would get, and ^C come while the launcher waits for it. A copy of the launcher has a tool beside it
# that takes long.
tool()
{
    mkdir "$scratch/bin"
    cp "$GASNETRUN" "$scratch/bin/gasnetrun_ibv"
    GASNETRUN=$scratch/bin/gasnetrun_ibv
    export TRUNKLINE_SOFTHCA_LIB=$top_builddir/contrib/softhca/libsofthca.so
    printf '#!/bin/sh\nexit 1\n' >"$scratch/bin/gasnet_report"
    chmod 755 "$scratch/bin/gasnet_report"
    RUN="--report $scratch/page.html" job 1 "$jobs/barrier-seq"
    fails_with 74
    says "there is no report in $scratch/page.html: gasnet_report failed, for the reason above" 1
    printf '#!/bin/sh\necho $$ >"%s/pid.new"; mv "%s/pid.new" "%s/pid"; exec sleep 100\n' "$scratch" "$scratch" "$scratch" >"$scratch/bin/gasnet_report"
    begin 1 -- "$jobs/barrier-seq"
    until_end=$((SECONDS + patience))
    until [ -s "$scratch/pid" ] || [ $SECONDS -ge $until_end ]; do
        sleep 0.02
    done
    read -r pid <"$scratch/pid" || failed "the tool does not run"
    kill -TSTP "$pid"
    sleep 0.1
    grep -q '^State:.*[TZ]' "/proc/$pid/status" && failed "the tool is stopped, and the launcher waits for it"
    kill -INT "$launcher"
    ended 74
    says "there is no report in $scratch/page.html: a signal ended it before it was whole" 1
    [ ! -e "$scratch/page.html" ] || failed "a page that is not whole"
}

# The user's own files stay, and are read where they are of one rank each.
own_files()
{
    RUN="--report $scratch/page.html" SETTINGS="GASNET_STATSFILE=$scratch/own-%.json" good 2 "$jobs/am-seq"
    shows "$scratch/page.html" stats=0,1 hosts=1 "timeline=$traces"
    [ -s "$scratch/own-0.json" ] && [ -s "$scratch/own-1.json" ] || failed "the user's own files are gone"
    rm -f "$scratch/page.html"
    touch -d '1 hour ago' "$scratch/own-0.json" "$scratch/own-1.json"
    RUN="--report $scratch/page.html" SETTINGS="GASNET_STATSFILE=$scratch/own-%.json" job 2 true
    fails_with 74 "files of a former job"
    [ ! -e "$scratch/page.html" ] || failed "an empty page"
    # If the job takes a second there is a page, with a sample.
    RUN="--report $scratch/page.html" SETTINGS="GASNET_STATSFILE=$scratch/shared.json" job 2 "$jobs/barrier-seq"
    [ -e "$scratch/page.html" ] || fails_with 74
    says ": GASNET_STATSFILE=$scratch/shared.json has no % for the rank" 1
}

# Before the job: nothing has run. After it: an older page stays.
refused()
{
    for name in "$scratch/no/page.html" "$scratch" /proc/self/status/x; do
        RUN="--report $name" job 1 touch "$scratch/has_run"
        fails_with 2
        says "--report $name: cannot write it: .*; name a file that you can write" 1
    done
    RUN="--report $scratch/page.html -spawner=mpi" SETTINGS=GASNET_MPIRUN_CMD=true job 1 touch "$scratch/has_run"
    fails_with 2
    says 'mpirun and srun start these ranks and bring no files back' 1
    RUN="-t --report $scratch/page.html" job 1 touch "$scratch/has_run"
    fails_with 0
    [ ! -e "$scratch/has_run" ] && [ ! -e "$scratch/page.html" ] || failed "a job was run, or a page made"
    mkfifo "$scratch/pipe" # that nobody reads
    RUN="--report $scratch/pipe" job 1 touch "$scratch/has_run"
    fails_with 2
    says "--report $scratch/pipe: cannot write it: No such device or address; name a file that you can write" 1
    echo "#!/bin/sh" >"$scratch/program"
    RUN="--report $scratch/program" job 1 touch "$scratch/has_run"
    fails_with 2
    says "--report $scratch/program: this file is not a report: it is not replaced; name another one, or remove it" 1
    [ ! -e "$scratch/has_run" ] && [ "$(cat "$scratch/program")" = "#!/bin/sh" ] || failed "a job was run, or a program replaced"
    old='<!DOCTYPE html>old'
    echo "$old" >"$scratch/page.html"
    RUN="--report $scratch/page.html" job 1 true
    fails_with 74
    says "there is no report in $scratch/page.html: no rank wrote statistics or a trace" 1
    [ "$(cat "$scratch/page.html")" = "$old" ] || failed "an older page is gone"
    RUN="--report /dev/full" job 1 "$jobs/barrier-seq"
    fails_with 74
    says '--report /dev/full: cannot write it: No space left on device' 1
}

for name in well failing aborted interrupted killed orphaned tool own_files refused; do
    lane $name $name
done
finish
