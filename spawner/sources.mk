# SPDX-License-Identifier: BSD-3-Clause
# The launcher. A new source file is added here.

# Pure parts, which the unit tests link too
launcher_pure_sources = $(addprefix spawner/, \
    $(patsubst %,util/%.c,byte_queue procinfo log hail words signal_text) \
    $(patsubst %,wire/%.c,wire auth dial hello pack job_frame exchange) \
    $(patsubst %,agent/%.c,listen ssh_text) \
    $(patsubst %,head/%.c,fences explain policy devices network output) \
    $(patsubst %,iof/%.c,lines pump) \
    $(patsubst %,run/%.c,options program environ host_list batch hosts layout foreign) \
    $(patsubst %,server/%.c,owner handshake) \
    $(patsubst %,guard/%.c,session oom)) \
    common/file_text.c common/number.c common/report_file.c common/sha256.c common/signal_name.c conduit/stats/table.c \
    $(patsubst %,conduit/settings/settings_%.c,forms parse size table)
launcher_sources = $(launcher_pure_sources) $(addprefix spawner/, \
    $(patsubst %,run/%.c,main page place plan device probe ask top others samples top_table web) \
    $(patsubst %,head/%.c,head hang view input collect) \
    util/signals.c \
    $(patsubst %,agent/%.c,agent fork ssh) \
    $(patsubst %,guard/%.c,remote there stacks symbols waits explain counts files guard binding launch report orders end) \
    $(patsubst %,tree/%.c,tree watch) \
    $(patsubst %,children/%.c,start reach bind) \
    $(patsubst %,server/%.c,server channel upcalls jobinfo exchange gate)) \
    $(patsubst %,contrib/softhca/support/%.c,bundle bundle_fit gid_list profiles qp_caps registry_name softhca_settings speed) contrib/softhca/fault/fault_parse.c \
    conduit/settings/settings_print.c conduit/stats/print.c
launcher_flags = $(AM_CPPFLAGS) -I$(srcdir)/conduit -I$(srcdir)/contrib/softhca -DTRUNKLINE_PKGLIBDIR='"$(pkglibdir)"' $(plain_cflags) \
    $(PMIX_CFLAGS) $(IBVERBS_CFLAGS) $(HWLOC_CFLAGS)
$(call variant,launcher,$$(launcher_flags))

# --simulate: the library's functions that decide, with a world around them in place of a process (simulate/world.c) and without its
# start. Compiled as those of --plan (conduit/sources.mk), because they look into the library's objects.
simulate_sources = $(patsubst %,spawner/simulate/%.c,barriers connections costs demand ending events fabric failing infos input launcher leaving messages result rounds \
    simulate world) $(patsubst %,conduit/collective/%.c,blocks broadcast choose coll reduce) conduit/team/list.c conduit/topology/leaders.c \
    $(patsubst %,conduit/exit/%.c,decide state) $(patsubst %,conduit/transport/verbs/conn/%.c,handshake incarnation) conduit/bootstrap/host_blob.c \
    conduit/settings/settings_text.c
simulate_objects := $(call objects,plan,$(simulate_sources))
launcher_libs = $(PMIX_LIBS) $(IBVERBS_LIBS) $(HWLOC_LIBS)

# Never sanitized: libpmix under AddressSanitizer is most of the time that a short job takes, and tests are short jobs.
launcher = spawner/gasnetrun_ibv
$(call program,$(launcher),$(call objects,launcher,$(launcher_sources)) $(plan_objects) $(simulate_objects),$$(launcher_libs),plain)
all_products += $(launcher)

# The same with the sanitizer of the tree, for tests of the launcher alone
ifneq ($(enable_sanitizer),no)
launcher_checked = launcher-sanitized
$(call variant,launcher-sanitized,$$(launcher_flags) $$(SANITIZER_CFLAGS))
$(call program,spawner/gasnetrun_sanitized,$(call objects,launcher-sanitized,$(launcher_sources)) $(plan_objects) $(simulate_objects),$$(launcher_libs))
else
launcher_checked = launcher
endif
