# SPDX-License-Identifier: BSD-3-Clause
# The software HCA. A new source file is added here.

# All but the way to the host's own library, in which the libraries differ
softhca_core_sources = $(addprefix contrib/softhca/, \
    $(patsubst %,support/%.c,bundle bundle_fit cache_lines config counters gid_list profiles qp_caps registry_name softhca_lock softhca_settings speed) \
    $(patsubst %,fault/%.c,fault fault_parse) \
    $(patsubst %,fabric/%.c,contexts directory file gid gid_rows heap helper inet link load lock multicast paging peer registry segment socket_owner state watch) \
    $(patsubst %,wire/%.c,atomic completion control copy datagram deliver early engine execute fatal fault_run multicast notify pending plain \
        rate rdma receive receive_queue send_queue shared target) \
    $(patsubst %,wire/udp/%.c,attend batch calls datagram drops early explain fate faults held name network open put_off qp rx select source state \
        timer tx) \
    wire/xrc.c \
    $(patsubst %,verbs/%.c,ah channel context cq cq_ex device dm dmabuf domain gid modify mr multicast poll port process qp qp_ex qp_manners recv register send srq stats status \
        unsupported wr xrc xrcd) \
    $(patsubst %,rdmacm/%.c,address agent bind channel connect device ep event exchange host id info object qp rest wire))

# Only verbs names are visible: the library is loaded into programs that know nothing of it. It is not linked with libibverbs, so
# that preloading it into bash does not load that too.
softhca_cflags = $(AM_CFLAGS) $(IBVERBS_CFLAGS) $(RDMACM_CFLAGS) -fvisibility=hidden $(pic)
$(call variant,softhca,$$(AM_CPPFLAGS) -I$$(srcdir)/contrib/softhca -I$$(srcdir)/contrib/roce $$(softhca_cflags))
softhca_core_objects := $(call objects,softhca,$(softhca_core_sources))
softhca_core = contrib/softhca/libcore.a
$(call archive,$(softhca_core),$(softhca_core_objects) $(roce_objects))
softhca_library = contrib/softhca/libsofthca.so
softhca_link = -Wl,-z,nodelete -ldl
$(call variant,softhca-preload,$$(flags_softhca))
$(call shared,$(softhca_library),$(call objects,softhca-preload,contrib/softhca/replace/real.c) $(softhca_core_objects) $(roce_objects),\
    $$(softhca_link) -Wl$(comma)-soname$(comma)libsofthca.so)
all_products += $(softhca_library)

# The replacements for the host's libibverbs.so.1 and librdmacm.so.1, for LD_LIBRARY_PATH: the exports of the host's, read from them.
ifeq ($(softhca_replace),yes)
replace_folder = contrib/softhca/replace
$(call variant,libibverbs,$$(AM_CPPFLAGS) -I$$(srcdir)/contrib/softhca -I$$(replace_folder) \
    -DSHCA_HOST_LIBDIR='"$$(SOFTHCA_HOST_LIBDIR)"' $$(softhca_cflags))
$(call variant,librdmacm,$$(AM_CPPFLAGS) -I$$(srcdir)/contrib/softhca -I$$(replace_folder)/rdmacm \
    -DSHCA_HOST_LIBDIR='"$$(SOFTHCA_HOST_LIBDIR)"' $$(softhca_cflags))
libibverbs_objects := $(call objects,libibverbs,$(patsubst %,$(replace_folder)/%,forward.c ibverbs.c trampolines.S))
librdmacm_objects := $(call objects,librdmacm,contrib/softhca/support/config.c $(patsubst %,$(replace_folder)/%,forward.c rdmacm.c trampolines.S))
replace_libraries = $(replace_folder)/libibverbs.so $(replace_folder)/librdmacm.so
$(call shared,$(replace_folder)/libibverbs.so.1.0.0,$(libibverbs_objects) $(softhca_core_objects) $(roce_objects),\
    $$(softhca_link) -Wl$(comma)-soname$(comma)libibverbs.so.1 -Wl$(comma)--version-script=$(replace_folder)/exports.map,\
    $(replace_folder)/exports.map)
$(call shared,$(replace_folder)/librdmacm.so.1.0.0,$(librdmacm_objects),\
    $$(softhca_link) -Wl$(comma)-soname$(comma)librdmacm.so.1 -Wl$(comma)--version-script=$(replace_folder)/rdmacm/exports.map,\
    $(replace_folder)/rdmacm/exports.map)
$(foreach l,$(replace_libraries),$(l).1 $(l)): %: $$(firstword $$(subst .so,.so ,$$@)).1.0.0
	@ln -sf $(<F) $@
exports = exports.map exports.inc exports.def
$(exports:%=$(replace_folder)/%) &: contrib/softhca/replace/exports.sh $(softhca_library)
	$(call say,GEN,$@)$(srcdir)/$(replace_folder)/exports.sh '$(READELF)' \
	    '$(SOFTHCA_HOST_LIBDIR)/libibverbs.so.1' $(softhca_library) $(replace_folder)
$(exports:%=$(replace_folder)/rdmacm/%) &: contrib/softhca/replace/exports.sh
	$(call say,GEN,$@)$(srcdir)/$(replace_folder)/exports.sh '$(READELF)' \
	    '$(SOFTHCA_HOST_LIBDIR)/librdmacm.so.1' - $(replace_folder)/rdmacm
directories += $(replace_folder) $(replace_folder)/rdmacm
$(libibverbs_objects): | $(exports:%=$(replace_folder)/%)
$(librdmacm_objects): | $(exports:%=$(replace_folder)/rdmacm/%)
cleaned += $(exports:%=$(replace_folder)/%) $(exports:%=$(replace_folder)/rdmacm/%) $(foreach l,$(replace_libraries),$(l) $(l).1)
all_products += $(foreach l,$(replace_libraries),$(l) $(l).1)
endif

# The command that starts programs on it and steers fabrics; without libibverbs.
softhca_command = contrib/softhca/softhca
$(call variant,softhca-command,$$(AM_CPPFLAGS) -I$$(srcdir) -I$$(srcdir)/contrib/softhca -DSHCA_PKGLIBDIR='"$$(pkglibdir)"' \
    $$(AM_CFLAGS) $$(IBVERBS_CFLAGS) $$(HWLOC_CFLAGS))
softhca_command_sources = $(patsubst %,contrib/softhca/command/%.c,list main members options run steer topology) \
    contrib/softhca/fault/fault_parse.c $(patsubst %,contrib/softhca/support/%.c,bundle bundle_fit gid_list profiles qp_caps registry_name softhca_settings speed)
$(call program,$(softhca_command),$(call objects,softhca-command,$(softhca_command_sources)),$$(HWLOC_LIBS))
all_products += $(softhca_command)
