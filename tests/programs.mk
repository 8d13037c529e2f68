# SPDX-License-Identifier: BSD-3-Clause
# The tests, one list a folder: programs, which of them and which scripts are tests, and who runs them beside make check.
#   sanitizer_tests  make check-sanitizer, in a tree configured with --enable-sanitizer=address,undefined
#   tsan_tests       make check-tsan, in a tree configured with --enable-sanitizer=thread
#   vm_tests         make check-vm, over the kernel's Soft-RoCE in virtual machines
# A test builds what it needs and no more (contrib/build/needs.awk): make try TEST=tests/job/am.sh.
# TEST_CFLAGS, also from the environment, come behind CFLAGS for programs of tests that are not clients: contrib/run-tests.sh has -O1
# there, which the compiler does in half of the time. Clients' programs get what the library gets, because puts, gets and atomics
# between neighbours are code in the headers; so do the searches of weak_memory.c, which compute.

client_flags = $(AM_CPPFLAGS) -I$(srcdir)/conduit/include -I$(srcdir)/conduit/include/ibv-conduit -Iconduit/include
upper = $(upper_$(1))
upper_seq = SEQ
upper_par = PAR
upper_parsync = PARSYNC
check_scripts = $(patsubst %,contrib/check/%.sh,layers format lengths documents devices calls modes rebuild rules dist time_limit subjects testing pictures)
# What they look at
needs_contrib/check/devices.sh = $(launcher) $(info) $(softhca_library) $(softhca_command)
$(foreach c,calls documents modes rebuild,$(eval needs_contrib/check/$(c).sh = all-am $(mcswitchd) $(sim_library)))
sanitizer_tests =
tsan_tests =

# Tests start in this order: what fails most often, then the long ones, so that the machine has something to do up to the end.
TESTS += $(check_scripts)
include $(srcdir)/tests/install/programs.mk
include $(srcdir)/tests/job/programs.mk
include $(srcdir)/tests/softhca/programs.mk
include $(srcdir)/tests/softgpu/programs.mk
include $(srcdir)/tests/report/programs.mk
include $(srcdir)/tests/roce/programs.mk
include $(srcdir)/tests/mcswitch/programs.mk
include $(srcdir)/tests/launcher/programs.mk
include $(srcdir)/tests/demo/programs.mk
include $(srcdir)/tests/unit/programs.mk
include $(srcdir)/tests/workloads/programs.mk
include $(srcdir)/tests/bench/programs.mk
include $(srcdir)/tests/vm/programs.mk
test_programs = $(filter tests/%,$(filter-out tests/bench/%,$(programs)))

# Not the searches of weak_memory.c: fibers are what sanitizers cannot follow. Nor what sees stacks and heaps, which are the
# sanitizer's there, or is a hundred starts of processes, which cost ten times as much, or measures time.
not_sanitized = tests/unit/transport/test_shm_%_model tests/unit/progress/test_sleep_model tests/unit/memory/test_process \
    $(patsubst %,tests/job/%.sh,environment settings exit_contexts kill unresponsive_rank soak crashes many_ranks start_cost limits) \
    tests/workloads/plot/sweep.sh
sanitizer_tests += $(filter-out $(not_sanitized),$(filter tests/job/% tests/demo/% tests/unit/% tests/workloads/%,$(TESTS)))

# ---- What a test needs ----

# Scripts name programs; needs.awk reads which. Only where tests are about to be built: it takes a moment.
# $(call needs_of,TESTS)
needs_of = $(sort $(launcher) $(softhca_library) $(filter $(programs),$(1)) $(foreach t,$(1),$(needs_$(t))) $(call script_needs,$(filter %.sh,$(1))))
script_needs = $(if $(1),$(shell cd $(srcdir) && awk -v programs='$(programs)' -v tests='$(1)' -f contrib/build/needs.awk))

# ---- The harness ----

# Each log of a program, as automake makes them of the tests that it knows
program_tests = $(filter-out %.sh,$(sort $(TESTS) $(sanitizer_tests) $(tsan_tests)))
$(program_tests:=.log): %.log: %
	@p='$*'; b='$*'; $(am__check_pre) $(LOG_DRIVER) --test-name "$$f" --log-file $$b.log --trs-file $$b.trs \
	    $(am__common_driver_flags) $(AM_LOG_DRIVER_FLAGS) $(LOG_DRIVER_FLAGS) -- $(LOG_COMPILE) "$$tst" $(AM_TESTS_FD_REDIRECT)
# automake has read TESTS before it was filled.
$(TEST_SUITE_LOG): $(TEST_LOGS)

# What compares times runs when all else is over, one after the other: beside four others it would measure those.
alone = tests/job/unresponsive_rank.log tests/job/waiting.log tests/softhca/rate.log
tests/softhca/rate.log: $(filter-out $(alone),$(TEST_LOGS))
tests/job/waiting.log: $(filter-out tests/job/unresponsive_rank.log tests/job/waiting.log,$(TEST_LOGS))
tests/job/unresponsive_rank.log: $(filter-out tests/job/unresponsive_rank.log,$(TEST_LOGS))

# All that the tests need is there before the first of them starts.
check-TESTS: build-TESTS
build-TESTS: $(if $(filter check-% build-% recheck,$(MAKECMDGOALS)),$(call needs_of,$(TESTS)))

# One test, whose output is not kept: make try TEST=tests/job/am.sh; CASE=pattern: cases of a unit test
try: $(if $(filter try,$(MAKECMDGOALS)),$(call needs_of,$(TEST)))
	@$(AM_TESTS_ENVIRONMENT) $(if $(CASE),UNIT_CASE='$(CASE)'; export UNIT_CASE;) \
	test=$$(test -x '$(TEST)' && echo './$(TEST)' || echo '$(srcdir)/$(TEST)'); "$$test"; status=$$?; \
	case $$status in 0) echo "PASS: $(TEST)" ;; 77) echo "SKIP: $(TEST)"; exit 0 ;; *) echo "FAIL: $(TEST) (status $$status)" ;; esac; exit $$status

# One of each kind, for the minute between two edits: the rules of the house, the unit tests but for the searches of weak memory,
# and one job each of messages, puts and gets, barriers, exits, shared memory and the launcher
quick_tests = $(check_scripts) $(filter-out tests/unit/transport/test_shm_%_model,$(filter tests/unit/%,$(TESTS))) \
    $(filter tests/demo/%.sh tests/job/am.sh tests/job/putget.sh tests/job/barrier.sh tests/job/neighbours.sh tests/launcher/unit_launcher \
    tests/launcher/status.sh tests/softhca/two_processes tests/workloads/kv/test_%,$(TESTS))
# check-X runs tests, and build-X builds what they need.
tests_of_quick = $(quick_tests)
# PASSED=...: without these. contrib/run-tests.sh runs the programs among the tests ahead, at low priority beside the virtual machines.
tests_of_sanitizer = $(filter-out $(PASSED),$(sanitizer_tests))
tests_of_tsan = $(filter-out $(PASSED),$(tsan_tests))
tests_of_sanitizer-ahead = $(filter-out %.sh,$(sanitizer_tests))
tests_of_tsan-ahead = $(filter-out %.sh,$(tsan_tests))
tests_of_vm = $(vm_tests)
# make check-kinds: with the accelerator of this machine in place of softgpu, or they skip with a reason
tests_of_kinds = $(accelerator_tests)
check-kinds: export KINDS_REAL = 1
check_kinds = quick sanitizer tsan sanitizer-ahead tsan-ahead vm kinds
$(check_kinds:%=check-%): check-%:
	$(MAKE) check-TESTS TESTS='$(tests_of_$*)'
$(check_kinds:%=build-%): build-%:
	$(MAKE) build-TESTS TESTS='$(tests_of_$*)'
.PHONY: try build-TESTS $(check_kinds:%=check-%) $(check_kinds:%=build-%)
