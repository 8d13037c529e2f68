# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
# Scripts that go on after a failure and say at the end how many there were; sourced, not run.
failures=0

fail()
{
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# The status of the script
finish()
{
    [ "$failures" -eq 0 ] && exit 0
    echo "$failures failure(s)"
    exit 1
}
