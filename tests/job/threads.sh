#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# GASNET_MAX_THREADS limits the client threads to exactly this number, not counting those that ended. A second
# thread may start while the first one has requests in flight.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
SETTINGS="GASNET_MAX_THREADS=4"
good 2 "$jobs/threads-par" 3 20
job 2 "$jobs/threads-par" 4
[ "$status" -ne 0 ] || failed "a thread too many was let in"
says '^trunkline.*: 5 client threads use the library at once, and GASNET_MAX_THREADS allows 4'
within 20
SETTINGS=
good 1 "$jobs/threads-par" 16
good 2 "$jobs/late_thread-par"
finish
