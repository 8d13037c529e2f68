# SPDX-License-Identifier: BSD-3-Clause
# The packets and end points of contrib/roce, without sockets; everything runs in one process on a simulated clock.
$(call variant,roce-test,$$(AM_CPPFLAGS) -I$$(srcdir)/contrib/roce -I$$(srcdir)/contrib/softhca -I$$(srcdir)/tests/roce $$(AM_CFLAGS) $$(CMOCKA_CFLAGS),$$(TEST_CFLAGS))
roce_program = $(call program,tests/roce/$(1),$(call objects,roce-test,$(2)),$(roce_library) $(3))
roce_test_sources = $(1:%=tests/roce/%.c)
$(call roce_program,endpoint_random,$(call roce_test_sources,endpoint_random kernel world))
roce_tests = tests/roce/endpoint_random
# Recorded frames and cmocka
ifeq ($(have_cmocka),yes)
$(call roce_program,test_packet,$(call roce_test_sources,test_packet frames),$$(CMOCKA_LIBS))
$(call roce_program,test_requester,$(call roce_test_sources,test_requester rig),$$(CMOCKA_LIBS))
$(call roce_program,test_responder,$(call roce_test_sources,test_responder rig),$$(CMOCKA_LIBS))
$(call roce_program,test_recorded,$(call roce_test_sources,test_recorded frames),$$(CMOCKA_LIBS))
roce_tests += $(patsubst %,tests/roce/%,test_packet test_requester test_responder test_recorded)
endif
# Hostile packets: the corpus, replayed through the entry points of the fuzzers; make check-fuzz makes more.
$(call roce_program,replay,contrib/softhca/fuzz/replay.c contrib/roce/fuzz/targets.c contrib/roce/fuzz/endpoint.c)
roce_tests += tests/roce/replay.sh
TESTS += $(roce_tests)
sanitizer_tests += $(roce_tests)
# Minutes instead of a second
check-long: check-long-roce
check-long-roce: tests/roce/endpoint_random
	tests/roce/endpoint_random 300
.PHONY: check-long-roce
