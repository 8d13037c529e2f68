#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# softhca answers librdmacm's clients as the kernel's connection manager does: cm_events.txt was written by the kernel, and
# tests/vm/guest-cm-events.sh compares it with the kernel again. For both link layers, and linked with softhca.
set -u
export SOFTHCA_FABRIC=events-$$ SOFTHCA_ONLY=1
# The thread sanitizer must allow a child of a process with threads to start a thread: each opens its own device.
export TSAN_OPTIONS=die_after_fork=0:${TSAN_OPTIONS-}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
for SOFTHCA_LINK in ib roce; do
    export SOFTHCA_LINK
    "${top_builddir:?}/tests/softhca/cm_events" 10.83.0.1 >"$work/$SOFTHCA_LINK" &
    pids+=($!)
    export SOFTHCA_FABRIC=${SOFTHCA_FABRIC}x
done
for pid in "${pids[@]}"; do
    wait "$pid" || failed=1
done
for link in ib roce; do
    diff "${top_srcdir:?}/tests/softhca/cm_events.txt" "$work/$link" || failed=1
done
exit $failed
