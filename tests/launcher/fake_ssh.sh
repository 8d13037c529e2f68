#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Replaces ssh in tests of the launcher. The last two arguments are a host and a command, and the host's name selects
# the behaviour. Names that begin with "node" run the command on this machine, with as little environment as sshd gives
# it. FAKE_SSH_DIR has files that some names need.
while [ $# -gt 2 ]; do
    shift
done
host=$1
command=$2

remote()
{
    exec env -i "PATH=$PATH" HOME=/ "TRUNKLINE_TEST_MARK=$TRUNKLINE_TEST_MARK" "FAKE_SSH_DIR=$FAKE_SSH_DIR" \
        "top_builddir=$top_builddir" ONLY_THERE=yes "$@"
}

refuse()
{
    echo "$1" >&2
    exit 255
}

case $host in
node*) remote sh -c "$command" ;;
dead*) refuse "ssh: connect to host $host port 22: No route to host" ;;
refused) refuse "ssh: connect to host refused port 22: Connection refused" ;;
unknown) refuse "ssh: Could not resolve hostname unknown: Name or service not known" ;;
password)
    echo "Welcome" >&2
    refuse "me@password: Permission denied (publickey,password)."
    ;;
hostkey)
    echo "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @" >&2
    refuse "Host key verification failed."
    ;;
mute) exit 1 ;;
linger) # keeps running when the guard has ended
    remote sh -c "($command); sleep 1000"
    ;;
silent) exec sleep 1000 ;;
firewall) # connections back to the launcher fail
    remote sh -c "$(printf '%s' "$command" | sed 's/--guard [^ ]*/--guard 127.0.0.1:1/')"
    ;;
nothing) remote sh -c "$(printf '%s' "$command" | sed 's/gasnetrun_ibv/gasnetrun_not_there/')" ;;
text) remote sh -c "exec '$FAKE_SSH_DIR/text' ${command#* * }" ;;
build) remote sh -c "exec '$FAKE_SSH_DIR/gasnetrun_ibv' ${command#* * }" ;;
machine) remote setarch linux32 sh -c "$command" ;;
hostile-*) # our own end of the wire breaks the protocol
    remote sh -c "exec '$top_builddir/tests/launcher/hostile' guard ${host#hostile-} ${command#*--guard }"
    ;;
*) refuse "fake_ssh: no host $host" ;;
esac
