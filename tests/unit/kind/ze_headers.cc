// SPDX-License-Identifier: BSD-3-Clause
//
// conduit/kind/ze_api.h beside Level Zero's own header, by the compiler, as hip_headers.cc.
#include <level_zero/ze_api.h>

#include "kind/ze_api.h"
#include "same.h"

#define COMPARE(member, symbol, is_optional, parameters)                                           \
    static_assert(same<tk_ze_result parameters, decltype(symbol)>::value, #symbol);
TK_FUNCTIONS_OF_ZE(COMPARE)

#define SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define PLACE(ours, field, theirs, their_field)                                                    \
    static_assert(SAME_PLACE(ours, field, theirs, their_field), #theirs "." #their_field)
SIZE(tk_ze_device_properties, ze_device_properties_t);
PLACE(tk_ze_device_properties, stype, ze_device_properties_t, stype);
PLACE(tk_ze_device_properties, next, ze_device_properties_t, pNext);
PLACE(tk_ze_device_properties, uuid, ze_device_properties_t, uuid);
PLACE(tk_ze_device_properties, name, ze_device_properties_t, name);
SIZE(tk_ze_pci_properties, ze_pci_ext_properties_t);
PLACE(tk_ze_pci_properties, domain, ze_pci_ext_properties_t, address.domain);
PLACE(tk_ze_pci_properties, bus, ze_pci_ext_properties_t, address.bus);
PLACE(tk_ze_pci_properties, device, ze_pci_ext_properties_t, address.device);
PLACE(tk_ze_pci_properties, function, ze_pci_ext_properties_t, address.function);
SIZE(tk_ze_context_desc, ze_context_desc_t);
PLACE(tk_ze_context_desc, flags, ze_context_desc_t, flags);
SIZE(tk_ze_alloc_desc, ze_device_mem_alloc_desc_t);
PLACE(tk_ze_alloc_desc, ordinal, ze_device_mem_alloc_desc_t, ordinal);
SIZE(tk_ze_alloc_properties, ze_memory_allocation_properties_t);
PLACE(tk_ze_alloc_properties, type, ze_memory_allocation_properties_t, type);
PLACE(tk_ze_alloc_properties, id, ze_memory_allocation_properties_t, id);
SIZE(tk_ze_export_desc, ze_external_memory_export_desc_t);
PLACE(tk_ze_export_desc, flags, ze_external_memory_export_desc_t, flags);
SIZE(tk_ze_export_fd, ze_external_memory_export_fd_t);
PLACE(tk_ze_export_fd, flags, ze_external_memory_export_fd_t, flags);
PLACE(tk_ze_export_fd, fd, ze_external_memory_export_fd_t, fd);
SIZE(tk_ze_queue_desc, ze_command_queue_desc_t);
PLACE(tk_ze_queue_desc, ordinal, ze_command_queue_desc_t, ordinal);
PLACE(tk_ze_queue_desc, mode, ze_command_queue_desc_t, mode);
SIZE(tk_ze_event_pool_desc, ze_event_pool_desc_t);
PLACE(tk_ze_event_pool_desc, flags, ze_event_pool_desc_t, flags);
PLACE(tk_ze_event_pool_desc, count, ze_event_pool_desc_t, count);
SIZE(tk_ze_event_desc, ze_event_desc_t);
PLACE(tk_ze_event_desc, index, ze_event_desc_t, index);
PLACE(tk_ze_event_desc, signal, ze_event_desc_t, signal);
PLACE(tk_ze_event_desc, wait, ze_event_desc_t, wait);

SIZE(tk_ze_region, ze_copy_region_t);
PLACE(tk_ze_region, width, ze_copy_region_t, width);
PLACE(tk_ze_region, height, ze_copy_region_t, height);

#define VALUE(ours, theirs) static_assert((long)(ours) == (long)(theirs), #theirs)
VALUE(TK_ZE_SUCCESS, ZE_RESULT_SUCCESS);
VALUE(TK_ZE_NOT_READY, ZE_RESULT_NOT_READY);
VALUE(TK_ZE_DEVICE_PROPERTIES, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES);
VALUE(TK_ZE_CONTEXT_DESC, ZE_STRUCTURE_TYPE_CONTEXT_DESC);
VALUE(TK_ZE_COMMAND_QUEUE_DESC, ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC);
VALUE(TK_ZE_EVENT_POOL_DESC, ZE_STRUCTURE_TYPE_EVENT_POOL_DESC);
VALUE(TK_ZE_EVENT_DESC, ZE_STRUCTURE_TYPE_EVENT_DESC);
VALUE(TK_ZE_DEVICE_MEM_ALLOC_DESC, ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC);
VALUE(TK_ZE_MEMORY_ALLOCATION_PROPERTIES, ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES);
VALUE(TK_ZE_EXTERNAL_MEMORY_EXPORT_DESC, ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC);
VALUE(TK_ZE_EXTERNAL_MEMORY_EXPORT_FD, ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD);
VALUE(TK_ZE_PCI_EXT_PROPERTIES, ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES);
VALUE(TK_ZE_MEMORY_TYPE_DEVICE, ZE_MEMORY_TYPE_DEVICE);
VALUE(TK_ZE_EXTERNAL_MEMORY_DMA_BUF, ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF);
VALUE(TK_ZE_QUEUE_ASYNCHRONOUS, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS);
VALUE(TK_ZE_EVENT_POOL_HOST_VISIBLE, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
VALUE(TK_ZE_EVENT_SCOPE_HOST, ZE_EVENT_SCOPE_FLAG_HOST);
