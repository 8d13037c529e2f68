# SPDX-License-Identifier: BSD-3-Clause
# The library: its sources by room, and how they become libraries. A new source file is added to the line of its room.

# $(call room,FOLDER,NAMES)
room = $(eval conduit_sources += $(2:%=$(1)/%.c))
$(call room,conduit/api,ad barrier client coll event ident kind legacy legacy_coll legacy_rma message nbi negotiated rails rma segment system team team_create vis)
$(call room,conduit/atomic,by_device by_message connect domain execute operation)
$(call room,common,file_text number sha256 signal_name)
$(call room,conduit/base,check code lock page ranges report thread_own wait_record)
$(call room,conduit/bootstrap,board bootstrap gather host_blob host_table)
$(call room,conduit/collective,barrier blocks broadcast choose clocks coll engine exchange kernels local local_place local_team match mcast mcast_control mcast_receive mcast_life mcast_leave mcast_window mcast_slots mcast_start mcast_notify named nbrhd node_local reduce team_create)
$(call room,conduit/event,event nbi)
$(call room,conduit/exit,agree bus decide elect exit helper interrupted leave signal_report signals stack state summary watch watchdog)
$(call room,conduit/firehose,cache limits mapping monitor)
$(call room,conduit/mcswitch,client protocol)
$(call room,conduit/kind,classes cuda device hip library memory why ze)
$(call room,conduit/kind_rma,kind_copy kind_ipc kind_long kind_path kind_piece kind_rma kind_serve own staging)
$(call room,conduit/memory,area host limit populate process)
$(call room,conduit/message,deliver endpoint handlers hsl pattern prepare send)
$(call room,conduit/op,op threads unsynced)
$(call room,conduit/peer,host_names connect_file peer peer_info segment share)
$(call room,conduit/process,alone thread)
$(call room,conduit/progress,backoff poll sleep thread_pace threads wait)
$(call room,conduit/remote_pin,flight hoses serve transfer)
$(call room,conduit/rma,rma)
$(call room,conduit/settings,environment settings settings_changed settings_forms settings_parse settings_print settings_size settings_table settings_text settings_unknown)
$(call room,conduit/start,connect_list limits phases report segments start tables)
$(call room,conduit/stats,file format stats table text write)
$(call room,conduit/team,list objects segment segment_kind team)
$(call room,conduit/topology,leaders locality spread topology)
$(call room,conduit/trace,align event format record write)
$(call room,conduit/transport,connect_record doorbell liveness neighbour)
$(call room,conduit/transport/self,self)
$(call room,conduit/transport/shm,ring ring_send ring_queue shm_layout shm_liveness shm_memory shm_open shm_poll shm_post shm_rma)
$(call room,conduit/transport,transport transports)
$(call room,conduit/transport/verbs/cm,address reconnect on_demand endpoint_state events iwarp_first_send startup_handshake connect_request private_data start)
$(call room,conduit/transport/verbs/conn,connect datagram demand demand_record handshake incarnation qp_evict pair psn unconnected xrc xrc_agree xrc_table)
$(call room,conduit/transport/verbs/data,ack deferred atomic am_reserve credit error events gather housekeeping credit_loan credit_loan_messages memory poll queues reap receive receive_shared rendezvous rendezvous_request rendezvous_queue rma_plan rma_post send send_long srq stripe lane tx)
$(call room,conduit/transport/verbs/device,agree device gid_choose gid_index gid_table known last_wqe list_ports network paging path places port_filter port_list ports qp_state rail_select rail_share split)
$(call room,conduit/transport/verbs/failover,async_events connection_state control failover port_events reconnect failover_group tx_log)
$(call room,conduit/transport/verbs,footprint library limits open variants)
$(call room,conduit/transport/verbs/mcast,link)
$(call room,conduit/transport/verbs/raw,raw raw_qp)
$(call room,conduit/transport/verbs,verbs)
$(call room,conduit/vector,choose copy devices fill lists message pieces serve stage stream vector)

# The tools interface: in each conduit library, and in two libraries of its own.
tools_names = backtrace backtrace_gdb backtrace_init checksum counter display env env_flag error freeze guard lock log names number rlimit signal \
    system ticks trace $(if $(filter yes,$(enable_debug_malloc)),heap_checked,heap_plain)
tools_sources = $(tools_names:%=conduit/tools/%.c)
# With a conduit: the job's environment and rank, and what knows of teams and ranks
tools_job_sources = $(tools_sources) \
    $(patsubst %,conduit/tools/%.c,diagnostics format format_memory join stats trace_job env_backend_job)
tools_alone_sources = $(tools_sources) common/number.c conduit/base/report.c common/signal_name.c conduit/tools/env_backend_process.c
library_sources = $(conduit_sources) $(tools_job_sources)

# ---- Which source is compiled how often ----

# Sources of class any do not look at the threading mode, those of class threads ask whether there are threads, those of class client
# which of the three modes it is. conduit/classes.awk finds that by what they include; the compiler refuses one that looks at
# what its class does not have. conduit_segment: those that ask what memory is remotely accessible.
conduit_files = $(wildcard $(srcdir)/common/*.[ch] $(srcdir)/conduit/*/*.[ch] $(srcdir)/conduit/*/*/*.[ch] $(srcdir)/conduit/*/*/*/*.[ch])
conduit/classes.mk: conduit/classes.stamp ;
# Only a change of classes makes make read everything again.
conduit/classes.stamp: $(srcdir)/conduit/classes.awk $(conduit_files)
	$(call say,GEN,conduit/classes.mk)mkdir -p conduit && (cd $(srcdir) && printf '%s\n' $(conduit_files:$(srcdir)/%=%) | awk -f conduit/classes.awk) \
	    >conduit/classes.new && cd conduit && { cmp -s classes.new classes.mk || cp classes.new classes.mk; } && \
	    mv classes.new classes.stamp
include conduit/classes.mk
cleaned += conduit/classes.mk conduit/classes.stamp
$(foreach s,$(conduit_any),$(eval class_$(s) = any))
$(foreach s,$(conduit_threads),$(eval class_$(s) = threads))
$(foreach s,$(conduit_client),$(eval class_$(s) = client))
modes = seq par parsync
threads_of_seq = single
threads_of_parsync = single
threads_of_par = multi
# $(call variant_of,MODE,SOURCE)
variant_of = $(if $(filter any,$(class_$(2))),any,$(if $(filter threads,$(class_$(2))),$(threads_of_$(1)),$(1)))
# $(call conduit_objects,MODE,SOURCES[,PREFIX OF VARIANTS])
conduit_objects = $(foreach s,$(2),$(call objects,$(3)$(call variant_of,$(1),$(s)),$(s)))
# The same in PAR for another kind of segment
segment_objects = $(foreach s,$(2),$(call objects,$(if $(filter $(s),$(conduit_segment)),$(1),$(call variant_of,par,$(s))),$(s)))

conduit_cppflags = $(AM_CPPFLAGS) -DTRUNKLINE_INSIDE -I$(srcdir)/conduit -I$(srcdir)/conduit/include -I$(srcdir)/conduit/include/ibv-conduit \
    -Iconduit/include
conduit_cflags = $(AM_CFLAGS) $(IBVERBS_CFLAGS) $(RDMACM_CFLAGS) $(PMIX_CFLAGS) $(HWLOC_CFLAGS)
# Position-independent in archives too: clients put these into shared objects of their own.
conduit_flags = $(conduit_cppflags) $(conduit_cflags) $(pic)
# A release library knows its own code, so that a program that dies in it can be pointed to the debug twin, where there is one.
release_flags = $(conduit_flags) $(if $(filter yes,$(enable_debug_twin)),-include $(srcdir)/conduit/base/code_extent.h)
$(call variant,any,$$(release_flags))
$(call variant,single,$$(release_flags) -DTK_THREADED=0)
$(call variant,multi,$$(release_flags) -DTK_THREADED=1)
$(call variant,seq,$$(release_flags) -DGASNET_SEQ)
$(call variant,parsync,$$(release_flags) -DGASNET_PARSYNC)
$(call variant,par,$$(release_flags) -DGASNET_PAR)
# The debug twins: the same sources with the checks of --enable-debug, and without what optimises release libraries.
twin_flags = $(conduit_flags) -DTK_DEBUG=1 -DTRUNKLINE_DEBUG=1
twin_late = -g -O0 -UNDEBUG -U_FORTIFY_SOURCE
$(call variant,debug-any,$$(twin_flags),$$(twin_late))
$(call variant,debug-single,$$(twin_flags) -DTK_THREADED=0,$$(twin_late))
$(call variant,debug-multi,$$(twin_flags) -DTK_THREADED=1,$$(twin_late))
$(call variant,debug-seq,$$(twin_flags) -DGASNET_SEQ,$$(twin_late))
$(call variant,debug-parsync,$$(twin_flags) -DGASNET_PARSYNC,$$(twin_late))
$(call variant,debug-par,$$(twin_flags) -DGASNET_PAR,$$(twin_late))
# The trace twins: optimised as release libraries. Only sources that look at whether there are traces are compiled for them.
trace_flags = $(release_flags) -DTK_TRACE=1 -DTRUNKLINE_TRACE=1
$(call variant,trace-any,$$(trace_flags))
$(call variant,trace-single,$$(trace_flags) -DTK_THREADED=0)
$(call variant,trace-multi,$$(trace_flags) -DTK_THREADED=1)
$(call variant,trace-seq,$$(trace_flags) -DGASNET_SEQ)
$(call variant,trace-parsync,$$(trace_flags) -DGASNET_PARSYNC)
$(call variant,trace-par,$$(trace_flags) -DGASNET_PAR)
# $(call trace_objects,MODE,SOURCES)
trace_objects = $(call conduit_objects,$(1),$(filter-out $(conduit_traced),$(2))) \
    $(call conduit_objects,$(1),$(filter $(conduit_traced),$(2)),trace-)
# The kinds of segment that this tree is not configured for, for tests, in PAR
segment_large = -DTRUNKLINE_SEGMENT_NAME='"LARGE"' -DGASNET_SEGMENT_LARGE=1
segment_everything = -DTRUNKLINE_SEGMENT_NAME='"EVERYTHING"' -DGASNET_SEGMENT_EVERYTHING=1
$(call variant,large,$$(release_flags) $$(segment_large) -DGASNET_PAR)
$(call variant,everything,$$(release_flags) $$(segment_everything) -DGASNET_PAR)
# The stand-alone tools
$(call variant,tools-seq,$$(conduit_flags) -DGASNETT_THREAD_SINGLE)
$(call variant,tools-par,$$(conduit_flags) -DGASNETT_THREAD_SAFE)
tools_objects = $(foreach s,$(2),$(call objects,$(if $(filter client,$(class_$(s))),tools-$(1),$(call variant_of,$(1),$(s))),$(s)))

# ---- Libraries ----

# libibverbs and librdmacm are loaded when they are needed (transport/verbs/library.h).
conduit_libs = $(PMIX_LIBS) $(HWLOC_LIBS) -ldl -lpthread -lm
conduit_map = $(srcdir)/conduit/libgasnet.map
# current:revision:age of the ABI as libtool counts: soname .so.1, file .so.1.0.0
soname = -Wl,-soname,$(notdir $(1)).1
versioned = $(1).1.0.0

# $(call library,FILE,OBJECTS,LIBRARIES): FILE.a, and FILE.so.1.0.0 with the two links to it
define library_rules
$(call archive,$(1).a,$(2))
$(call shared,$(1).so.1.0.0,$(2),$(3) -Wl$$(comma)--version-script=$$(conduit_map) -Wl$$(comma)-z$$(comma)defs -Wl$$(comma)-soname$$(comma)$(notdir $(1)).so.1,$$(conduit_map))
$(1).so.1 $(1).so: $(1).so.1.0.0
	@ln -sf $$(<F) $$@
cleaned += $(1).so.1 $(1).so
endef
library = $(eval $(call library_rules,$(1),$(2),$(3)))
$(foreach m,$(modes),$(call library,conduit/libgasnet-ibv-$(m),$(call conduit_objects,$(m),$(library_sources)),\
    $$(conduit_libs) $$(GASNET_DEP_RPATHS)))
$(foreach m,$(modes),$(call library,conduit/libgasnet-ibv-$(m)-debug,$(call conduit_objects,$(m),$(library_sources),debug-),\
    $$(conduit_libs) $$(GASNET_DEP_RPATHS)))
$(foreach m,$(modes),$(call library,conduit/libgasnet-ibv-$(m)-trace,$(call trace_objects,$(m),$(library_sources)),\
    $$(conduit_libs) $$(GASNET_DEP_RPATHS)))
$(foreach m,seq par,$(call library,conduit/tools/libgasnet_tools-$(m),$(call tools_objects,$(m),$(tools_alone_sources)),-lpthread -lm))

twin_libraries = $(modes:%=conduit/libgasnet-ibv-%-debug)
trace_libraries = $(modes:%=conduit/libgasnet-ibv-%-trace)
installed_libraries = $(modes:%=conduit/libgasnet-ibv-%) conduit/tools/libgasnet_tools-seq conduit/tools/libgasnet_tools-par \
    $(if $(filter yes,$(enable_debug_twin)),$(twin_libraries)) $(if $(filter yes,$(enable_trace_twin)),$(trace_libraries))
library_files = $(foreach l,$(1),$(l).a $(l).so $(l).so.1)
all_products += $(call library_files,$(installed_libraries))
debug: $(call library_files,$(twin_libraries))
trace-twin: $(call library_files,$(trace_libraries))

# What gasnetrun_ibv --plan prints comes from the functions that the library allocates by. Sizes are those of PAR: tables are the
# same in all modes. Never sanitized, as the launcher. A call of the dynamic linker for thread-local variables would make it a library
# of the launcher, in front of AddressSanitizer's where softhca, built with that, is loaded into the launcher (a job in a job): it
# then misses the linker's functions.
plan_sources = conduit/base/check.c conduit/base/lock.c conduit/base/page.c conduit/base/report.c conduit/firehose/limits.c conduit/memory/host.c \
    conduit/peer/host_names.c conduit/start/plan.c conduit/transport/shm/ring.c conduit/transport/shm/shm_layout.c \
    conduit/transport/verbs/data/credit_loan.c conduit/transport/verbs/footprint.c conduit/transport/verbs/limits.c
$(call variant,plan,$$(conduit_cppflags) -DGASNET_PAR $$(plain_cflags) -ftls-model=initial-exec $$(IBVERBS_CFLAGS))
plan_objects := $(call objects,plan,$(plan_sources))
