#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The exit status of the launcher is the job's.
. "$(dirname "$0")/lib.sh"

promise "a job that ends well has status 0 and nothing on stderr"
for n in 1 2 3 4 8; do
    job -n $n "$probe"
    status_is 0
    err_lines 0
    [ "$(sort "$work/out" | tail -n 1)" = "rank $((n - 1)) of $n" ] || fail "wrong output"
done

promise "programs that never call init run, with their own status"
job -n 3 sh -c 'echo $PMIX_RANK'
status_is 0
[ "$(sort "$work/out" | tr '\n' ' ')" = "0 1 2 " ] || fail "wrong ranks"
job -n 2 sh -c 'exit 7'
status_is 7

promise "the status of the first rank that fails, and one line when others are ended"
job -n 4 "$probe" init 2:exit=3 hang
status_is 3
err_lines 1
err_has 'rank 2 (pid [0-9]*) exited with status 3; ending the other 3'
job -n 4 "$probe" init get finalize exit=5
status_is 5

promise "a rank killed by a signal gives 128 + s and a line naming rank, pid and signal"
for s in 9 11; do
    job -n 3 "$probe" init get 1:kill=$s hang
    status_is $((128 + s))
    err_lines 1
    err_has "rank 1 (pid [0-9]*) was killed by signal $s "
done

promise "PMIx_Abort's code counts, a crash beside it counts more"
job -n 3 "$probe" init get 1:abort=42 hang
status_is 42
err_lines 0
job -n 3 "$probe" init get 1:abortmsg=6 hang
status_is 6
err_lines 1
err_has 'rank 1 (pid [0-9]*) aborted the job with status 6: I have had enough'
# The window is real time: the other order, within it, is for the unit tests.
job -n 3 "$probe" init get 1:kill=11 0:sleep=10 0:abort=1 hang
status_is 139
job -n 2 "$probe" init 0:abort=256 hang
status_is 1
job -n 2 "$probe" init 0:abort=0 hang
status_is 0

promise "leaving with 0 but without PMIx_Finalize while others run is abnormal"
job -n 3 "$probe" init fence 1:exit=0 hang
status_is 1
err_lines 1
err_has 'rank 1 (pid [0-9]*) exited with status 0 but without PMIx_Finalize'
job -n 1 "$probe" init exit=0
status_is 0

promise "a rank that leaves before init ends a job that waits for it"
job -n 3 "$probe" 1:exit=0 init fence finalize
status_is 1
err_lines 1
err_has 'rank 1 (pid [0-9]*) exited with status 0 before it joined the job'
job -n 3 "$probe" 1:kill=6 init fence finalize
status_is 134
job -n 3 "$probe" 1:exit=4 init fence finalize
status_is 4

promise "a script without #! is one of the shell, as it is elsewhere"
echo 'echo $PMIX_RANK; exit 9' >"$work/plain"
chmod +x "$work/plain"
job -n 2 "$work/plain"
status_is 9
[ "$(sort "$work/out" | tr '\n' ' ')" = "0 1 " ] || fail "not run"

promise "a script whose interpreter is missing, or cannot be run: the interpreter is named"
printf '#! /no/such/interpreter -x\necho\n' >"$work/broken"
chmod +x "$work/broken"
job -n 2 "$work/broken"
status_is 2
err_lines 1
err_has "program '.*/broken' cannot be run: its interpreter '/no/such/interpreter' (first line, #!): No such file"
printf '#!%s' "$work" >"$work/broken"
PATH=$work:$PATH job -n 2 broken
status_is 2
err_has "its interpreter '$work' (first line, #!): Is a directory"
printf '#!/bin/sh\nexit 6' >"$work/broken"
job -n 2 "$work/broken"
status_is 6

promise "a binary for another machine is refused, and not given to the shell"
{ printf '\177ELF\002\001\001'; head -c 500 /dev/zero; } >"$work/foreign"
chmod +x "$work/foreign"
job -n 2 "$work/foreign"
status_is 2
err_lines 1
err_has 'program.*cannot be executed: Exec format error'

promise "a program that cannot be executed after all: its loader is missing"
LC_ALL=C sed 's#/ld-linux#/no-linux#; s#/ld-musl#/no-musl#' /bin/true >"$work/unloadable"
chmod +x "$work/unloadable"
if ! "$work/unloadable" 2>/dev/null; then
    job -n 2 "$work/unloadable"
    status_is 2
    err_lines 1
    err_has 'cannot be executed: No such file or directory: it is there, but the loader that it names is not'
fi
exit 0
