# SPDX-License-Identifier: BSD-3-Clause
# Tests of the software HCA. The programs are linked with it (before libibverbs), so that they also run under sanitizers;
# debian_tools.sh preloads it into Debian's tools.

softhca_test_flags = $(AM_CPPFLAGS) -I$(srcdir) -I$(srcdir)/contrib/softhca -I$(srcdir)/contrib/roce $(AM_CFLAGS) $(IBVERBS_CFLAGS) $(RDMACM_CFLAGS) \
    $(HWLOC_CFLAGS)
$(call variant,softhca-test,$$(softhca_test_flags),$$(TEST_CFLAGS))
# $(call softhca_program,NAME[,MORE SOURCES][,LIBRARIES]) with the device; $(call softhca_plain,...) without
softhca_program = $(call program,tests/softhca/$(1),$(call objects,softhca-test,tests/softhca/$(1).c $(2)),$(softhca_library) $(or $(3),$$(IBVERBS_LIBS)) -ldl)
softhca_plain = $(call program,tests/softhca/$(1),$(call objects,softhca-test,tests/softhca/$(1).c $(2)),$(3))

softhca_programs = accelerator errors two_processes mesh threads plain wr_builders extended domains regions
# Any order of execution, a crash at any place, large numbers
softhca_proofs = lastbyte crash many_qps
# From fork to the end of a process; receives that queue pairs and processes share
softhca_programs += lifecycle srq xrc srq_threads srq_crash
# Links, broken HCAs, requests to a member; the wire of packets: senders that are hostile or many, rules and timers; ports with a limit
softhca_programs += link_state udp_sleeper udp_faults udp_crowd rate
# Faults on purpose, and the seed; programs that make it hard
softhca_programs += faults rail_overtaking cable_loss faultstorm seeded_order hostile_client
# Operations and addresses: all transports, partitions, GIDs, groups, the state machine
softhca_programs += transitions unreliable atomics addressing signalling
$(foreach p,$(softhca_programs) $(softhca_proofs),$(call softhca_program,$(p)))
$(call softhca_program,mesh_random,tests/softhca/mesh_lanes.c)
$(call softhca_program,faultrules,contrib/softhca/support/registry_name.c)
# Surroundings: other shapes, users and versions; containers that refuse
$(call softhca_program,refused_environment,contrib/softhca/support/registry_name.c)
# Connection management
$(call softhca_program,profiles,contrib/softhca/support/profiles.c)
$(call softhca_program,profile_manners,contrib/softhca/support/profiles.c,$$(RDMACM_LIBS) $$(IBVERBS_LIBS))
$(call softhca_program,cm,,$$(RDMACM_LIBS) $$(IBVERBS_LIBS))
$(call softhca_program,cm_events,,$$(RDMACM_LIBS) $$(IBVERBS_LIBS))
$(foreach p,udp_hostile udp_stranger udp_source_port,$(call program,tests/softhca/$(p),$(call objects,softhca-test,tests/softhca/$(p).c),\
    $(roce_library) $(softhca_library) $$(IBVERBS_LIBS)))
# Without the device: another user runs it
$(call program,tests/softhca/udp_spray,$(call objects,softhca-test,tests/softhca/udp_spray.c contrib/softhca/support/registry_name.c),$(roce_library))
$(call softhca_plain,loaded_late,,-ldl)
$(call softhca_plain,settings,$(patsubst %,contrib/softhca/support/%.c,bundle bundle_fit gid_list profiles qp_caps softhca_settings registry_name speed),$$(IBVERBS_LIBS))
$(call softhca_plain,faultlang,contrib/softhca/fault/fault_parse.c,$$(IBVERBS_LIBS))
# What a program sees of topology files; two programs that know nothing of softhca
$(call softhca_plain,hwloc_devices,,$$(HWLOC_LIBS))
$(call softhca_plain,dlvsym_client,,-ldl)
$(call softhca_plain,rdmacm_client,,$$(RDMACM_LIBS) $$(IBVERBS_LIBS))
# Hostile text: the corpus, replayed through the entry points of the fuzzers
$(call program,tests/softhca/replay,$(call objects,softhca-test,contrib/softhca/fuzz/replay.c contrib/softhca/fuzz/targets.c \
    contrib/softhca/replace/real.c),$(softhca_core) -ldl)

# A library to be preloaded
$(call shared,tests/softhca/libfast_clock.so,$(call objects,preloaded,tests/softhca/fast_clock.c))
needs_tests/softhca/perftest.sh = tests/softhca/libfast_clock.so

softhca_test_programs = $(patsubst %,tests/softhca/%,$(softhca_programs) $(softhca_proofs) mesh_random loaded_late settings \
    udp_hostile udp_stranger udp_source_port faultrules faultlang refused_environment profiles profile_manners cm)
softhca_scripts = $(patsubst %,tests/softhca/%.sh,debian_tools udp udp6 rdmacm perftest instrumented_programs pyverbs udp_programs control replace \
    cm_events fuzz)
TESTS += $(softhca_test_programs) $(softhca_scripts)
sanitizer_tests += $(filter-out tests/softhca/udp_crowd,$(softhca_test_programs)) tests/softhca/udp_programs.sh tests/softhca/cm_events.sh \
    tests/softhca/fuzz.sh
tsan_tests += $(patsubst %,tests/softhca/%,threads wr_builders extended lastbyte many_qps mesh_random srq xrc srq_threads srq_crash cm) \
    tests/softhca/cm_events.sh
# cm pulls cables by the command.
needs_tests/softhca/cm = $(softhca_command)
needs_tests/softhca/udp_programs.sh = $(softhca_test_programs)
needs_tests/softhca/fuzz.sh = $(softhca_core) tests/softhca/replay
needs_tests/softhca/link_state = $(softhca_command)

# Too long for each day: every instruction, 200 kills, a minute of traffic with and without faults, 15 s of packets with 0, 1 and
# 5 % loss.
check-long: check-long-softhca
check-long-softhca: $(patsubst %,tests/softhca/%,lastbyte crash mesh_random)
	tests/softhca/lastbyte
	CRASH_STRIDE=1 tests/softhca/crash
	MESH_SECONDS=60 PACKET_SECONDS=15 CRASH_ROUNDS=200 tests/softhca/mesh_random

# make check-fuzz FUZZ_SECONDS=60
FUZZ_SECONDS = 60
check-fuzz: $(softhca_core) $(roce_library)
	top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' $(srcdir)/contrib/softhca/fuzz/fuzz.sh $(FUZZ_SECONDS)
	top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' $(srcdir)/contrib/roce/fuzz/fuzz.sh $(FUZZ_SECONDS)
clean_files += $(patsubst %,contrib/softhca/fuzz/%,probe probe.c probe.log fuzzer found corpus settings.log registry.log fault.log control.log bundle.log) \
    contrib/roce/fuzz/fuzzer contrib/roce/fuzz/found contrib/roce/fuzz/corpus contrib/roce/fuzz/*.log
.PHONY: check-long-softhca check-fuzz
