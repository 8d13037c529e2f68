# SPDX-License-Identifier: BSD-3-Clause
# The demo: a real distributed program on real input, and the first that a new user runs.
demo = tests/demo/wordcount
demo_sources = $(patsubst %,tests/demo/%.c,wordcount gather input spread table)
$(call variant,client-seq,$$(client_flags) $$(AM_CFLAGS) -DGASNET_SEQ)
$(call program,$(demo),$(call objects,client-seq,$(demo_sources)),conduit/libgasnet-ibv-seq.a $$(conduit_libs))
TESTS += tests/demo/wordcount.sh
# What the first command of README builds
demo: $(demo) $(launcher) $(softhca_library)
.PHONY: demo
