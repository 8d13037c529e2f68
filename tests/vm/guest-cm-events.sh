#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Inside the VM, whose device has the address 10.0.0.1: cm_events on the kernel's device, the same with softhca before it, and
# on softhca's device beside it; then a server of both.
set -u
failed=0

# compare NAME ADDRESS [LIBRARY]
compare()
{
    LD_PRELOAD=${3-} timeout 40 "$cm_events" "$2" >/run/events || { echo "FAIL: $1: status $?"; failed=1; }
    diff "$expected" /run/events || { echo "FAIL: $1 (right) differs"; failed=1; }
}
compare "the kernel" 10.0.0.1
compare "the kernel behind softhca" 10.0.0.1 "$lib"
compare "softhca beside the kernel" 10.83.0.1 "$lib"

# A wildcard has one number on both; rping's own -P serves several clients.
LD_PRELOAD=$lib rping -s -P -p 7500 >/run/server 2>&1 &
server=$!
for ((i = 0; i < 100; i++)); do
    ! grep -q ' 00010000 .*cmt0a530001.7500$' /proc/net/unix || break
    sleep 0.05
done
for address in 10.0.0.1 10.83.0.1; do
    LD_PRELOAD=$lib timeout 20 rping -c -a $address -p 7500 -C 3 >/run/client 2>&1 ||
        { echo "FAIL: rping to $address of a server of both: status $?"; cat /run/client /run/server; failed=1; }
done
kill $server
exit $failed
