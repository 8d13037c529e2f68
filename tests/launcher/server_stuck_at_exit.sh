#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A PMIx server that is stuck when the ranks leave does not change the status that they agreed on.
. "$(dirname "$0")/lib.sh"
GASNET_EXITTIMEOUT=0.5 # 3 s later the ranks' watchdogs end what waits for the server
export GASNET_EXITTIMEOUT
parting=$top_builddir/tests/job/exit_on_file-seq

# part CODE: a job that exits with CODE while the server is stopped
part()
{
    rm -f "$work/go"
    start -n 3 "$parting" "$work/go" "$1"
    eventually 15 out_count ready 3 || fail "ranks did not start"
    kill -STOP "$(named gasnetrun-pmix)"
    echo >"$work/go"
    finish
    status_is "$1"
    clean
}

good()
{
    promise "a good job stays one, without a word"
    part 0
    err_lines 0
}

failed()
{
    promise "a code that all agree on stays as it is"
    part 5
}

aside good
aside failed

promise "a rank that leaves without the others' consent is still told"
job -n 2 "$probe" init 1:exit=0 hang
status_is 1
joined good
joined failed
exit 0
