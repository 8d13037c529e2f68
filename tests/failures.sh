# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
# For scripts that continue after a failure and report the number of failures at the end; sourced, not run.
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
