#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mcswitchd as a process: every wrong option gives one line with the legal values and status 2; the controller serves correct
# members despite wrong keys, wrong lengths, crowds of outsiders and hosts without CPU; only the administrator can use its socket; it
# ends by SIGTERM with nothing left, and can be restarted after kill -9.
. "${top_srcdir:?}/tests/mcswitch/common.sh"

# wrong TEXT OPTION...: status 2 and one line with TEXT, and the usage's name
wrong()
{
    local text=$1 status
    shift
    "$mcswitchd" "$@" >"$work/out" 2>&1
    status=$?
    [ $status = 2 ] || fail "$*: status $status"
    grep -qF -- "$text" "$work/out" || fail "$*: no '$text' in: $(cat "$work/out")"
    [ "$(wc -l <"$work/out")" = 1 ] || fail "$*: not one line: $(cat "$work/out")"
}

c='--control 127.0.0.1:9 --udp 127.77.1.1,127.77.1.2'
# shellcheck disable=SC2086 # options
{
    wrong '--control HOST:PORT is missing' --udp 127.77.1.1,127.77.1.2
    wrong 'neither --udp nor --port' --control 127.0.0.1:9
    wrong 'is not host:port, with a port from 1 to 65535' --control 127.0.0.1 --udp 127.77.1.1,127.77.1.2
    wrong 'is not host:port, with a port from 1 to 65535' --control 127.0.0.1:70000 --udp 127.77.1.1,127.77.1.2
    wrong 'port 4791 or 45056 to 49151' --control 127.0.0.1:9 --udp 127.77.1.1
    wrong 'port 4791 or 45056 to 49151' --control 127.0.0.1:9 --udp 127.77.1.1,127.77.1.1
    wrong 'port 4791 or 45056 to 49151' --control 127.0.0.1:9 --udp 127.77.1.1:80,127.77.1.2
    wrong 'port 4791 or 45056 to 49151' --control 127.0.0.1:9 --udp 127.77.1.1:45056,127.77.1.2:49152
    wrong 'port 4791 or 45056 to 49151' --control 127.0.0.1:9 --udp 127.77.1,127.77.1.2
    wrong 'from 10 to 600000' $c --lease 9
    wrong 'from 10 to 600000' $c --lease 10ms
    wrong 'from 1 to 4096' $c --groups 0
    wrong 'from 1 to 4096' $c --groups 4097
    wrong 'one of 256, 512, 1024, 2048 and 4096' $c --mtu 1500
    wrong 'from 0 to 90' $c --loss 91
    wrong 'from 0 to 90' $c --loss -1
    wrong 'from 0 to 90' $c --loss nan
    wrong 'two different IPv4 addresses' $c --vip 10.0.0.1
    wrong 'two different IPv4 addresses' $c --vip 10.0.0.1,10.0.0.1
    wrong 'two different IPv4 addresses' $c --vip 10.0.0.1,255.255.255.255
    wrong 'there is no --port' $c --vip 10.0.0.1,10.0.0.2
    wrong '--port needs --vip' $c --port packet:lo
    wrong 'there is no such interface' $c --vip 10.0.0.1,10.0.0.2 --port packet:no-such-if
    wrong 'neither packet:INTERFACE nor dgram:LOCAL,REMOTE' $c --vip 10.0.0.1,10.0.0.2 --port eth0
    wrong 'both are A.B.C.D:PORT' $c --vip 10.0.0.1,10.0.0.2 --port dgram:127.0.0.1:1
    wrong 'both are A.B.C.D:PORT' $c --vip 10.0.0.1,10.0.0.2 --port dgram:127.0.0.1:1,/tmp/x
    wrong 'both are A.B.C.D:PORT' $c --vip 10.0.0.1,10.0.0.2 --port dgram:127.0.0.1,127.0.0.1:2
    wrong 'both are A.B.C.D:PORT' $c --vip 10.0.0.1,10.0.0.2 --port dgram:127.0.0.1:99999,127.0.0.1:2
    wrong 'cannot be read' $c --key /no/such/file
    wrong '64 hexadecimal digits' $c --key /etc/hostname
    wrong 'none of stat, destroy and loss' start
    wrong 'from 0 to 90' --socket /tmp/x loss 100
    wrong 'the socket of the running switch is missing' stat
    wrong 'takes the number of a group' --socket /tmp/x destroy
    wrong 'from 1 to 4096' --socket /tmp/x destroy 0
    wrong 'from 1 to 4096' --socket /tmp/x stat x
}
"$mcswitchd" --socket "$work/none" stat >"$work/out" 2>&1 && fail "a switch that is not there answers"
grep -q 'no switch answers' "$work/out" || fail "no reason: $(cat "$work/out")"
"$mcswitchd" --help | grep -q -- '--control HOST:PORT' || fail "--help"
"$mcswitchd" --version | grep -q '^mcswitchd (Trunkline) ' || fail "--version"
for question in --help --version; do
    "$mcswitchd" $question >/dev/full 2>"$work/out" && fail "$question on a full disk has status 0"
    grep -q '^mcswitchd: cannot write standard output: No space left' "$work/out" || fail "$question: $(cat "$work/out")"
done

# The controller, first without a key of its own, then with one.
start --udp $vips
"$top_builddir/tests/mcswitch/controller" $controller || fail "the controller"
[ "$(counter control refused_key)" -ge 1 ] || fail "wrong keys are not counted"
[ "$(counter control malformed)" -ge 100 ] || fail "lies are not counted"
[ "$(counter control slow)" = 1 ] || fail "a slow reader is not counted"
stat | grep -q '^group ' && fail "a group outlived its job: $(stat)"
[ "$(/usr/bin/stat -c %a "$work/socket")" = 600 ] || fail "the socket's mode is $(/usr/bin/stat -c %a "$work/socket")"
"$mcswitchd" --socket "$work/socket" destroy 3 >"$work/out" 2>&1 && fail "a group that is not there was destroyed"
grep -q 'there is no group 3' "$work/out" || fail "no reason: $(cat "$work/out")"
# A second switch does not replace a running one.
"$mcswitchd" --control 127.0.0.1:9 --udp $vips --socket "$work/socket" >"$work/out" 2>&1
[ $? = 1 ] || fail "a second switch with the same addresses: $(cat "$work/out")"
stat >/dev/null || fail "the second switch broke the first"
stop
# Members and strangers without CPU, and a switch without. It closes one member in favour of strangers, and one after 5 s.
start --udp $vips
"$top_builddir/tests/mcswitch/controller" $controller crowd $switch || fail "the controller with a crowd: $(stat)"
stop
# 160 files: 32 members beside the 128 for other things. Strangers do not use up what members need.
cat >"$work/limited" <<END
#!/bin/bash
ulimit -n 160
exec "$mcswitchd" "\$@"
END
chmod +x "$work/limited"
mcswitchd=$work/limited start --udp $vips
"$top_builddir/tests/mcswitch/controller" $controller full 32 || fail "the controller with 32 connections: $(stat)"
"$top_builddir/tests/mcswitch/controller" $controller || fail "the controller with 160 files: $(stat)"
stop
printf '%064d\n' 12345 >"$work/key"
start --udp $vips --key "$work/key"
"$top_builddir/tests/mcswitch/controller" $controller "$work/key" || fail "the controller with a key"
"$top_builddir/tests/mcswitch/controller" $controller >"$work/out" 2>&1 && fail "members without the switch's key"
grep -q 'refused' "$work/out" || fail "no reason: $(cat "$work/out")"
# Killed: a new one replaces the socket and takes the ports at once.
kill -9 $switch
{ wait $switch; } 2>/dev/null
[ -e "$work/socket" ] || fail "nothing was left by kill -9: the test is wrong"
start --udp $vips
stat >/dev/null || fail "after kill -9"
stop
finish
