#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One machine with two rails of the kernel's Soft-RoCE, booted once. guest-devices.sh: checks that
# the machine is as the other tests assume. The rails are found and used by Debian's own programs.
# guest-conduit.sh: the conduit over them: the active message and the put/get matrix, the credit
# tests, atomics, collectives, vector transfers and the demo, two ranks on one rail and on two, and
# registration of memory on the fly, whose errors only this test can show. softhca is not used.
# guest-cm-events.sh: the events that make check expects of softhca (tests/softhca/cm_events.sh) are
# those of the kernel's connection manager; and a program that has softhca before librdmacm still
# reaches the kernel's devices, and both by one listener. Last, because guest-conduit.sh checks that
# no receiver of the device was ever not ready.
# VM_ONLY=guest-devices.sh: one of them alone.
. "$(dirname "$0")/vm.sh"
: "${top_builddir:?run through make check-vm}" "${GASNETRUN:?}"
case ${TRUNKLINE_TEST_SANITIZER:-no} in
no) ;;
*) skip "a sanitized build is too slow for an emulated machine" ;;
esac
export lib=$top_builddir/contrib/softhca/libsofthca.so cm_events=$top_builddir/tests/vm/cm_events
export expected=$top_srcdir/tests/softhca/cm_events.txt
# Two minutes, four on a machine with other work; the limits are three to four times that.
run_in_vm 1350 2 guest-all.sh 60:guest-devices.sh 240:guest-bundle.sh 880:guest-conduit.sh 150:guest-cm-events.sh
