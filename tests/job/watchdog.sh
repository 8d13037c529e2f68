#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Other tests rely on the watchdog for "ends in time" and "nothing is left": it must detect violations.
. "${top_srcdir:?run through make check}/tests/job/common.sh"

# watched CODE SECONDS COMMAND...
watched()
{
    code=$1
    seconds=$2
    shift 2
    command="watchdog $seconds $*"
    "$watchdog" "$seconds" "$@" </dev/null >"$scratch/out" 2>"$scratch/err"
    status=$?
    fails_with "$code" "$command"
}

watched 0 10 true
watched 3 10 sh -c 'exit 3'
watched 143 10 sh -c 'kill -TERM $$'
watched 126 10 "$scratch/no-such-program"
watched 124 1 sh -c 'sleep 60'
says 'has not ended within 1 s' 1
says 'thread [0-9]* sleep state [SD] in' 1
watched 124 1 sh -c 'trap "" TERM; while :; do sleep 1; done'
# A process that its parent left behind is a fault; one that ends soon afterwards is not.
watched 125 20 sh -c 'sleep 60 & exit 0'
says '1 process(es) still run' 1
watched 125 20 setsid -f sleep 60
watched 0 20 sh -c 'sleep 0.3 & exit 0'
finish
