# SPDX-License-Identifier: BSD-3-Clause
# Checks against the kernel's own RDMA stack: make check-vm. Not part of make check, because a VM is
# slow.
vm_tests = $(patsubst %,tests/vm/%.sh,one_machine machines failures softhca mcswitch)
needs_tests/vm/mcswitch.sh = $(mcswitch_needs)
# One after the other: two CPUs are emulated at a time.
tests/vm/machines.log: tests/vm/one_machine.log
tests/vm/failures.log: tests/vm/machines.log
tests/vm/softhca.log: tests/vm/failures.log
tests/vm/mcswitch.log: tests/vm/softhca.log
$(call program,tests/vm/cm_events,$(call objects,softhca-test,tests/softhca/cm_events.c),$$(RDMACM_LIBS) $$(IBVERBS_LIBS))
# The same on the newer kernel of Debian's backports (contrib/rxe-vm/get-kernel.sh): for nights
check-night: check-vm-backports
check-vm-backports: export KERNEL_SUITE = backports
check-vm-backports:
	$(MAKE) check-TESTS TESTS='$(vm_tests)'
.PHONY: check-vm-backports
# RoCE frames of the kernel's, for tests that have no kernel to ask: make record-frames FRAMES=DIRECTORY
FRAMES = frames
record-frames:
	$(AM_TESTS_ENVIRONMENT) bash $(srcdir)/tests/vm/record_frames.sh $(FRAMES)
.PHONY: record-frames
