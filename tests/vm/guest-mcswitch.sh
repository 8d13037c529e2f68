#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# On the first of three machines: the test of broadcasts on each, without and with loss. usage: guest-mcswitch.sh CONTROLLER
set -u
controller=$1 meeting=10.0.0.1:7777
program=$top_builddir/tests/mcswitch/broadcast

# members TIMEOUT OPTION...
members()
{
    local pids=() status=0 rank
    for rank in 2 1; do
        ssh "node$((rank + 1))" timeout 200 "$program" $rank 3 $meeting "$controller" device=rxe0 gid=-1 "$@" &
        pids+=($!)
    done
    timeout 200 "$program" 0 3 $meeting "$controller" device=rxe0 gid=-1 "$@" || status=1
    for rank in "${pids[@]}"; do
        wait "$rank" || status=1
    done
    return $status
}

members mtu=1024 timeout=19 most=1000000 rounds=10 || exit 1
echo "ready for loss"
sleep 3
members mtu=1024 timeout=14 retries=7 most=20000 rounds=5 || exit 1
echo "done"
