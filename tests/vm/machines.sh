#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs on three machines, each with the kernel's RDMA stack: Soft-RoCE by address handles and by librdmacm, iWARP by librdmacm;
# started over ssh by our launcher, and by Open MPI's; messages, puts and gets, collectives, kv. Nothing is sent twice.
. "$(dirname "$0")/vm.sh"
needs_machines
SIW_MODULE=$("$rxe_vm/get-siw.sh") || SIW_MODULE=
export SIW_MODULE
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
# A minute and a half on an idle machine.
run_on_machines 900 3 1 guest-machines.sh >"$out" 2>&1
status=$?
cat "$out"
[ $status != 0 ] || exit 0
# An emulated machine stops as a whole now and then, when its host has no CPU for it: ssh no longer reaches it. Nothing else is
# tried again.
grep -q 'no sign of life for\|the connection to its guard broke\|port 22: Connection timed out' "$out" || exit $status
echo "A machine stopped: all once more, on new ones"
run_on_machines 900 3 1 guest-machines.sh
