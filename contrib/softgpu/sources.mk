# SPDX-License-Identifier: BSD-3-Clause
# The software accelerator: stand-ins for the vendors' libraries, and the softgpu command. A new source file is added here.

softgpu_core_sources = common/number.c $(addprefix contrib/softgpu/, \
    $(patsubst %,support/%.c,softgpu_settings status) \
    $(patsubst %,fault/%.c,fault fault_parse) \
    $(patsubst %,device/%.c,alloc bar context copy event execute export host ipc memory peermem state storage stream vmm weak))

# Only names of the vendor's interface are visible, and those of device/peermem.h: each stand-in has devices of its own.
$(call variant,softgpu,$$(AM_CPPFLAGS) -I$$(srcdir) $$(AM_CFLAGS) -fvisibility=hidden $$(pic))
softgpu_core_objects := $(call objects,softgpu,$(softgpu_core_sources))
softgpu_link = -Wl,-z,nodelete -ldl -lm

# $(call softgpu_stand_in,SONAME,OBJECTS): one folder for LD_LIBRARY_PATH, as in an installation
softgpu_folder = contrib/softgpu/lib
softgpu_stand_in = $(eval softgpu_libraries += $(softgpu_folder)/$(1))$(call shared,$(softgpu_folder)/$(1),$(2),\
    $$(softgpu_link) -Wl$(comma)-soname$(comma)$(1))
softgpu_libraries =
$(call softgpu_stand_in,libcuda.so.1,$(softgpu_core_objects) \
    $(call objects,softgpu,$(patsubst %,contrib/softgpu/cuda/cuda_%.c,context copy device memory pointer stream vmm)))
$(call softgpu_stand_in,libamdhip64.so.5,$(softgpu_core_objects) \
    $(call objects,softgpu,$(patsubst %,contrib/softgpu/hip/hip_%.c,copy device memory stream)))
$(call softgpu_stand_in,libze_loader.so.1,$(softgpu_core_objects) \
    $(call objects,softgpu,$(patsubst %,contrib/softgpu/ze/ze_%.c,device dmabuf list memory)))
$(call softgpu_stand_in,libhsa-runtime64.so.1,$(call objects,softgpu,contrib/softgpu/hsa/hsa_export.c))
all_products += $(softgpu_libraries)

# The command, which has no device
softgpu_command = contrib/softgpu/softgpu
$(call variant,softgpu-command,$$(AM_CPPFLAGS) -I$$(srcdir) -DSGPU_PKGLIBDIR='"$$(pkglibdir)"' $$(AM_CFLAGS))
$(call program,$(softgpu_command),$(call objects,softgpu-command,common/number.c contrib/softgpu/command/main.c \
    $(patsubst %,contrib/softgpu/%.c,fault/fault_parse support/softgpu_settings support/status)),-lm)
all_products += $(softgpu_command)
