# SPDX-License-Identifier: BSD-3-Clause
# Jobs of 1 to 8 processes, each proving one promise of the interface. A program is built once for each mode that it is run in; the
# scripts choose numbers of processes and settings. Programs are linked with the archives.

job_flags = $(client_flags) $(AM_CFLAGS)
$(foreach m,seq par parsync,$(call variant,job-$(m),$$(job_flags) -DGASNET_$(call upper,$(m))))
$(call variant,job-large,$$(job_flags) $$(segment_large) -DGASNET_PAR)
$(call variant,job-everything,$$(job_flags) $$(segment_everything) -DGASNET_PAR)
job_library_seq = conduit/libgasnet-ibv-seq.a
job_library_par = conduit/libgasnet-ibv-par.a
job_library_parsync = conduit/libgasnet-ibv-parsync.a
job_library_large = tests/job/libgasnet-large.a
job_library_everything = tests/job/libgasnet-everything.a
# The two kinds of segments that this tree is not configured for, in PAR. A sanitizer's tree goes without: they would take it as long
# as all else.
ifeq ($(enable_sanitizer),no)
job_modes = seq par parsync large everything
$(foreach s,large everything,$(call archive,tests/job/libgasnet-$(s).a,$(call segment_objects,$(s),$(library_sources))))
else
job_modes = seq par parsync
endif

# $(call job,NAME,MODES[,SOURCES][,LIBRARIES AND FLAGS]): tests/job/NAME-MODE of NAME.c, or of these sources, and job.c
job = $(foreach m,$(filter $(job_modes),$(2)),$(call program,tests/job/$(1)-$(m),\
    $(call objects,job-$(m),$(patsubst %,tests/job/%.c,$(or $(3),$(1)) job)),$(job_library_$(m)) $$(conduit_libs) $(4)))
$(call job,am,seq par parsync large everything)
$(call job,am_items,seq par)
$(call job,any_address,everything)
$(call job,atomics,seq par large everything,atomics atomics_history atomics_misuse atomics_types atomics_words)
$(call job,attach,seq par)
$(call job,barrier,seq par)
$(call job,barrier_credits,seq par)
$(call job,barrier_threads,par)
$(call job,counters,seq par)
$(call job,counters_shifted,seq par,counters shifted_clock)
$(call job,coll_channels,seq par)
$(call job,testbcast,seq)
$(call job,collectives,seq par large everything)
$(call job,collectives_threads,par)
$(call job,cancel,seq par)
$(call job,connected,seq)
$(call job,credits,seq par)
$(call job,endpoint_am,seq par large)
$(call job,endpoints,seq par)
$(call job,environment,seq par)
$(call job,exit,seq par)
$(call job,exit_attach,seq)
$(call job,exit_contexts,seq par)
$(call job,exit_on_file,seq)
$(call job,first_contact,seq par)
$(call job,fill_segment,seq)
# It counts the library's calls of functions that it has itself.
$(call job,footprint,seq par,,-rdynamic)
$(call job,handlers,seq par)
$(call job,hang,seq par)
$(call job,hello,seq)
$(call job,kill,seq par)
$(call job,last_barrier,seq)
$(call job,kinds,seq par large,kinds kinds_devices,-ldl)
$(call job,kind_ends,seq,,-ldl)
$(call job,inlined,seq,inlined accelerator,-ldl)
$(call job,kinds_atomic,seq,kinds_atomic accelerator,-ldl)
$(call job,kinds_am,seq par large,kinds_am accelerator,-ldl)
$(call job,large_messages,seq par)
$(call job,legacy,seq par parsync,legacy legacy_am legacy_rma legacy_vis)
$(call job,late_thread,par)
$(call job,legacy_threads,par)
$(call job,many_ranks,seq)
$(call job,many_to_one,seq par)
$(call job,misuse,seq)
$(call job,named_barrier,seq par)
$(call job,nbi,seq par parsync large everything)
$(call job,negotiated,seq par parsync)
$(call job,neighbours,seq par)
$(call job,oldclient,seq par)
$(call job,port_flap,seq par)
$(call job,progress_threads,seq par)
$(call job,put_visibility,seq)
$(call job,putget,seq par parsync large everything,putget putget_events)
$(call job,query,seq par parsync)
$(call job,random_mix,seq par,random_mix random_mix_am random_mix_legacy random_mix_misc random_mix_rma)
# It calls libibverbs itself.
$(call job,raw,seq par,,$$(IBVERBS_LIBS))
$(call job,remapped_memory,seq par large everything)
$(call job,rma,seq par)
$(call job,segment_cost,seq)
$(call job,shares,seq)
$(call job,shm_rma,seq par)
$(call job,spinning,seq par)
$(call job,stores,seq)
$(call job,simulated,seq,simulated pmix_calls exit_calls,-Wl$(comma)--wrap=tk_internal_send)
$(call job,start_cost,seq,start_cost pmix_calls)
$(call job,start_growth,seq)
$(call job,soak,seq par)
$(call job,stress,seq par)
$(call job,teams,seq par large)
$(call job,thread_lines,par,thread_lines touched_lines)
$(call job,thread_turns,par)
$(call job,threads,par)
$(call job,tools,seq par)
$(call job,top,seq par)
$(call job,traced,seq par)
$(call job,unresponsive_rank,seq par)
$(call job,vector,seq par large everything,vector vector_shapes)
$(call job,waiting,seq par)

$(call program,tests/job/watchdog,$(call objects,job-seq,tests/job/watchdog.c))
$(call program,tests/job/deny_syscalls,$(call objects,job-seq,tests/job/deny_syscalls.c))

# A program of CUDA's driver API, as users build it: no part of the tests, the driver's library by its name alone
$(foreach m,seq par,$(call variant,cuda-$(m),-I$$(srcdir)/contrib/softgpu/include $$(job_flags) -DGASNET_$(call upper,$(m)))\
    $(call program,tests/job/cuda_ring-$(m),$(call objects,cuda-$(m),tests/job/cuda_ring.c),\
    $(job_library_$(m)) $(softgpu_folder)/libcuda.so.1 $$(conduit_libs)))

# A client of the debug twin, or, where all libraries check, of the library
checked_library = conduit/libgasnet-ibv-seq$(if $(filter no,$(enable_debug)),-debug).a
$(call variant,checked,$$(job_flags) $(if $(filter no,$(enable_debug)),-DTRUNKLINE_DEBUG=1) -DGASNET_SEQ,$$(twin_late))
$(call program,tests/job/checked,$(call objects,checked,tests/job/checked.c tests/job/job.c),$(checked_library) $$(conduit_libs))

# The same of the trace twin
traced_library = conduit/libgasnet-ibv-seq$(if $(filter no,$(enable_trace)),-trace).a
$(call variant,traced,$$(job_flags) $(if $(filter no,$(enable_trace)),-DTRUNKLINE_TRACE=1) -DGASNET_SEQ)
$(call program,tests/job/report_traced,$(call objects,traced,tests/job/am.c tests/job/job.c),$(traced_library) $$(conduit_libs))

# Each call of the public headers with each object invalid, in the same and in a release library
invalid_headers = $(notdir $(wildcard $(srcdir)/conduit/include/*.h))
tests/job/invalid_table.c: tests/job/invalid.awk $(wildcard $(srcdir)/conduit/include/*.h $(srcdir)/conduit/include/*/*.h) $(this_list)
	$(call say,GEN,$@)mkdir -p tests/job && printf '#include <%s>\n' gasnetex.h $(invalid_headers) | \
	    $(CC) $(DEFS) -I. $(flags_checked) $(CPPFLAGS) -E -P -x c - | awk -f $< >$@.tmp && mv $@.tmp $@
cleaned += tests/job/invalid_table.c
$(call program,tests/job/invalid-debug,$(call objects,checked,tests/job/invalid.c tests/job/invalid_table.c tests/job/job.c),$(checked_library) $$(conduit_libs))
$(call program,tests/job/invalid-release,$(call objects,job-seq,tests/job/invalid.c tests/job/invalid_table.c tests/job/job.c),$(job_library_seq) $$(conduit_libs))

# The longest first
job_tests = $(patsubst %,tests/job/%.sh, \
    shm_and_mixed profiles exit exit_matrix crashes many_ranks start_cost start_growth coll_channels testbcast collectives kill soak unresponsive_rank neighbours \
    waiting hang top report web virtual_hosts vector counters trace credits srq kinds kinds_am kinds_atomic large_messages xrc modes random_mix progress_threads packets \
    spinning two_machines legacy settings misuse checked environment firehose addressing fabrics fabrics_addresses failover port_flap connect_max on_demand rdmacm rails \
    segments loaded_late putget negotiated cancel teams invalid thread_lines thread_turns threads endpoint_am endpoints watchdog am atomics am_items nbi shm_rma \
    cuda_ring locality ports_auto summit \
    raw rma barrier barrier_credits named_barrier legacy_threads exit_contexts limits plan simulate gasnet_trace info bundle info_accelerators info_topology attach_memory paging connect_files query stress \
    tools foreign_launchers others strangers exit_messages exit_attach shares)
TESTS += $(job_tests)
accelerator_tests = $(patsubst %,tests/job/%.sh,kinds kinds_am kinds_atomic)
$(foreach t,$(accelerator_tests),$(eval needs_$(t) = $$(softgpu_libraries)))
needs_tests/job/loaded_late.sh = $(call library_files,$(installed_libraries))
tsan_tests += $(patsubst %,tests/job/%.sh,atomics collectives endpoint_am vector firehose random_mix srq large_messages xrc stress legacy_threads nbi \
    thread_turns)

# A minute of everything in every build; in a tree for the thread sanitizer it is the proof of PAR.
check-long: check-long-mix check-long-exits check-long-soak check-long-failover check-long-modes
long_mix = random_mix.sh
long_exits = exit_matrix.sh
long_soak = soak.sh
long_failover = failover.sh
long_modes = modes.sh
check-long-mix check-long-exits check-long-soak check-long-failover check-long-modes: check-long-%: $$(call needs_of,tests/job/$$(long_$$*))
	$(AM_TESTS_ENVIRONMENT) MIX_SECONDS=60 EXITS=all SOAK_RUNS=1000 MOMENTS="`seq 1 3 60`" MODES=all $(srcdir)/tests/job/$(long_$*)
.PHONY: check-long check-long-mix check-long-exits check-long-soak check-long-failover check-long-modes
