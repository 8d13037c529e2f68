#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Inside the VM: two devices are there, of the kernel's kind, and talk to each other.
set -u

fail()
{
    echo "FAIL: $*"
    exit 1
}

# Polls until a process listens on the port, because ibv_rc_pingpong prints nothing when it is
# ready.
await_listener()
{
    local i
    for ((i = 0; i < 200; i++)); do
        ! ss -Hltn "sport = :$1" | grep -q . || return 0
        sleep 0.05
    done
    fail "nobody listens on port $1"
}

# A link-local address is not used before it is known to be unique (duplicate address detection, about a second): a queue pair
# with it cannot be taken to RTR.
await_addresses()
{
    local i
    for ((i = 0; i < 100; i++)); do
        ip -6 addr show tentative | grep -q . || return 0
        sleep 0.05
    done
    fail "an address is still tentative: $(ip -6 addr show tentative)"
}

for device in rxe0 rxe1; do
    ibv_devices | grep -qw $device || fail "no $device"
    ibv_devinfo -d $device | grep -q 'link_layer:.*Ethernet' || fail "$device is not Ethernet"
    ibv_devinfo -d $device | grep -q 'state:.*PORT_ACTIVE' || fail "$device is not active"
done

await_addresses
timeout 20 ibv_rc_pingpong -d rxe0 -g 0 -p 18515 -n 200 >/run/server 2>&1 &
server=$!
await_listener 18515
timeout 20 ibv_rc_pingpong -d rxe1 -g 0 -p 18515 -n 200 localhost >/run/client 2>&1
client=$?
wait $server || fail "the server's status is $?: $(cat /run/server)"
[ $client = 0 ] || fail "the client's status is $client: $(cat /run/client)"
tail -n 1 /run/client
