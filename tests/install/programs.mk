# SPDX-License-Identifier: BSD-3-Clause
# Is the installed copy complete and usable by clients that do not know the source tree? tree.sh
# installs once; the other tests check its copy in tests/install/root.
install_clients = $(patsubst %,tests/install/%.sh,headers symbols guard client tools clients upcxx cmake twin trace_twin valgrind static_link includes examples pages)
TESTS += tests/install/tree.sh $(install_clients) tests/install/options.sh
$(install_clients:.sh=.log): tests/install/tree.log
needs_tests/install/tree.sh = all-am
$(foreach t,$(install_clients),$(eval needs_$(t) = all-am))
clean_files += tests/install/root tests/install/root-one tests/install/scratch-*

# Is each name of the interface there, as what it must be, and are the headers quiet?
interface_tests = $(patsubst %,tests/interface/%.sh,surface order names compat items platform aarch64)
TESTS += $(interface_tests)
$(foreach t,$(interface_tests),$(eval needs_$(t) = $$(call library_files,$$(installed_libraries))))
