# SPDX-License-Identifier: BSD-3-Clause
# What make dist packs beside what automake knows: everything of the source folders that people wrote. Looked for only when a
# tarball is made.
ifneq ($(findstring dist,$(MAKECMDGOALS)),)
dist_folders = .ci common conduit contrib doc man spawner tests
EXTRA_DIST += .clang-format HACKING CONTRIBUTING autogen.sh $(shell cd $(srcdir) && find $(dist_folders) -type f \
    ! -path '*/__pycache__/*' ! -path 'tests/install/root*' ! -path 'tests/install/scratch-*' \
    ! -name '*.o' ! -name '*.a' ! -name '*.so*' ! -name '*.log' ! -name '*.trs' ! -name '*.tmp' | sort)
endif
