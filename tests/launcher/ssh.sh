#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Jobs over ssh: a real sshd with its own keys on a loopback port, where 127.0.0.2 and 127.0.0.3 are two hosts. What
# travels there and back, how jobs end, and that nothing is left when any part is killed.
. "$(dirname "$0")/lib.sh"

skip()
{
    echo "$*"
    exit 77
}

sshd=$(PATH=$PATH:/usr/sbin:/sbin command -v sshd) || skip "no sshd (Debian package openssh-server)"
command -v ssh >/dev/null || skip "no ssh (Debian package openssh-client)"

# As root sshd wants a directory that its service makes.
[ "$(id -u)" -ne 0 ] || [ -d /run/sshd ] || mkdir -m 755 /run/sshd || skip "cannot make /run/sshd"
login=$(getent passwd "$(id -u)" | cut -d: -f7)
"${login:-/nonexistent}" -c : 2>/dev/null || skip "user $(id -u) has no shell to log in with"

keys=$work/keys
mkdir -m 700 "$keys"
for k in host user stranger; do
    ssh-keygen -q -t ed25519 -N '' -C test -f "$keys/$k" || fail "no key"
done
cp "$keys/user.pub" "$keys/authorized"

write_config()
{
    cat >"$keys/config" <<END
Port $port
ListenAddress 127.0.0.2
ListenAddress 127.0.0.3
HostKey $keys/host
AuthorizedKeysFile $keys/authorized
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 100
AcceptEnv TRUNKLINE_TEST_MARK
SetEnv HOME=$keys
END
    sed "s/^[^ ]* [^ ]*/[127.0.0.2]:$port,[127.0.0.3]:$port &/; s/ test\$//" "$keys/host.pub" >"$keys/known"
    : >"$keys/log"
}

# The home directory is ours, so that no login shell reads the user's start-up files. Another
# process may have the port.
sshd_pid=
port=$((20000 + $$ % 20000))
listening() { grep -q 'Server listening on 127.0.0.3' "$keys/log" && grep -q 'Server listening on 127.0.0.2' "$keys/log"; }
for _ in 1 2 3 4 5; do
    write_config
    "$sshd" -D -e -f "$keys/config" 2>"$keys/log" &
    sshd_pid=$!
    eventually 5 listening && break
    kill "$sshd_pid" 2>/dev/null
    wait "$sshd_pid"
    sshd_pid=
    port=$((port + 997))
done
[ -n "$sshd_pid" ] || skip "sshd does not start here: $(tail -n 1 "$keys/log")"

end_sshd()
{
    status=$?
    kill "$sshd_pid" 2>/dev/null
    (exit $status)
    cleanup
}
trap end_sshd EXIT

# An abandoned remote login shell continues until it notices that nobody waits for it.
nothing_left() { nothing_marked || ! sleep 0.1; } # looking costs more than waiting
clean()
{
    eventually 10 nothing_left ||
        fail "processes left: $(for p in $(marked); do tr '\0' ' ' <"/proc/$p/cmdline"; done)"
    eventually 2 session_empty || fail "left in the session directory: $(ls "$work/session")"
}

GASNET_SSH_CMD=ssh
options="-F none -p $port -i $keys/user -o IdentitiesOnly=yes -o UserKnownHostsFile=$keys/known -o SendEnv=TRUNKLINE_TEST_MARK"
GASNET_SSH_OPTIONS=$options
export GASNET_SSH_CMD GASNET_SSH_OPTIONS
hosts=127.0.0.2:2,127.0.0.3:2
unset A B ONLY

promise "ranks on both hosts join, in blocks, and see their hosts"
job -l -n 4 -H "$hosts" "$probe" init get finalize rank
status_is 0
err_lines 0
out_count 'rank [0123] of 4' 4 || fail "not all ranks"

promise "a conduit job over two hosts"
GASNET_SUPERNODE_MAXSIZE=2 job -n 4 -H "$hosts" "$top_builddir/tests/job/am-seq"
status_is 0

promise "directory, settings, named variables, limits and standard input travel; the environment there is the base"
mkdir "$work/some where"
cat >"$work/report" <<'END'
#!/bin/sh
read -r line || line=none
echo "$line|$(pwd)|$GASNET_OF_TEST|$A|$B|$(ulimit -Sn)|$(ulimit -Ss)|${SSH_CONNECTION:+there}|$1"
END
chmod +x "$work/report"
(
    cd "$work/some where" || exit 1
    ulimit -Sn 200 && ulimit -Ss 5000
    export A='a b' B=b GASNET_OF_TEST='it is "quoted" $HOME'
    echo first | job -l -n 4 -E A,C -H "$hosts" ../report '*'
) || exit 1
line="$work/some where|it is \"quoted\" \$HOME|a b||200|5000|there|*"
sort "$work/out" >"$work/sorted"
printf '[0] first|%s\n[1] none|%s\n[2] none|%s\n[3] none|%s\n' "$line" "$line" "$line" "$line" >"$work/wanted"
diff "$work/wanted" "$work/sorted" || fail "ranks saw something else"

promise "the status of a rank there is that of the job"
job -n 4 -H "$hosts" "$probe" init get 3:exit=9 hang
status_is 9

promise "a program or a directory that is missing there is named with the host"
cat >"$work/ssh-without" <<END
#!/bin/sh
# As ssh, but the host lacks what only this one has.
mv "$work/here" "$work/gone" 2>/dev/null
exec ssh "\$@"
END
chmod +x "$work/ssh-without"
cp "$work/report" "$work/here"
GASNET_SSH_CMD=$work/ssh-without job -n 2 -H 127.0.0.2,127.0.0.3 "$work/here"
status_is 2
err_lines 1
err_has "host 127.0.0.[23]: the program $work/here cannot be executed: No such file"
mkdir "$work/here.d"
sed -i "s,/here,/here.d,; s,/gone,/gone.d," "$work/ssh-without"
(cd "$work/here.d" && GASNET_SSH_CMD=$work/ssh-without job -n 2 -H 127.0.0.2,127.0.0.3 "$probe" init) || exit 1
err_lines 1
err_has "host 127.0.0.[23]: cannot change to the working directory $work/here.d: No such file"

promise "what ssh says of a host is said with its name"
# refused HOST TEXT: with the options $more
refused()
{
    GASNET_SSH_OPTIONS="$more $options" job -n 2 -H "127.0.0.2,$1" "$probe" init get finalize
    status_is 1
    err_lines 1
    err_has "host 127.0.0.[23]: .*$2"
}
more="-o Port=1"
refused 127.0.0.3 'ssh: connect to host .* port 1: Connection refused'
more="-o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes"
refused 127.0.0.3 'Host key verification failed; its host key must be known'
more="-o IdentityFile=$keys/stranger -o IdentityAgent=none"
sed "s,-i $keys/user,," <<END >"$work/options"
$options
END
options=$(cat "$work/options") refused 127.0.0.3 'Permission denied (publickey.*); it must be entered without a password'

promise "GASNET_MASTERIP alone is called, although ssh came from an address that works"
for address in 127.0.0.1 localhost; do
    GASNET_MASTERIP=$address job -n 2 -H 127.0.0.2,127.0.0.3 "$probe" init get finalize rank
    status_is 0
done
GASNET_SSH_CONNECT_TIMEOUT=1 GASNET_MASTERIP=198.51.100.1 job -n 2 -H 127.0.0.2,127.0.0.3 "$probe" init
status_is 1
err_lines 1
err_has 'host 127.0.0.[23]: .* 198.51.100.1:[0-9]*[, ].*GASNET_MASTERIP'

# begin WORDS...: a job of two ranks on each host
begin()
{
    start -n 4 -H "$hosts" "$probe" init get "$@" say=ready hang
    eventually 20 out_count ready 4 || fail "ranks did not start"
}
parent_of() { sed -n 's/^PPid:[[:space:]]*//p' "/proc/$1/status"; }

# The secret is in no argument and in no environment: it has 64 digits.
look_for_secret()
{
    for p in $(marked) $(named ssh); do
        tr '\0' '\n' <"/proc/$p/cmdline"
        tr '\0' '\n' <"/proc/$p/environ"
    done 2>/dev/null | grep -E '(^|[^0-9a-f])[0-9a-f]{64}' && fail "a secret can be seen"
}

by_signal()
{
    promise "SIGINT ends ranks on all hosts; the secret of the job can't be seen; SIGTSTP and SIGCONT"
    begin
    look_for_secret
    kill -TSTP "$job_pid"
    eventually 10 all_stopped || fail "not all stopped"
    kill -CONT "$job_pid"
    eventually 10 none_stopped || fail "not all go on"
    kill -INT "$job_pid"
    finish
    status_is 130
    err_lines 0
    clean
    promise "SIGUSR1 reaches ranks on all hosts"
    begin
    kill -USR1 "$job_pid"
    finish
    status_is 138
    clean
}
all_stopped()
{
    for p in $job_pid $(named pmix_probe); do
        grep -qs '^State:.*T' "/proc/$p/status" || return 1
    done
}
none_stopped() { ! grep -ls '^State:.*T' $(for p in $job_pid $(named pmix_probe); do echo "/proc/$p/status"; done) >/dev/null; }

killed_rank()
{
    promise "kill -9 of a rank there"
    begin child session
    victim=$(named pmix_probe | tail -n 1)
    while [ "$(cat "/proc/$(parent_of "$victim")/comm")" != gasnetrun-guard ]; do
        victim=$(parent_of "$victim")
        [ "$victim" -gt 1 ] || fail "no rank"
    done
    kill -KILL "$victim"
    finish
    status_is 137
    err_lines 1
    err_has "pid $victim on 127.0.0.[23]) was killed by signal 9"
    clean
}

killed_head()
{
    promise "kill -9 of the launcher"
    begin child session ignoreterm
    kill -KILL "$job_pid"
    finish
    status_is 137
    clean
}

# killed COMM SENTENCE: the process of that name on one of the hosts
killed()
{
    promise "kill -9 of $1"
    begin child session ignoreterm
    kill -KILL "$(named "$1" | head -n 1)"
    finish
    status_is 1
    err_lines 1
    err_has "host 127.0.0.[23]: $2"
    clean
}
killed_guard() { killed gasnetrun-guard '.*'; }
killed_server() { killed gasnetrun-pmix '.*PMIx server process was killed by signal 9'; }
killed_ssh() { killed ssh 'ssh was killed by signal 9'; }

# The process that watches the guard.
killed_keeper()
{
    promise "kill -9 of what would clean up after a killed guard"
    begin child session ignoreterm
    kill -KILL "$(named gasnetrun-keep | head -n 1)"
    finish
    status_is 1
    err_has "host 127.0.0.[23]: "
    clean
}

killed_session()
{
    promise "kill -9 of the session of sshd"
    begin child session ignoreterm
    kill -KILL "$(parent_of "$(named gasnetrun-guard | head -n 1)")"
    finish
    status_is 1
    err_lines 1
    err_has "host 127.0.0.[23]: .*"
    clean
}

# As if the host were switched off: nothing on it runs any more, and no connection breaks.
silent_host()
{
    promise "a host that falls silent is named"
    GASNET_SSH_HEARTBEAT=0.6
    export GASNET_SSH_HEARTBEAT
    begin child session ignoreterm
    guard=$(named gasnetrun-guard | head -n 1)
    kill -STOP "$(parent_of "$guard")" "$guard"
    finish
    status_is 1
    err_lines 1
    err_has "host 127.0.0.[23]: no sign of life for 2.4 s"
    eventually 5 only_stopped || fail "processes left beside the stopped ones: $(marked)"
    kill -CONT "$(parent_of "$guard")" "$guard"
    clean
}
only_stopped() { [ "$(marked | wc -l)" -le 10 ]; }

for part in by_signal killed_rank killed_head killed_guard killed_keeper killed_server killed_ssh killed_session silent_host; do
    aside $part
done
for part in by_signal killed_rank killed_head killed_guard killed_keeper killed_server killed_ssh killed_session silent_host; do
    joined $part
done
exit 0
