#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The events that make check expects of softhca (tests/softhca/cm_events.sh) are those of the
# kernel's connection manager; and a program that has softhca before librdmacm still reaches the
# kernel's devices, and both by one listener.
. "$(dirname "$0")/vm.sh"
export lib=${top_builddir:?}/contrib/softhca/libsofthca.so cm_events=$top_builddir/tests/vm/cm_events
export expected=$top_srcdir/tests/softhca/cm_events.txt
"$rxe_vm/rxe-vm" run -t 150 --on dummy -- bash "$top_srcdir/tests/vm/guest-cm-events.sh"
