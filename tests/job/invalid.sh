#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each function of the public headers is called with each of its objects invalid: a debug library names call, value and place in one
# line, and a release library returns GASNET_ERR_BAD_ARG where there is a status (invalid.awk makes the calls, invalid.c judges).
. "${top_srcdir:?run through make check}/tests/job/common.sh"
[ "$sanitizer" = no ] || skip "the calls are the same in a tree without sanitizers"

# all_called PROGRAM LEAST: it succeeds after at least so many calls.
all_called()
{
    command=$1
    timeout "$limit" "$1" >"$scratch/out" 2>"$scratch/err"
    status=$?
    calls=$(sed -n 's/^\([0-9]*\) calls, 0 failed$/\1/p' "$scratch/out")
    [ $status -eq 0 ] && [ "${calls:-0}" -ge "$2" ] || failed "$1: $(head -20 "$scratch/out")"
}

all_called "$jobs/invalid-debug" 360
all_called "$jobs/invalid-release" 11
finish
