#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A job on two machines without RDMA ports, made of network namespaces: the launcher finds the network over which the
# guards called back, and softhca's packets use it. The only setting is the command that replaces ssh.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
limit=60
made=

# Addresses of this test's own: 198.18.0.0/15 is for tests of networks (RFC 2544).
net=198.18.$(($$ % 250))
bridge=tkb$$

remove_machines()
{
    for k in $made; do
        ip netns delete "tk$$-$k"
    done
    ip link delete "$bridge" 2>/dev/null
}

make_machine()
{
    ip netns add "tk$$-$1" || return
    made="$made $1"
    ip link add "tkv$$-$1" type veth peer name e0 netns "tk$$-$1" && ip link set "tkv$$-$1" master "$bridge" up &&
        ip -n "tk$$-$1" address add "$net.$1/24" dev e0 && ip -n "tk$$-$1" link set e0 up && ip -n "tk$$-$1" link set lo up
}

make_machines()
{
    command -v ip >/dev/null && ip link add "$bridge" type bridge && ip address add "$net.1/24" dev "$bridge" &&
        ip link set "$bridge" up && make_machine 2 && make_machine 3
}

trap 'remove_machines; rm -rf "$scratch"' EXIT
if ! make_machines 2>"$scratch/why"; then
    echo "network namespaces can't be made here: $(head -n 1 "$scratch/why")"
    exit 77
fi
cat >"$scratch/ssh" <<EOF
#!/bin/sh
while [ \$# -gt 2 ]; do shift; done
exec ip netns exec "tk$$-\${1##*.}" sh -c "\$2"
EOF
chmod +x "$scratch/ssh"

# Both machines have one kernel, so ranks of different machines could share memory; a setting prevents that.
export GASNET_SSH_CMD=$scratch/ssh GASNET_SUPERNODE_MAXSIZE=1
RUN="-v -H $net.2,$net.3"
good 4 "$jobs/hello-seq"
says "softhca reaches other hosts by the network $net.0/24" 1
says "using softhca over the network" 1
good 2 "$jobs/am-seq"
# The launcher's own host is one of them, and its ranks are forked.
RUN="-v -H localhost,$net.3"
good 2 "$jobs/am-seq"
says "using softhca over the network" 1
SETTINGS=GASNET_SOFTHCA=never job 2 "$jobs/hello-seq"
fails_with 1 "no port and no softhca"
says 'no host of the job has an active RDMA port, and GASNET_SOFTHCA=never' 1
finish
