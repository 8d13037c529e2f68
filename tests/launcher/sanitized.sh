#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The launcher itself under the sanitizer of the tree: all other tests of such a tree run a plain one, which starts faster.
# A sanitizer report is text on standard error and a distinct status.
: "${top_builddir:=$(pwd)}"
GASNETRUN=$top_builddir/spawner/gasnetrun_sanitized
. "$(dirname "$0")/lib.sh"
limit=90 # a job under a sanitizer on a busy machine

promise "start, exchange and end of a good job"
job -n 4 "$probe" init keys get fence get rank finalize
status_is 0
err_lines 0

promise "several hosts: maps, fences, questions, a killed guard"
GASNET_SSH_OUT_DEGREE=1 job -n 4 -H =a:1,=b:2,=c:1 "$probe" init map=a:1,b:2,c:1 put 0:ask=3 3:ask=1 among=0,3 get rank finalize
status_is 0
err_lines 0
start -n 3 -H =a,=b,=c "$probe" init get say=here hang
eventually "$limit" out_count here 3 || fail "no start"
kill -KILL "$(named gasnetrun-guard | tail -n 1)"
finish
status_is 1
err_lines 1
err_has 'its guard process was killed'

promise "output of many pieces, with labels"
job -l -n 4 "$probe" lines=200 long=200000 part=end
status_is 0
err_lines 0

promise "a rank that leaves with a status, one that aborts, one that dies"
job -n 3 "$probe" init 1:exit=3 hang
status_is 3
err_lines 1
job -n 3 "$probe" init get 1:abortmsg=6 hang
status_is 6
err_lines 1
job -n 3 "$probe" init get 1:kill=9 hang
status_is 137
err_lines 1

promise "a job that is ended from outside"
start -n 2 "$probe" init say=here hang
eventually "$limit" out_count here 2 || fail "no start"
kill -TERM "$job_pid"
finish
status_is 143
! grep -i sanitizer "$work/err" || fail "a report"
clean
exit 0
