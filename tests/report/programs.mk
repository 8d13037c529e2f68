# SPDX-License-Identifier: BSD-3-Clause
# gasnet_report: a job to report on, over the trace twin where it was configured, and the page in a browser.
report_test_library = conduit/libgasnet-ibv-$(1)$(if $(filter yes,$(enable_trace_twin)),-trace).a
$(foreach m,seq par,$(call variant,report-$(m),$$(job_flags) $(if $(filter yes,$(enable_trace_twin)),-DTRUNKLINE_TRACE=1) -DGASNET_$(call upper,$(m)))\
    $(call program,tests/report/worker-$(m),$(call objects,report-$(m),tests/report/worker.c tests/job/job.c),\
    $(call report_test_library,$(m)) $$(conduit_libs)))
report_tests = tests/report/page.sh
needs_tests/report/page.sh = $(report) tests/report/worker-seq tests/report/worker-par tests/job/watchdog
TESTS += $(report_tests)
sanitizer_tests += $(report_tests)
clean_files += tests/report/pages
