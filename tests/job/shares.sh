#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Fences of data carry all that was ever put, so what an exchange has put is withdrawn when all have it: bytes grow with the number of
# exchanges, not with its square. Counted in the frames of the launcher's head; on two virtual hosts, because on one they carry none.
. "${top_srcdir:?run through make check}/tests/job/common.sh"

# bytes NUMBER SIZE [attach]: in the fences of a job that exchanges so often; a withdrawn key leaves 24 bytes in each fence
bytes()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0" RUN="-v -v -H =a:2,=b:2" good 4 "$jobs/shares-seq" "$@"
    bytes=$(awk '/head: bytes in them/ { for (i = 1; i < NF; i++) if ($i == "fence") n = $(i + 1) } END { print n + 0 }' "$scratch/err")
    [ "$bytes" -gt 0 ] || failed "the head's bytes are not found"
}

bytes 0 1024
none=$bytes
bytes 10 1024
ten=$((bytes - none))
bytes 20 1024
[ $((bytes - none)) -le $((ten * 5 / 2)) ] || failed "20 exchanges take $((bytes - none)) bytes, 10 take $ten"
bytes 20 8
without=$bytes
bytes 20 8 attach
attached=$((bytes - without))
[ $attached -le $((500 + 20 * 2 * 24)) ] || failed "an attach costs $attached bytes in the fence of its own and 20 others"
finish
