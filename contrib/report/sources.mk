# SPDX-License-Identifier: BSD-3-Clause
# gasnet_report. A new source file is added here; the files of page/ become strings of the program.
$(call variant,report,$$(conduit_cppflags) $$(AM_CFLAGS))

# What the unit tests link too
report_model_sources = $(patsubst %,contrib/report/%.c,finding json model page read read_stats read_text rules rules_trace timeline tracks word_copy write_json) \
    $(trace_summary_sources) common/sha256.c
report_script = $(patsubst %,contrib/report/page/%.js,base charts matrix timeline panels main)
# $(call report_page,PART,FILES)
define report_page_rule
contrib/report/page_$(1).c: $(2) contrib/report/embed.awk $(this_list)
	$$(call say,GEN,$$@)awk -v name=report_page_$(1) -f $$(srcdir)/contrib/report/embed.awk $$(addprefix $$(srcdir)/,$(2)) >$$@.tmp && mv $$@.tmp $$@
cleaned += contrib/report/page_$(1).c
report_page_sources += contrib/report/page_$(1).c
endef
report_page = $(eval $(call report_page_rule,$(1),$(2)))
$(call report_page,head,contrib/report/page/head.html)
$(call report_page,body,contrib/report/page/body.html)
$(call report_page,style,contrib/report/page/report.css)
$(call report_page,script,$(report_script))

report = contrib/report/gasnet_report
report_sources = $(patsubst %,contrib/report/%.c,main live serve http) spawner/server/owner.c common/number.c common/report_file.c $(report_model_sources) $(report_page_sources) conduit/stats/table.c
$(call program,$(report),$(call objects,report,$(report_sources)))
all_products += $(report)
directories += contrib/report
