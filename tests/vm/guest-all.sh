#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Inside a machine: runs scripts of this folder one after the other, so that machines boot once for all of their layout. Each has a
# time limit of its own and a line that says how it ended; one that fails or hangs does not keep the others from running.
# usage: guest-all.sh SECONDS:SCRIPT...        VM_ONLY=SCRIPT: that one alone
set -u
here=$(dirname "$0")
failed=0
for item; do
    script=${item#*:}
    [ -z "${VM_ONLY-}" ] || [ "$VM_ONLY" = "$script" ] || continue
    began=$SECONDS
    timeout -k 5 "${item%%:*}" bash "$here/$script"
    status=$?
    case $status in
    0) verdict=PASS ;;
    124 | 137) verdict="FAIL: longer than ${item%%:*} s" ;;
    *) verdict="FAIL: status $status" ;;
    esac
    echo "guest $script: $verdict ($((SECONDS - began)) s)"
    [ $status -eq 0 ] || failed=1
done
exit $failed
