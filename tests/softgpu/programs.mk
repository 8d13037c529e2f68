# SPDX-License-Identifier: BSD-3-Clause
# Tests of the software accelerator. The programs are linked with its libraries as a client's are with the vendor's.

$(call variant,softgpu-test,$$(AM_CPPFLAGS) -I$$(srcdir) -I$$(srcdir)/contrib/softgpu/include $$(AM_CFLAGS) $$(IBVERBS_CFLAGS),$$(TEST_CFLAGS))
softgpu_rpath = -Wl,-rpath,$(abs_builddir)/$(softgpu_folder)
# $(call softgpu_program,NAME,SONAMES)
softgpu_program = $(call program,tests/softgpu/$(1),$(call objects,softgpu-test,tests/softgpu/$(1).c),\
    $(2:%=$(softgpu_folder)/%) $$(softgpu_rpath) -ldl)$(eval tests/softgpu/$(1): $(2:%=$(softgpu_folder)/%))
softgpu_cuda_programs = cuda_memory cuda_context cuda_stream cuda_export cuda_ipc gpu_faults
$(foreach p,$(softgpu_cuda_programs),$(call softgpu_program,$(p),libcuda.so.1))
$(call softgpu_program,hip,libamdhip64.so.5 libhsa-runtime64.so.1)
$(call softgpu_program,level_zero,libze_loader.so.1)
# A device of each kind
$(call program,tests/softgpu/hca,$(call objects,softgpu-test,tests/softgpu/hca.c),$(softhca_library) $(softgpu_folder)/libcuda.so.1 \
    $(softgpu_rpath) $$(IBVERBS_LIBS) -ldl)
tests/softgpu/hca: $(softgpu_folder)/libcuda.so.1 $(softgpu_folder)/libamdhip64.so.5

softgpu_test_programs = $(patsubst %,tests/softgpu/%,$(softgpu_cuda_programs) hip level_zero hca)
softgpu_scripts = $(patsubst %,tests/softgpu/%.sh,command declarations numba)
TESTS += $(softgpu_test_programs) $(softgpu_scripts)
sanitizer_tests += $(filter-out tests/softgpu/hca,$(softgpu_test_programs)) tests/softgpu/command.sh
needs_tests/softgpu/command.sh = $(softgpu_command) $(softgpu_libraries) $(softhca_command) $(softhca_library) tests/softgpu/cuda_ipc
needs_tests/softgpu/declarations.sh = $(softgpu_libraries)
needs_tests/softgpu/numba.sh = $(softgpu_command) $(softgpu_libraries)
