/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What softgpu believes of Level Zero: compiled with softgpu's header and with that of libze-dev by
 * declarations.sh. Each function is assigned to a pointer of the type that softgpu implements. */
#include <stddef.h>
#include <level_zero/ze_api.h>

#define SAME(number, name)       _Static_assert((long long)(name) == (number), #name)
#define AT(offset, type, member) SAME(offset, offsetof(type, member))
#define TYPE(function, ...)                                                                        \
    extern ze_result_t (*check_##function)(__VA_ARGS__);                                           \
    ze_result_t (*check_##function)(__VA_ARGS__) = function

SAME(0, ZE_RESULT_SUCCESS);
SAME(1, ZE_RESULT_NOT_READY);
SAME(0x70000001, ZE_RESULT_ERROR_DEVICE_LOST);
SAME(0x70000002, ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
SAME(0x70000003, ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
SAME(0x78000001, ZE_RESULT_ERROR_UNINITIALIZED);
SAME(0x78000003, ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
SAME(0x78000004, ZE_RESULT_ERROR_INVALID_ARGUMENT);
SAME(0x78000005, ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
SAME(0x78000007, ZE_RESULT_ERROR_INVALID_NULL_POINTER);
SAME(0x78000008, ZE_RESULT_ERROR_INVALID_SIZE);
SAME(0x7800000d, ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION);
SAME(0x7ffffffe, ZE_RESULT_ERROR_UNKNOWN);
SAME(0x3, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES);
SAME(0xd, ZE_STRUCTURE_TYPE_CONTEXT_DESC);
SAME(0xe, ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC);
SAME(0x10, ZE_STRUCTURE_TYPE_EVENT_POOL_DESC);
SAME(0x11, ZE_STRUCTURE_TYPE_EVENT_DESC);
SAME(0x15, ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC);
SAME(0x16, ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC);
SAME(0x17, ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES);
SAME(0x18, ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC);
SAME(0x1a, ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD);
SAME(0x10008, ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES);
SAME(1, ZE_DEVICE_TYPE_GPU);
SAME(0, ZE_MEMORY_TYPE_UNKNOWN);
SAME(1, ZE_MEMORY_TYPE_HOST);
SAME(2, ZE_MEMORY_TYPE_DEVICE);
SAME(0, ZE_COMMAND_QUEUE_MODE_DEFAULT);
SAME(1, ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS);
SAME(2, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS);
SAME(2, ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF);
SAME(1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
SAME(4, ZE_EVENT_SCOPE_FLAG_HOST);

SAME(16, sizeof(ze_device_uuid_t));
AT(0, ze_device_uuid_t, id);
SAME(368, sizeof(ze_device_properties_t));
AT(0, ze_device_properties_t, stype);
AT(8, ze_device_properties_t, pNext);
AT(16, ze_device_properties_t, type);
AT(20, ze_device_properties_t, vendorId);
AT(24, ze_device_properties_t, deviceId);
AT(28, ze_device_properties_t, flags);
AT(32, ze_device_properties_t, subdeviceId);
AT(36, ze_device_properties_t, coreClockRate);
AT(40, ze_device_properties_t, maxMemAllocSize);
AT(48, ze_device_properties_t, maxHardwareContexts);
AT(52, ze_device_properties_t, maxCommandQueuePriority);
AT(56, ze_device_properties_t, numThreadsPerEU);
AT(60, ze_device_properties_t, physicalEUSimdWidth);
AT(64, ze_device_properties_t, numEUsPerSubslice);
AT(68, ze_device_properties_t, numSubslicesPerSlice);
AT(72, ze_device_properties_t, numSlices);
AT(80, ze_device_properties_t, timerResolution);
AT(88, ze_device_properties_t, timestampValidBits);
AT(92, ze_device_properties_t, kernelTimestampValidBits);
AT(96, ze_device_properties_t, uuid);
AT(112, ze_device_properties_t, name);
SAME(16, sizeof(ze_pci_address_ext_t));
AT(0, ze_pci_address_ext_t, domain);
AT(4, ze_pci_address_ext_t, bus);
AT(8, ze_pci_address_ext_t, device);
AT(12, ze_pci_address_ext_t, function);
SAME(16, sizeof(ze_pci_speed_ext_t));
AT(0, ze_pci_speed_ext_t, genVersion);
AT(4, ze_pci_speed_ext_t, width);
AT(8, ze_pci_speed_ext_t, maxBandwidth);
SAME(48, sizeof(ze_pci_ext_properties_t));
AT(0, ze_pci_ext_properties_t, stype);
AT(8, ze_pci_ext_properties_t, pNext);
AT(16, ze_pci_ext_properties_t, address);
AT(32, ze_pci_ext_properties_t, maxSpeed);
SAME(24, sizeof(ze_context_desc_t));
AT(0, ze_context_desc_t, stype);
AT(8, ze_context_desc_t, pNext);
AT(16, ze_context_desc_t, flags);
SAME(24, sizeof(ze_device_mem_alloc_desc_t));
AT(0, ze_device_mem_alloc_desc_t, stype);
AT(8, ze_device_mem_alloc_desc_t, pNext);
AT(16, ze_device_mem_alloc_desc_t, flags);
AT(20, ze_device_mem_alloc_desc_t, ordinal);
SAME(24, sizeof(ze_host_mem_alloc_desc_t));
AT(0, ze_host_mem_alloc_desc_t, stype);
AT(8, ze_host_mem_alloc_desc_t, pNext);
AT(16, ze_host_mem_alloc_desc_t, flags);
SAME(40, sizeof(ze_memory_allocation_properties_t));
AT(0, ze_memory_allocation_properties_t, stype);
AT(8, ze_memory_allocation_properties_t, pNext);
AT(16, ze_memory_allocation_properties_t, type);
AT(24, ze_memory_allocation_properties_t, id);
AT(32, ze_memory_allocation_properties_t, pageSize);
SAME(24, sizeof(ze_external_memory_export_desc_t));
AT(0, ze_external_memory_export_desc_t, stype);
AT(8, ze_external_memory_export_desc_t, pNext);
AT(16, ze_external_memory_export_desc_t, flags);
SAME(24, sizeof(ze_external_memory_export_fd_t));
AT(0, ze_external_memory_export_fd_t, stype);
AT(8, ze_external_memory_export_fd_t, pNext);
AT(16, ze_external_memory_export_fd_t, flags);
AT(20, ze_external_memory_export_fd_t, fd);
SAME(40, sizeof(ze_command_queue_desc_t));
AT(0, ze_command_queue_desc_t, stype);
AT(8, ze_command_queue_desc_t, pNext);
AT(16, ze_command_queue_desc_t, ordinal);
AT(20, ze_command_queue_desc_t, index);
AT(24, ze_command_queue_desc_t, flags);
AT(28, ze_command_queue_desc_t, mode);
AT(32, ze_command_queue_desc_t, priority);
SAME(24, sizeof(ze_event_pool_desc_t));
AT(0, ze_event_pool_desc_t, stype);
AT(8, ze_event_pool_desc_t, pNext);
AT(16, ze_event_pool_desc_t, flags);
AT(20, ze_event_pool_desc_t, count);
SAME(32, sizeof(ze_event_desc_t));
AT(0, ze_event_desc_t, stype);
AT(8, ze_event_desc_t, pNext);
AT(16, ze_event_desc_t, index);
AT(20, ze_event_desc_t, signal);
AT(24, ze_event_desc_t, wait);

TYPE(zeInit, uint32_t);
TYPE(zeDriverGet, uint32_t *, ze_driver_handle_t *);
TYPE(zeDeviceGet, ze_driver_handle_t, uint32_t *, ze_device_handle_t *);
TYPE(zeDeviceGetProperties, ze_device_handle_t, ze_device_properties_t *);
TYPE(zeDevicePciGetPropertiesExt, ze_device_handle_t, ze_pci_ext_properties_t *);
TYPE(zeDeviceCanAccessPeer, ze_device_handle_t, ze_device_handle_t, ze_bool_t *);
TYPE(zeContextCreate, ze_driver_handle_t, const ze_context_desc_t *, ze_context_handle_t *);
TYPE(zeContextDestroy, ze_context_handle_t);
TYPE(zeMemAllocDevice, ze_context_handle_t, const ze_device_mem_alloc_desc_t *, size_t, size_t,
     ze_device_handle_t, void **);
TYPE(zeMemAllocHost, ze_context_handle_t, const ze_host_mem_alloc_desc_t *, size_t, size_t,
     void **);
TYPE(zeMemFree, ze_context_handle_t, void *);
TYPE(zeMemGetAllocProperties, ze_context_handle_t, const void *,
     ze_memory_allocation_properties_t *, ze_device_handle_t *);
TYPE(zeMemGetAddressRange, ze_context_handle_t, const void *, void **, size_t *);
TYPE(zeCommandListCreateImmediate, ze_context_handle_t, ze_device_handle_t,
     const ze_command_queue_desc_t *, ze_command_list_handle_t *);
TYPE(zeCommandListDestroy, ze_command_list_handle_t);
TYPE(zeCommandListAppendMemoryCopyRegion, ze_command_list_handle_t, void *,
     const ze_copy_region_t *, uint32_t, uint32_t, const void *, const ze_copy_region_t *, uint32_t,
     uint32_t, ze_event_handle_t, uint32_t, ze_event_handle_t *);
TYPE(zeCommandListAppendMemoryCopy, ze_command_list_handle_t, void *, const void *, size_t,
     ze_event_handle_t, uint32_t, ze_event_handle_t *);
TYPE(zeCommandListAppendMemoryFill, ze_command_list_handle_t, void *, const void *, size_t, size_t,
     ze_event_handle_t, uint32_t, ze_event_handle_t *);
TYPE(zeEventPoolCreate, ze_context_handle_t, const ze_event_pool_desc_t *, uint32_t,
     ze_device_handle_t *, ze_event_pool_handle_t *);
TYPE(zeEventPoolDestroy, ze_event_pool_handle_t);
TYPE(zeEventCreate, ze_event_pool_handle_t, const ze_event_desc_t *, ze_event_handle_t *);
TYPE(zeEventDestroy, ze_event_handle_t);
TYPE(zeEventQueryStatus, ze_event_handle_t);
TYPE(zeEventHostReset, ze_event_handle_t);
TYPE(zeEventHostSignal, ze_event_handle_t);
TYPE(zeEventHostSynchronize, ze_event_handle_t, uint64_t);
