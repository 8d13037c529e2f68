#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs whose promises hold on any wire, over packets: XRC (queues and targets in several processes), shared receive
# queues, atomics, what two processes do to each other.
cd "${top_builddir:?}" || exit 1
export SOFTHCA_WIRE=udp
failed=0
while read -r program cases; do
    for name in $cases; do
        tests/softhca/"$program" "$name" || failed=1
    done
done <<'PROGRAMS'
xrc sends two_queues wrong_number wrong_domain other_process killed_sender
PROGRAMS
for program in atomics; do
    tests/softhca/$program || failed=1
done
exit $failed
