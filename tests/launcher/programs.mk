# SPDX-License-Identifier: BSD-3-Clause
# Tests of the launcher
$(call variant,launcher-test,$$(AM_CPPFLAGS) -I$$(srcdir)/conduit $$(AM_CFLAGS) $$(CMOCKA_CFLAGS) $$(PMIX_CFLAGS) $$(HWLOC_CFLAGS),$$(TEST_CFLAGS))
$(call variant,launcher-plain,$$(AM_CPPFLAGS) $$(plain_cflags))
launcher_program = $(call program,tests/launcher/$(1),$(call objects,launcher-test,$(2)),$(3))
$(call launcher_program,pmix_probe,tests/launcher/pmix_probe.c,$$(PMIX_LIBS))
# Not with a sanitizer: it is loaded before that.
$(call variant,launcher-preload,$$(AM_CPPFLAGS) $$(plain_cflags) $(pic))
$(call shared,tests/launcher/hung_exec.so,$(call objects,launcher-preload,tests/launcher/hung_exec.c))
$(call shared,tests/launcher/stalled_kill.so,$(call objects,launcher-preload,tests/launcher/stalled_kill.c))
# Without libraries: it runs as a user that may not be able to read the build tree.
$(call program,tests/launcher/foreign_connection,$(call objects,launcher-plain,tests/launcher/foreign_connection.c),,plain)
$(call program,tests/launcher/other_user,$(call objects,launcher-plain,tests/launcher/other_user.c),,plain)

# The launcher's pure parts, with the sanitizer of the tree
launcher_pure = tests/launcher/libpure.a
$(call archive,$(launcher_pure),$(call objects,$(launcher_checked),$(launcher_pure_sources)))
$(call launcher_program,hostile,tests/launcher/hostile.c,$(launcher_pure))
# Defines a function of libpmix, and finds its next one
$(call launcher_program,registration,tests/launcher/registration.c spawner/server/jobinfo.c,$(launcher_pure) $$(PMIX_LIBS) -ldl)

ifeq ($(have_cmocka),yes)
launcher_units = launcher policy environ auth explain wire hosts foreign
$(foreach u,$(launcher_units),$(call launcher_program,unit_$(u),tests/launcher/unit_$(u).c,$(launcher_pure) $$(CMOCKA_LIBS)))
# With a made tree and caller instead of those of the launcher
$(call launcher_program,unit_top,tests/launcher/unit_top.c spawner/head/view.c spawner/head/collect.c spawner/run/samples.c spawner/run/top_table.c spawner/util/byte_queue.c \
    spawner/util/log.c conduit/stats/table.c,$$(CMOCKA_LIBS))
$(call launcher_program,unit_bind,tests/launcher/unit_bind.c $(patsubst %,spawner/children/%.c,bind start reach),$$(CMOCKA_LIBS) $$(HWLOC_LIBS))
# With the library's functions that decide
$(call program,tests/launcher/unit_simulate,$(call objects,plan,tests/launcher/unit_simulate.c) $(plan_objects) $(simulate_objects),$(launcher_pure) $$(CMOCKA_LIBS) $$(IBVERBS_LIBS))
# Defines accept() and recv(), as the launcher's executable does
$(call launcher_program,unit_gate,tests/launcher/unit_gate.c spawner/server/gate.c,$(launcher_pure) $$(CMOCKA_LIBS))
launcher_unit_tests = $(patsubst %,tests/launcher/unit_%,$(launcher_units) top bind simulate gate)
endif
launcher_scripts = $(patsubst %,tests/launcher/%.sh,status usage signals killed start_timeout foreign_connection server_stuck_at_exit output \
    unread_output input environment hosts scale slurm openmpi ordinary_user ssh ssh_errors refused registration unkillable)
needs_tests/launcher/unkillable.sh = tests/launcher/other_user
needs_tests/launcher/killed.sh = tests/launcher/stalled_kill.so
needs_tests/launcher/start_timeout.sh = tests/launcher/hung_exec.so
needs_tests/launcher/refused.sh = tests/job/deny_syscalls
launcher_needs = $(patsubst %,tests/launcher/%,pmix_probe foreign_connection hostile registration)
$(foreach t,$(launcher_scripts),$(eval needs_$(t) += $$(launcher_needs)))
TESTS += $(launcher_unit_tests) $(launcher_scripts) $(if $(filter-out no,$(enable_sanitizer)),tests/launcher/sanitized.sh)
sanitizer_tests += $(launcher_unit_tests) tests/launcher/sanitized.sh
tsan_tests += tests/launcher/sanitized.sh
needs_tests/launcher/sanitized.sh = spawner/gasnetrun_sanitized $(launcher_needs)
