# SPDX-License-Identifier: BSD-3-Clause
# The multicast switch: the daemon by itself, with programs of plain verbs and with jobs; the core without I/O; the simulator.
mcswitchd_tests = $(patsubst %,tests/mcswitch/%.sh,broadcast conduit daemon frames)
TESTS += $(mcswitchd_tests)
sanitizer_tests += tests/mcswitch/daemon.sh
tsan_tests += tests/mcswitch/conduit.sh
mcswitch_test_flags = $(AM_CPPFLAGS) -I$(srcdir)/conduit -I$(srcdir)/tests/mcswitch $(plain_cflags) $(IBVERBS_CFLAGS)
$(call variant,mcswitch-test,$$(mcswitch_test_flags) $$(SANITIZER_CFLAGS))
# Not sanitized: softhca is preloaded into them.
$(call variant,mcswitch-plain,$$(mcswitch_test_flags))
mcswitch_member = $(patsubst %,tests/mcswitch/%.c,member star) $(mcswitch_client_sources)
$(call program,tests/mcswitch/controller,$(call objects,mcswitch-test,tests/mcswitch/controller.c $(mcswitch_client_sources)))
$(foreach p,broadcast levels,$(call program,tests/mcswitch/$(p),$(call objects,mcswitch-plain,tests/mcswitch/$(p).c $(mcswitch_member)),\
    $$(IBVERBS_LIBS),plain))
mcswitch_needs = $(mcswitchd) $(mcsw_replay) $(patsubst %,tests/mcswitch/%,controller broadcast levels) tests/job/testbcast-seq
$(foreach t,$(mcswitchd_tests),$(eval needs_$(t) = $$(mcswitch_needs)))

# The core
mcsw_rig = tests/mcswitch/core/rig.c
mcsw_cases = $(patsubst %,tests/mcswitch/core/%.c,rig cases_order cases_control cases_frame)
$(call variant,mcsw-test,$$(mcsw_flags) -I$$(srcdir)/tests/mcswitch/core $$(CMOCKA_CFLAGS))
mcsw_program = $(call program,tests/mcswitch/core/$(1),$(call objects,mcsw-test,$(2)),$(mcsw_library) $(roce_library) $(3))
$(call mcsw_program,core_random,tests/mcswitch/core/random.c $(mcsw_rig))
$(call mcsw_program,write_cases,tests/mcswitch/core/write_cases.c contrib/mcswitch/replay/setup.c $(mcsw_cases))
mcsw_core_tests = tests/mcswitch/core/core_random tests/mcswitch/core/replay.sh
needs_tests/mcswitch/core/replay.sh = tests/mcswitch/core/write_cases $(mcsw_replay)
ifeq ($(have_cmocka),yes)
$(foreach t,test_cases test_passes,$(call mcsw_program,$(t),tests/mcswitch/core/$(t).c $(mcsw_cases),$$(CMOCKA_LIBS)))
mcsw_core_tests += tests/mcswitch/core/test_cases tests/mcswitch/core/test_passes
endif
TESTS += $(mcsw_core_tests)
sanitizer_tests += $(mcsw_core_tests)
# Minutes instead of a second
check-long: check-long-mcsw-core
check-long-mcsw-core: tests/mcswitch/core/core_random
	tests/mcswitch/core/core_random 2000000 7

# The simulator: tests/mcswitch/sim/scenarios without arguments is the short run of make check, make check-sim the whole one, make
# check-night ten times that.
$(call program,tests/mcswitch/sim/scenarios,$(call objects,sim,tests/mcswitch/sim/scenarios.c contrib/mcswitch/sim/options.c),\
    $(sim_library) $(mcsw_library) $(roce_library))
# The core once more, with its faults on purpose
$(call variant,mutants,$$(mcsw_flags) -I$$(srcdir)/tests/mcswitch/sim -DMCSW_MUTANTS)
$(call program,tests/mcswitch/sim/mutants,$(call objects,mutants,$(patsubst %,tests/mcswitch/sim/%.c,mutants directed wire) \
    contrib/mcswitch/sim/options.c $(mcsw_core_sources)),$(sim_library) $(roce_library))
TESTS += $(patsubst %,tests/mcswitch/sim/%,scenarios mutants options.sh)
sanitizer_tests += tests/mcswitch/sim/scenarios
needs_tests/mcswitch/sim/options.sh = $(mcsw_sim) tests/mcswitch/sim/scenarios
needs_tests/mcswitch/sim/whole.sh = $(mcsw_sim) tests/mcswitch/sim/scenarios tests/mcswitch/sim/mutants
check-sim:
	$(MAKE) check-TESTS TESTS=tests/mcswitch/sim/whole.sh
check-night: tests/mcswitch/sim/scenarios
	tests/mcswitch/sim/scenarios night
.PHONY: check-long-mcsw-core check-sim check-night
