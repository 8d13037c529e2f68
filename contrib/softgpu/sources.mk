# SPDX-License-Identifier: BSD-3-Clause
# The software accelerator: stand-ins for the vendors' libraries. A new source file is added here.

softgpu_core_sources = $(patsubst %,common/%.c,number) $(addprefix contrib/softgpu/, \
    $(patsubst %,support/%.c,softgpu_settings status) \
    $(patsubst %,fault/%.c,fault fault_parse) \
    $(patsubst %,device/%.c,alloc bar context copy event execute export host ipc memory peermem state storage stream weak))

# Only names of the vendor's interface are visible (and TK_PEERMEM_FUNCTION): each stand-in has a device of its own.
$(call variant,softgpu,$$(AM_CPPFLAGS) -I$$(srcdir) $$(AM_CFLAGS) -fvisibility=hidden $$(pic))
softgpu_core_objects := $(call objects,softgpu,$(softgpu_core_sources))
softgpu_link = -Wl,-z,nodelete -Wl,-z,defs -ldl -lm

# $(call softgpu_stand_in,SONAME,SOURCES): contrib/softgpu/lib/SONAME, one folder for LD_LIBRARY_PATH as in an installation
softgpu_stand_in = $(eval softgpu_libraries += contrib/softgpu/lib/$(1))$(call shared,contrib/softgpu/lib/$(1),\
    $(call objects,softgpu,$(2)) $(softgpu_core_objects),$$(softgpu_link) -Wl$(comma)-soname$(comma)$(1))
softgpu_libraries =
$(call softgpu_stand_in,libcuda.so.1,$(patsubst %,contrib/softgpu/cuda/cuda_%.c,context copy device memory pointer stream))
all_products += $(softgpu_libraries)
