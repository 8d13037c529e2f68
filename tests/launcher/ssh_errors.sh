#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every problem of another host gives one line with its name, and the job ends within a bound; both ends of the wire survive
# protocol violations. A script replaces ssh (fake_ssh.sh), so that no sshd is needed.
. "$(dirname "$0")/lib.sh"

FAKE_SSH_DIR=$work/fake
GASNET_SSH_CMD="'$(cd "$(dirname "$0")" && pwd)/fake_ssh.sh' -some -option"
GASNET_SSH_HEARTBEAT=0
export FAKE_SSH_DIR GASNET_SSH_CMD GASNET_SSH_HEARTBEAT top_builddir
unset GASNET_SSH_OPTIONS GASNET_SSH_REMOTE_PATH GASNET_MASTERIP
mkdir "$FAKE_SSH_DIR"

# wrong HOST TEXT: a job on a good host and on that one
wrong()
{
    job -n 2 -H "node1,$1" "$probe" init get finalize
    status_is 1
    err_lines 1
    err_has "gasnetrun_ibv: host $1: $2"
}

promise "hosts by a command in place of ssh"
job -n 5 -H node1:2,node2:2,node3 "$probe" init get finalize rank
status_is 0
err_lines 0
out_count 'rank [01234] of 5' 5 || fail "not all ranks"

promise "a tree: guards start guards"
GASNET_SSH_OUT_DEGREE=1 job -n 4 -H node1,node2,node3,node4 "$probe" init get finalize rank
status_is 0
out_count 'rank [0123] of 4' 4 || fail "not all ranks"
GASNET_SSH_OUT_DEGREE=1 job -n 3 -H node1,node2,dead "$probe" init get finalize rank
status_is 1
err_lines 1
err_has 'host dead: ssh: connect to host dead port 22: No route to host'

promise "ssh's errors"
wrong dead 'ssh: connect to host dead port 22: No route to host'
wrong refused 'ssh: connect to host refused port 22: Connection refused'
wrong unknown 'ssh: Could not resolve hostname unknown'
wrong password '.*Permission denied (publickey,password); it must be entered without a password'
wrong hostkey 'Host key verification failed; its host key must be known and right'
wrong mute '.*/fake_ssh.sh ended with status 1 and without a message'


promise "what is not installed there, or is something else"
GASNET_SSH_REMOTE_PATH=$work/nowhere job -n 2 -H node1,node2 "$probe" init
status_is 1
err_lines 1
err_has "host node[12]: there is no $work/nowhere/gasnetrun_ibv on it"
printf '\177ELF\2\1\1' >"$FAKE_SSH_DIR/text"
chmod +x "$FAKE_SSH_DIR/text"
wrong text 'cannot be executed there\|gasnetrun_ibv: .*' # shells differ
LC_ALL=C sed 's/trunkline build: ./trunkline build: X/' "$GASNETRUN" >"$FAKE_SSH_DIR/gasnetrun_ibv"
chmod +x "$FAKE_SSH_DIR/gasnetrun_ibv"
wrong build 'its launcher is another build (.*; here: .*); install the same one on all hosts'
if [ "$(setarch linux32 uname -m 2>/dev/null)" != "$(uname -m)" ] && setarch linux32 true 2>/dev/null; then
    wrong machine "its processors are .*, those of the launcher's host $(uname -m)"
fi

promise "a command for ssh that is none"
(
    GASNET_SSH_CMD=$work/nothing job -n 2 -H node1,node2 "$probe" init
    status_is 1
    err_lines 1
    err_has "host node[12]: cannot run $work/nothing: No such file or directory (GASNET_SSH_CMD)"
    GASNET_SSH_CMD="a 'b" job -n 2 -H node1,node2 "$probe" init
    status_is 1
    err_lines 1
    err_has 'host node1: GASNET_SSH_CMD and GASNET_SSH_OPTIONS must be words'
) || exit 1

promise "a way back that is closed is named by the guard there; one that never answers, by the launcher"
wrong firewall 'it cannot connect to 127.0.0.1:1, the launcher: Connection refused; .*GASNET_MASTERIP'
(
    export GASNET_SSH_CONNECT_TIMEOUT=0.5 GASNET_MASTERIP=127.0.0.1
    wrong silent 'its guard did not connect to 127.0.0.1:[0-9]* within 0.5 s (GASNET_SSH_CONNECT_TIMEOUT)'
) || exit 1

promise "kill -9 of the process beside a guard ends the job in order"
start -n 2 -H node1,node2 "$probe" init get child session say=ready hang
eventually 20 out_count ready 2 || fail "ranks did not start"
kill -KILL "$(named gasnetrun-keep | tail -n 1)"
finish
status_is 1
err_lines 1
err_has 'host node[12]: '
eventually 10 nothing_marked
clean

promise "on the launcher's own host ranks have its whole environment, and a guard that is killed leaves nothing"
ONLY_HERE=here job -n 2 -H localhost,node1 sh -c 'echo "here=$ONLY_HERE there=$ONLY_THERE"'
status_is 0
out_has 'here=here there=$'
out_has 'here= there=yes'
start -n 2 -H localhost,node1 "$probe" init get say=ready hang
eventually 20 out_count ready 2 || fail "ranks did not start"
kill -KILL "$(named gasnetrun-guard | head -n 1)"
finish
status_is 1
eventually 10 nothing_marked
clean

promise "a command for ssh that stays does not keep the job"
job -n 2 -H node1,linger "$probe" init get finalize
status_is 0

promise "a launcher whose output is not read waits without work when a host is lost"
mkfifo "$work/unread"
exec 9<>"$work/unread"
TRUNKLINE_TEST_MARK=$mark GASNET_OUTPUT_TIMEOUT=0 "$GASNETRUN" -n 2 -H node1,node2 \
    sh -c 'head -c 200000 /dev/zero; echo; sleep 1000' >"$work/unread" 2>"$work/err" </dev/null &
job_pid=$!
eventually 20 eval '[ "$(named gasnetrun-guard | wc -l)" -eq 2 ]' || fail "no guards"
sleep 0.5
kill -KILL "$(named gasnetrun-guard | tail -n 1)"
eventually 20 eval '[ -z "$(named gasnetrun-keep)" ]' || fail "a guard stayed"
before=$(cut -d' ' -f14 "/proc/$job_pid/stat")
sleep 0.5
[ $(($(cut -d' ' -f14 "/proc/$job_pid/stat") - before)) -lt 5 ] || fail "it is busy"
kill -KILL "$job_pid"
wait "$job_pid" 2>/dev/null
exec 9<&-
eventually 10 nothing_marked
clean

promise "a guard that breaks the protocol"
wrong hostile-foreign 'it closed the connection'
wrong hostile-version '.*another version'
wrong hostile-first '.*not a guard'
wrong hostile-huge 'a message of its guard is damaged'
wrong hostile-kind 'a message of its guard is damaged'
wrong hostile-host 'a message of its guard is damaged'
wrong hostile-cut '.*'
for seed in 1 2 3; do
    job -n 2 -H "node1,hostile-random$seed" "$probe" init get finalize
    [ $status -ne 0 ] && [ $status -lt 124 ] || fail "status $status with random frames"
    LC_ALL=C grep -q '[[:cntrl:]]' "$work/err" && fail "control characters"
done

promise "a launcher that breaks the protocol, or whose ssh is gone, leaves no guard"
for mode in foreign huge kind job cut lifeline random1 after1 after2; do
    began=$(now)
    TRUNKLINE_TEST_MARK=$mark timeout 20 "$top_builddir/tests/launcher/hostile" head "$mode" "$GASNETRUN" \
        >"$work/out" 2>"$work/err"
    status=$?
    [ "$mode" = foreign ] || status_is 0
    in_time 10 "$began" || fail "$mode: the guard stayed"
    clean
done
exit 0
