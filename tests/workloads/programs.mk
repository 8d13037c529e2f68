# SPDX-License-Identifier: BSD-3-Clause
# The workloads: programs that show what the network and the conduit do (--help), and short runs of
# them in make check, with all checks on and every fault injected. common/ has the code that they
# share; each has a folder of its own.
workloads_flags = $(client_flags) $(call includes,$(patsubst %,$(srcdir)/tests/workloads/%,common rma swarm) $(srcdir)/tests/unit/support) \
    $(AM_CFLAGS) $(IBVERBS_CFLAGS) $(HWLOC_CFLAGS)
$(call variant,workload,$$(workloads_flags))
$(call variant,workload-seq,$$(workloads_flags) -DGASNET_SEQ)
$(call variant,workload-par,$$(workloads_flags) -DGASNET_PAR)
$(call variant,workload-unit,$$(workloads_flags) -I$$(srcdir)/conduit $$(CMOCKA_CFLAGS) -DGASNET_SEQ,$$(TEST_CFLAGS))

# Tests without a job, and tests with one
workloads_pure = tests/workloads/common/libpure.a
$(call archive,$(workloads_pure),$(call objects,workload,$(patsubst %,tests/workloads/common/%.c,histogram inject options paths progress report \
    report_write)))
workloads_job = $(patsubst %,tests/workloads/common/%.c,job surroundings)
# $(call workload,NAME,MODE,SOURCES[,LIBRARIES])
workload = $(call program,tests/workloads/$(1),$(call objects,workload-$(2),$(3) $(workloads_job)),\
    $(4) $(workloads_pure) conduit/libgasnet-ibv-$(2).a $$(conduit_libs) $$(IBVERBS_LIBS))

$(call workload,common/sample,seq,tests/workloads/common/sample.c)

# kv without a job: stores, records, values, distributions
kv_library = tests/workloads/kv/libkv.a
$(call archive,$(kv_library),$(call objects,workload,$(patsubst %,tests/workloads/kv/%.c,draw exact key ledger lossy pipeline record save store value \
    wire)))
$(call workload,kv/kv,seq,$(patsubst %,tests/workloads/kv/%.c,api client daemon get known kv kv_outcome kv_parameters raw_client raw_open raw_probe raw_sender \
    raw_server relations server tcp),$(kv_library))

# The common part of swarm and sharing: memory, and threads that keep a window of gets and puts in
# flight. Each is built for PAR, and for SEQ: one thread, without the cost of locks.
rma_sources = $(patsubst %,tests/workloads/rma/%.c,api flood target_memory group passive cpu_binding rails rounds sum values)
swarm_sources = $(rma_sources) $(patsubst %,tests/workloads/swarm/%.c,names swarm swarm_outcome swarm_parameters swarm_raw)
sharing_sources = $(rma_sources) $(patsubst %,tests/workloads/sharing/%.c,map sharing sharing_outcome sharing_parameters sharing_raw)
$(call workload,swarm/swarm,par,$(swarm_sources))
$(call workload,swarm/swarm-seq,seq,$(swarm_sources))
$(call workload,sharing/sharing,par,$(sharing_sources))
$(call workload,sharing/sharing-seq,seq,$(sharing_sources))
workloads_programs = $(patsubst %,tests/workloads/%,kv/kv swarm/swarm swarm/swarm-seq sharing/sharing sharing/sharing-seq)

workloads_scripts = $(patsubst %,tests/workloads/%.sh,kv/kv kv/raw kv/tcp swarm/swarm sharing/sharing common/common common/judged plot/sweep)
TESTS += $(workloads_scripts)
# Threads that share queue pairs
tsan_tests += tests/workloads/sharing/races.sh
needs_tests/workloads/plot/sweep.sh = $(workloads_programs)
needs_tests/workloads/sharing/races.sh = tests/workloads/sharing/sharing
needs_tests/workloads/common/common.sh = tests/workloads/common/sample
needs_tests/workloads/common/judged.sh = $(workloads_programs)

ifeq ($(have_cmocka),yes)
# The support of the rooms' unit tests comes along; it wants the settings of a conduit's library.
# $(call workload_unit,NAME[,MORE SOURCES][,LIBRARIES])
workload_unit = $(eval workloads_unit_tests += tests/workloads/$(1))$(call program,tests/workloads/$(1),\
    $(call objects,workload-unit,tests/workloads/$(1).c $(2) $(unit_support)),\
    $(3) $(workloads_pure) conduit/libgasnet-ibv-seq.a $$(CMOCKA_LIBS) -ldl -lpthread -lm)
$(call workload_unit,common/test_common)
$(foreach t,test_store test_parts test_wire,$(call workload_unit,kv/$(t),,$(kv_library)))
$(call workload_unit,rma/test_target_memory,tests/workloads/rma/target_memory.c tests/workloads/swarm/names.c)
$(call workload_unit,sharing/test_map,tests/workloads/sharing/map.c)
TESTS += $(workloads_unit_tests)
endif
