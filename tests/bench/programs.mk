# SPDX-License-Identifier: BSD-3-Clause
# Speed. make bench measures everything here and writes doc/benchmarks.md; make check runs none of
# it, because results of a busy machine say nothing about the code. Results for programs are left in
# tests/bench/*.json of the build tree. make bench-instructions counts instructions, which a busy
# machine does not change, and shows what differs from the record in tests/bench/instructions.txt.

$(foreach m,seq par,$(call variant,bench-$(m),$$(client_flags) -I$$(srcdir)/contrib/roce $$(AM_CFLAGS) $$(IBVERBS_CFLAGS) -DGASNET_$(call upper,$(m))))
# $(call bench,NAME,MODE[,SOURCES][,LIBRARIES])
bench = $(call program,tests/bench/$(1),$(call objects,bench-$(2),$(patsubst %,tests/bench/%.c,$(or $(3),$(1)))),\
    conduit/libgasnet-ibv-$(2).a $$(conduit_libs) $(4))
# $(call bench_pair,NAME[,SOURCES][,LIBRARIES]): NAME-seq and NAME-par
bench_pair = $(foreach m,seq par,$(call bench,$(1)-$(m),$(m),$(or $(2),$(1)),$(3)))

bench_sources = bench cases conduit_am conduit_rma job raw_open raw_ops report
$(call bench,bench,seq,$(bench_sources),$$(IBVERBS_LIBS))
$(call bench,bench-par,par,$(bench_sources),$$(IBVERBS_LIBS))
$(call bench,start,seq)
$(call bench,leave,seq)
$(call variant,bench-pmix,$$(AM_CPPFLAGS) $$(AM_CFLAGS) $$(PMIX_CFLAGS))
$(foreach p,pmix_start pmix_steps,$(call program,tests/bench/$(p),$(call objects,bench-pmix,tests/bench/$(p).c),$$(PMIX_LIBS)))
# make bench-scaling; it has functions of libibverbs in it, as tests/job/footprint
$(call bench,growth,par,growth growth_counts,-rdynamic)
# Single steps of a start, with the functions that take them: costs for --simulate
$(call variant,bench-rooms,$$(conduit_cppflags) $$(AM_CFLAGS) $$(IBVERBS_CFLAGS) $$(PMIX_CFLAGS) -DGASNET_SEQ)
$(call program,tests/bench/info_steps,$(call objects,bench-rooms,tests/bench/info_steps.c),conduit/libgasnet-ibv-seq.a -ldl -lpthread)
$(call program,tests/bench/frame_steps,$(call objects,launcher-test,tests/bench/frame_steps.c),$(launcher_pure))
$(call bench,first_message,seq,,$$(IBVERBS_LIBS))
$(call bench,first_parts,seq,first_message first_parts,$$(IBVERBS_LIBS) -rdynamic)
$(call bench,threads,par)
$(call bench,pairs,par)
$(call bench,working_set,seq,conduit_am job working_set)
$(call bench,operations,seq)
$(call bench,operations-par,par,operations)
# Between neighbours: the same program with other cases and another raw side, a flood from many, and a table that has what other
# libraries do in it. make bench-nbrhd NBRHD_OPTIONS=--medium: only Medium messages, with their aims.
$(call bench_pair,nbrhd_pair,bench conduit_am conduit_rma job nbrhd_cases nbrhd_raw nbrhd_small report)
$(call bench_pair,nbrhd_flood)
nbrhd_programs = $(foreach m,seq par,tests/bench/nbrhd_pair-$(m) tests/bench/nbrhd_flood-$(m))
# Remote atomics and non-contiguous transfers: the same program with other cases
$(call bench_pair,atomics,atomics_cases bench conduit_am job raw_open raw_ops report,$$(IBVERBS_LIBS))
atomics_programs = tests/bench/atomics-seq tests/bench/atomics-par
$(call bench_pair,vector,bench conduit_am job report vector_cases)
vector_programs = tests/bench/vector-seq tests/bench/vector-par
# Beside UCX, libfabric, Open MPI and MPICH: puts, gets and messages, alone
$(call bench,peers_ours,seq,conduit_am conduit_rma job peers_ours)
# Collectives: times in a job of any size, and a table that has Open MPI in it
$(call bench_pair,collectives)
collectives_programs = tests/bench/collectives-seq tests/bench/collectives-par
# Strided transfers with memory of accelerators, beside single ones
$(call bench,kind_rows,seq)
# Memory of accelerators, beside plain copies by the driver
$(call program,tests/bench/kinds,$(call objects,bench-seq,tests/bench/kinds.c tests/job/accelerator.c),\
    conduit/libgasnet-ibv-seq.a $$(conduit_libs) -ldl)
# The device alone; the wire of packets, beside plain UDP
$(foreach p,softhca roce,$(call program,tests/bench/$(p),$(call objects,bench-seq,tests/bench/$(p).c),\
    $(softhca_library) $(roce_library) $$(IBVERBS_LIBS)))
# A library to be preloaded
no_pidfd = tests/bench/libnopidfd.so
$(call variant,preloaded,$$(AM_CPPFLAGS) $$(AM_CFLAGS) $$(pic))
$(call shared,$(no_pidfd),$(call objects,preloaded,tests/bench/no_pidfd.c),-ldl)
bench_programs = $(patsubst %,tests/bench/%,roce bench bench-par start leave working_set operations operations-par peers_ours)
cleaned += $(wildcard tests/bench/*.json scaling.txt scaling.svg)
TESTS += tests/bench/benchmarks.sh tests/bench/compare.sh tests/bench/peers.sh tests/bench/scaling.sh

bench-softhca: tests/bench/softhca
	tests/bench/softhca
# SOFTHCA_CRC=tables: as on a CPU without PCLMULQDQ.
bench-roce: all-am tests/bench/roce
	@echo "Check sums by the best that the CPU has:" && tests/bench/roce && \
	echo "By tables, as on a CPU without PCLMULQDQ:" && SOFTHCA_CRC=tables tests/bench/roce "1 MiB"
.PHONY: bench-softhca bench-roce

# All of them, as a page: doc/benchmarks.md. BENCH="--any-load nbrhd kv" for options and parts.
# Everything they need is built before the first measurement, not in the middle of a table.
bench: all-am $(bench_programs) $(nbrhd_programs) $(vector_programs) $(collectives_programs) $(atomics_programs) $(workloads_programs) \
    $(no_pidfd) $(softgpu_libraries) tests/bench/first_message tests/bench/first_parts tests/bench/kinds tests/bench/threads tests/bench/pairs tests/launcher/pmix_probe tests/job/footprint-par \
    tests/job/many_ranks-seq
	$(srcdir)/tests/bench/benchmarks $(BENCH)
bench-compare:
	@$(srcdir)/tests/bench/compare --all "$${OLD:-HEAD}" "$${NEW:-$(srcdir)/doc/benchmarks.md}"
# The cost of building, beside the aims; OLD=REVISION in the same run
bench-build:
	@$(srcdir)/contrib/build/bench $(OLD)
.PHONY: bench-build
bench-verbs: all-am $(bench_programs)
	@$(AM_TESTS_ENVIRONMENT) \
	"$$GASNETRUN" -n 2 tests/bench/bench --json tests/bench/bench.json
bench-start: all-am $(bench_programs) tests/launcher/pmix_probe
	@$(AM_TESTS_ENVIRONMENT) \
	$(srcdir)/tests/bench/start64 --json tests/bench/start64.json && \
	$(srcdir)/tests/bench/exit64 && GASNET_SUPERNODE_MAXSIZE=0 $(srcdir)/tests/bench/exit64 && \
	echo "start and end in one neighbourhood, best of 5, beside a PMIx program (init, put, fence, finalize):" && \
	$(srcdir)/tests/bench/start_ratio 5 64
bench-par: all-am $(bench_programs)
	@$(AM_TESTS_ENVIRONMENT) \
	"$$GASNETRUN" -n 2 tests/bench/bench-par --json tests/bench/bench-par.json
bench-nbrhd: all-am $(nbrhd_programs)
	@$(AM_TESTS_ENVIRONMENT) GASNET_SUPERNODE_MAXSIZE=0 $(srcdir)/tests/bench/nbrhd $(NBRHD_OPTIONS)
# Beside UCX, libfabric and two MPIs: what contrib/install-packages.sh bench installs. make bench-peers PEERS_OPTIONS="--turns 1": briefly.
bench-peers: all-am tests/bench/peers_ours
	@$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/bench/peers/measure --json tests/bench/bench-peers.json $(PEERS_OPTIONS)
bench-atomics: all-am $(atomics_programs) $(bench_programs) $(no_pidfd)
	@$(AM_TESTS_ENVIRONMENT) \
	for mode in seq par; do \
	    echo "By devices, `echo $$mode | tr a-z A-Z`"; \
	    "$$GASNETRUN" -n 2 tests/bench/atomics-$$mode --json tests/bench/bench-atomics-$$mode.json || exit 1; \
	done; \
	echo "By CPUs of neighbours: instructions, the locked one among them"; \
	$(srcdir)/tests/bench/instructions nbrhd-atomic
bench-vector: all-am $(vector_programs)
	@$(AM_TESTS_ENVIRONMENT) \
	for mode in seq par; do \
	    echo "`echo $$mode | tr a-z A-Z`"; \
	    "$$GASNETRUN" -n 2 tests/bench/vector-$$mode --json tests/bench/bench-vector-$$mode.json && \
	    GASNET_SUPERNODE_MAXSIZE=0 "$$GASNETRUN" -n 2 tests/bench/vector-$$mode --json tests/bench/bench-vector-nbrhd-$$mode.json || exit 1; \
	done
# With staging, by HCAs, with neighbours by IPC; softgpu starts a copy within a microsecond or two, devices take five to ten
bench-kind-rows: all-am tests/bench/kind_rows $(softgpu_libraries)
	@$(AM_TESTS_ENVIRONMENT) \
	LD_LIBRARY_PATH=contrib/softgpu/lib:$$LD_LIBRARY_PATH; export LD_LIBRARY_PATH; \
	printf '%-4s %-6s %-6s %12s %12s %8s\n' move here there "rows, us" "single, us" ratio; \
	for settings in 1:staged 1:auto 0:staged 0:auto; do \
	    echo "GASNET_SUPERNODE_MAXSIZE=$${settings%:*} GASNET_MK_WAY=$${settings#*:}"; \
	    GASNET_SUPERNODE_MAXSIZE=$${settings%:*} GASNET_MK_WAY=$${settings#*:} \
	        "$$GASNETRUN" -n 2 tests/bench/kind_rows $(KIND_ROWS) || exit 1; \
	done
bench-collectives: all-am $(collectives_programs)
	@$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/bench/collectives $(COLLECTIVES_OPTIONS)
bench-instructions: all-am $(bench_programs) $(no_pidfd) $(softgpu_libraries)
	@$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/bench/instructions $(INSTRUCTIONS_OPTIONS)
bench-kinds: all-am tests/bench/kinds $(bench_programs) $(no_pidfd) $(softgpu_libraries)
	@$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/bench/kinds_all
bench-kv: all-am tests/workloads/kv/kv
	@$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/bench/kv --json tests/bench/bench-kv.json
bench-rma: all-am tests/workloads/swarm/swarm tests/workloads/swarm/swarm-seq \
    tests/workloads/sharing/sharing tests/workloads/sharing/sharing-seq
	@$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/bench/rma --json tests/bench/bench-rma.json
bench-start-hosts: all-am $(bench_programs) tests/launcher/pmix_probe
	@$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/bench/start_hosts
bench-start-ratio: all-am $(bench_programs) tests/launcher/pmix_probe
	@$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/bench/start_ratio
bench-start-crowd: spawner/gasnetrun_ibv $(softhca_library) tests/bench/start tests/bench/pmix_start tests/job/many_ranks-seq
	@$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/bench/start_crowd $(START_CROWD)
.PHONY: bench-start-crowd

# Costs of this machine, and jobs that are predicted with them: 4 minutes; SIMULATED="--ranks 256" half of that, SIMULATED=--update the page
cost_programs = spawner/gasnetrun_ibv $(softhca_library) tests/launcher/registration tests/job/simulated-seq tests/job/start_growth-seq \
    $(patsubst %,tests/bench/%,frame_steps info_steps pmix_start pmix_steps growth)
bench-simulate: $(cost_programs)
	@$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/bench/scaling/predict $(SIMULATED)
.PHONY: bench-simulate
bench-rails: all-am $(bench_programs)
	@$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/bench/rails
bench-scale: spawner/gasnetrun_ibv $(softhca_library) tests/bench/start tests/bench/first_message tests/bench/first_parts \
    tests/launcher/pmix_probe tests/job/footprint-par tests/job/many_ranks-seq
	@$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/bench/scale
# Exponents of what grows, held against doc/scaling.md; SCALING="--ranks 1024", SCALING=--update, which writes that page
bench-scaling: $(cost_programs) $(no_pidfd) tests/job/footprint-par
	@$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/bench/scaling/measure $(SCALING)
.PHONY: bench-scaling
# Threads with peers of their own and with one; then in pairs, beside as many processes
bench-threads: all-am tests/bench/threads tests/bench/pairs
	@$(AM_TESTS_ENVIRONMENT) \
	echo "Over the network" && \
	"$$GASNETRUN" -n 9 tests/bench/threads --json tests/bench/bench-threads.json && \
	echo "Between neighbours" && \
	GASNET_SUPERNODE_MAXSIZE=0 "$$GASNETRUN" -n 9 tests/bench/threads --json tests/bench/bench-threads-nbrhd.json && \
	echo "In pairs, over the network" && \
	$(srcdir)/tests/bench/pairs_table --json tests/bench/bench-pairs.json && \
	echo "In pairs, over the network, threads with GASNET_NUM_QPS=8 GASNET_IBV_FAILOVER=0" && \
	$(srcdir)/tests/bench/pairs_table --set GASNET_NUM_QPS=8 --set GASNET_IBV_FAILOVER=0 --json tests/bench/bench-pairs-qps.json && \
	echo "In pairs, between neighbours" && \
	$(srcdir)/tests/bench/pairs_table --where neighbours --json tests/bench/bench-pairs-nbrhd.json
bench-working-set: all-am $(bench_programs)
	@$(AM_TESTS_ENVIRONMENT) \
	GASNET_FIREHOSE_MAXVICTIM_M=4 "$$GASNETRUN" -n 2 tests/bench/working_set
.PHONY: bench bench-kinds bench-compare bench-scale bench-collectives bench-verbs bench-start bench-kv bench-rma bench-nbrhd bench-peers bench-par bench-instructions bench-atomics bench-vector bench-kind-rows bench-start-hosts bench-start-ratio bench-rails bench-working-set bench-threads
