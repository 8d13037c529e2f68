#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The conduit over the kernel's Soft-RoCE: the active message and the put/get matrix, the credit tests,
# atomics, collectives, vector transfers and the demo, two ranks on one rail and on two, and registration
# of memory on the fly, which here alone can be seen to go wrong. Nothing of softhca takes part.
. "$(dirname "$0")/vm.sh"
: "${top_builddir:?run through make check-vm}" "${GASNETRUN:?}"
case ${TRUNKLINE_TEST_SANITIZER:-no} in
no) ;;
*) skip "a sanitized build is too slow for an emulated machine" ;;
esac
# Four minutes on a machine with other work; the limit is three to four times that.
run_in_vm 900 2 guest-conduit.sh
