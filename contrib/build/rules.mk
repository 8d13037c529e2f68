# SPDX-License-Identifier: BSD-3-Clause
# How everything is compiled and linked. GNU make reads this at the end of the Makefile that configure writes; automake does not.
#
# A variant is one way to compile, with a name and flags. obj/VARIANT/a-b-c.o is made of a/b/c.c: the names of a variant's objects
# are unique, so they can lie in one directory and be members of one archive. The compiler writes the dependencies beside them.
#   $(call variant,NAME,FLAGS[,LATE])    LATE: behind the user's CFLAGS
#   $(call objects,NAME,SOURCES)         the names of their objects
#   $(call archive,FILE,OBJECTS)
#   $(call shared,FILE,OBJECTS,FLAGS[,FILES THAT IT DEPENDS ON])
#   $(call program,FILE,OBJECTS,LIBRARIES[,plain])     plain: without the tree's sanitizer
# All but `objects` make rules. The lists of sources are in */sources.mk and tests/*/programs.mk.

MAKEFLAGS += -rR
# automake's own `all` runs make once more, in order to make config.h first.
.DEFAULT_GOAL = all-am
.DELETE_ON_ERROR:
# A header that is gone: what included it is compiled again, and if it still does the compiler says so.
%.h %.def %.inc: ;

# ---- What is printed ----

# One line a step, with $(info), which needs no shell. TK_STEPS=N counts them: quickstart.sh knows how many there are.
verbosity = $(or $(V),$(AM_DEFAULT_VERBOSITY))
step_number = $(eval steps_made += x)$(words $(steps_made))
step_count = $(if $(TK_STEPS),[$(step_number)/$(TK_STEPS)] )
say = $(if $(filter 0,$(verbosity)),@$(info $(step_count)  $(1)  $(2)))

# ---- Compiling ----

plain_cflags = -std=gnu11 -pthread $(WARN_CFLAGS)
AM_CFLAGS = $(plain_cflags) $(SANITIZER_CFLAGS)
AM_CPPFLAGS = -D_GNU_SOURCE
includes = $(addprefix -I,$(1))
pic = -fPIC -DPIC

.SECONDEXPANSION:
define compile
$(call say,CC,$(<:$(srcdir)/%=%) [$(1)])$(CC) $(DEFS) -I. -I$(srcdir) $(flags_$(1)) $(CPPFLAGS) $(CFLAGS) $(late_$(1)) \
    -MMD -MF $(@:.o=.d) -c -o $@ $<
endef
define variant_rules
flags_$(1) = $(2)
late_$(1) = $(3)
variants += $(1)
obj/$(1)/%.o: $$$$(subst -,/,$$$$*).c
	$$(call compile,$(1))
obj/$(1)/%.o: $$$$(subst -,/,$$$$*).S
	$$(call compile,$(1))
directories += obj/$(1)
endef
variant = $(eval $(call variant_rules,$(1),$(2),$(3)))
objects = $(patsubst %,obj/$(1)/%.o,$(subst /,-,$(basename $(2))))

# ---- Linking ----

# The list that a rule stands in is one of its prerequisites: a library is made again when a source leaves it.
this_list = $(lastword $(filter %/sources.mk %/programs.mk %/tools.mk,$(MAKEFILE_LIST)))
# What is half written when make is killed must not pass for a whole: the tools write elsewhere, then the file is renamed.
define archive_rule
$(1): $(2) $(this_list)
	$$(call say,AR,$$@)rm -f $$@ $$@.tmp && $$(AR) qcs $$@.tmp $(2) && mv $$@.tmp $$@
directories += $(patsubst %/,%,$(dir $(1)))
cleaned += $(1)
endef
archive = $(eval $(call archive_rule,$(1),$(2)))

link = $(CC) $(1) $(CFLAGS) $(LDFLAGS) -o $@.tmp
define shared_rule
$(1): $(2) $(4) $(this_list)
	$$(call say,LINK,$$@)$$(call link,-shared -pthread $$(SANITIZER_CFLAGS)) $(2) $(3) && mv $$@.tmp $$@
directories += $(patsubst %/,%,$(dir $(1)))
cleaned += $(1)
endef
shared = $(eval $(call shared_rule,$(1),$(2),$(3),$(4)))

# Programs find softhca where they were built, unless it is preloaded.
define program_rule
$(1): $(2) $(filter %.a %.so,$(3)) $(this_list)
	$$(call say,LINK,$$@)$$(call link,-pthread $(if $(4),,$$(SANITIZER_CFLAGS))) $(2) $(3) \
	    $(if $(filter %libsofthca.so,$(3)),-Wl$$(comma)-rpath$$(comma)$$(abs_builddir)/contrib/softhca) $$(LIBS) && mv $$@.tmp $$@
directories += $(patsubst %/,%,$(dir $(1)))
cleaned += $(1)
programs += $(1)
endef
program = $(eval $(call program_rule,$(1),$(2),$(3),$(4)))
comma := ,

# ---- Everything there is ----

all_products =
extra_products =
include $(srcdir)/conduit/sources.mk
include $(srcdir)/contrib/roce/sources.mk
include $(srcdir)/contrib/softhca/sources.mk
include $(srcdir)/contrib/softgpu/sources.mk
include $(srcdir)/spawner/sources.mk
include $(srcdir)/contrib/tools.mk
include $(srcdir)/contrib/report/sources.mk
include $(srcdir)/contrib/mcswitch/sources.mk
include $(srcdir)/tests/programs.mk
include $(srcdir)/contrib/build/install.mk
include $(srcdir)/contrib/build/dist.mk

products: $(all_products)
# What is not installed by default, and the tests' programs but for those of bench.
all-extras: all-am debug $(extra_products) $(test_programs)
.PHONY: products all-extras debug trace-twin clean-products

conduit/include/gasnet_config.h: conduit/include/gasnet_config.h.new ;
# By hand, not by rules: a rule would find the folder of that name in the source tree (VPATH).
missing_directories := $(strip $(foreach d,$(sort $(directories)),$(if $(wildcard $(d)/.),,$(d))))
$(if $(missing_directories),$(shell mkdir -p $(missing_directories)))
-include $(wildcard $(addprefix obj/,$(addsuffix /*.d,$(variants))))

clean-products:
	rm -rf obj $(clean_files)
	rm -f $(cleaned)
