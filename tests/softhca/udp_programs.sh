#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs for any wire, run over packets: XRC (queues and targets in several processes), atomics, regions, and a child
# while its parent is busy.
cd "${top_builddir:?}" || exit 1
export SOFTHCA_WIRE=udp
failed=0
while read -r program cases; do
    for name in $cases; do
        tests/softhca/"$program" "$name" || failed=1
    done
done <<'PROGRAMS'
lifecycle writes_land_in_the_parent writes_land_in_the_private_parent
xrc sends two_queues wrong_number wrong_domain other_process killed_sender
PROGRAMS
for program in atomics regions; do
    tests/softhca/$program || failed=1
done
exit $failed
