#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A wrong command line gives one line and status 2.
. "$(dirname "$0")/lib.sh"

wrong()
{
    text=$1
    shift
    promise "wrong: $*"
    job "$@"
    status_is 2
    err_lines 1
    err_has "$text"
    out_is ""
}
wrong 'number of processes is missing'
wrong 'number of processes is missing' "$probe"
wrong 'program to run is missing' -n 2
wrong 'program to run is missing' -n 2 --
wrong 'not a number between' -n 0 "$probe"
wrong 'not a number between' -n x "$probe"
wrong 'not a number between' -n -3 "$probe"
wrong 'not a number between' -n 99999999999999999999 "$probe"
wrong 'not a number between' -np 2x "$probe"
wrong 'needs a value' -n
wrong 'unknown option -q' -q -n 2 "$probe"
wrong 'unknown option --frob' --frob -n 2 "$probe"
wrong 'only this host' -n 2 -N 2 "$probe"
wrong 'has only local' -n 2 -spawner=ssh "$probe"
wrong 'unknown spawner' -n 2 -spawner=pigeon "$probe"
wrong 'not found in PATH' -n 2 no-such-program-here
wrong 'No such file' -n 2 /no/such/program
wrong 'Is a directory' -n 2 /tmp
echo text >"$work/text"
wrong 'Permission denied' -n 2 "$work/text"
wrong 'restarting' -n 2 -restart x "$probe"
GASNET_IBV_SPAWNER=mpi wrong 'GASNET_IBV_SPAWNER=mpi' -n 2 "$probe"
GASNET_KILL_GRACE=soon wrong "GASNET_KILL_GRACE='soon' is not a number" -n 2 "$probe"
GASNET_START_TIMEOUT=-1 wrong "GASNET_START_TIMEOUT='-1' is not a number" -n 2 "$probe"
GASNET_SOFTHCA=maybe wrong 'not one of auto|always|never' -n 2 "$probe"
GASNET_SOFTHCA=always SOFTHCA_FAULT=delai wrong 'SOFTHCA_FAULT: .*delai' -n 2 "$probe"
GASNET_KILL_GRACE=' 3 ' GASNET_SOFTHCA=' auto' GASNET_QUIET=' ' job -n 2 "$probe"
[ "$status" -eq 0 ] || fail "blanks around values count: $(cat "$work/err")"

promise "every spelling of the right ones"
for spelling in "-n 2" "-n2" "-np 2" "-np2"; do
    job $spelling "$probe"
    status_is 0
    out_count 'of 2' 2 || fail "$spelling"
done
GASNET_IBV_SPAWNER=mpi job -n 2 -N 1 -c 2 -E PATH,HOME -spawner=local -- "$probe"
status_is 0
err_lines 0
job -n 1 -- "$probe" say=-n
out_is -n

promise "what cannot be printed is no success"
for option in --help --version --settings; do
    "$GASNETRUN" $option >/dev/full 2>"$work/err"
    status=$?
    status_is 1
    err_lines 1
    err_has 'cannot write standard output: No space left'
done

promise "dry run says what would be run and starts nothing"
job -t -n 2 "$probe" say=hello
status_is 0
out_is ""
err_has '2 processes on .*pmix_probe say=hello'

promise "-v tells, -k keeps the session directory"
TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -k -v -v -n 2 "$probe" >"$work/out" 2>"$work/err"
status=$?
status_is 0
err_has 'session directory'
err_has 'rank 1 is pid'
[ -n "$(ls "$work/session")" ] || fail "not kept"
rm -rf "$work"/session/*

promise "help, version and settings"
job --help
status_is 0
grep -q '^usage: gasnetrun_ibv' "$work/out" || fail "no help"
job --version
status_is 0
grep -q trunkline "$work/out" || fail "no version"
job --settings
status_is 0
grep -q '^GASNET_AM_CREDITS_PP' "$work/out" || fail "no settings"
exit 0
