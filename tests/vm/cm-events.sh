#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What softhca is compared with in make check (tests/softhca/cm_events.sh) is what the kernel's connection manager does.
. "$(dirname "$0")/vm.sh"
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
"$rxe_vm/rxe-vm" run -t 120 --on dummy -- "${top_builddir:?}/tests/vm/cm_events" 10.0.0.1 >"$out" || {
    tail -n 5 "$out"
    echo "FAIL: cm_events ended with $?"
    exit 1
}
diff "$top_srcdir/tests/softhca/cm_events.txt" "$out" && exit
echo "FAIL: the kernel (right) answers differently"
exit 1
