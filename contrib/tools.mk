# SPDX-License-Identifier: BSD-3-Clause
# trunkline_info and gasnet_trace, and the manual pages that the launcher writes. A new source file is added here.

# Linked with the objects of the library itself, whose rules it prints
$(call variant,info,$$(conduit_cppflags) -DGASNET_SEQ $$(conduit_cflags))
info_sources = $(patsubst %,contrib/info/%.c,accelerators build bundle bundle_device bundle_host bundle_job bundle_probe bundle_test bundle_text device_job devices \
    files judge limits main path place report settings topology trial)
info = contrib/info/trunkline_info
$(call program,$(info),$(call objects,info,$(info_sources)),conduit/libgasnet-ibv-seq.a $$(conduit_libs))

# Reads files of traces; no part of the library is linked, only its table of operations is included.
$(call variant,trace,$$(conduit_cppflags) $$(AM_CFLAGS))
trace_summary_sources = $(patsubst %,contrib/trace/%.c,parse parse_json rails summary table word)
trace = contrib/trace/gasnet_trace
$(call program,$(trace),$(call objects,trace,contrib/trace/main.c contrib/trace/print.c contrib/trace/print_json.c $(trace_summary_sources)))
all_products += $(info) $(trace)

# That of the settings is made by the launcher of this build, so that it shows the defaults that configure chose; a launcher built for
# another machine can't be run here, and the page is left out then.
# $(call page,NAME,OPTION,MARK)
define page_rule
man/trunkline-$(1).7: man/trunkline-$(1).7.in $$(launcher)
	$$(call say,GEN,$$@)$$(launcher) --$(1)=man >$$@.part && \
	    sed -e "/^@$(2)@$$$$/{r $$@.part" -e 'd;}' $$(srcdir)/man/trunkline-$(1).7.in >$$@.tmp && rm -f $$@.part && mv $$@.tmp $$@
endef
$(eval $(call page_rule,settings,SETTINGS))
$(eval $(call page_rule,counters,COUNTERS))
directories += man
cleaned += man/trunkline-settings.7 man/trunkline-counters.7

# Those of the documents, in the source tree: contrib/pictures/README
pictures:
	$(srcdir)/contrib/pictures/make-pictures
.PHONY: pictures
