/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The part of oneAPI Level Zero that softgpu has. Names, numbers and layouts are those of the
 * public specification (1.4), written down anew; tests/softgpu/ze_declarations.c is compiled with
 * this header and, where Debian's libze-dev is installed, with that one. */
#ifndef SGPU_ZE_H
#define SGPU_ZE_H

#include <stddef.h>
#include <stdint.h>

#define ZE_MAX_DEVICE_UUID_SIZE 16
#define ZE_MAX_DEVICE_NAME      256

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum _ze_result_t {
    ZE_RESULT_SUCCESS = 0,
    ZE_RESULT_NOT_READY = 1,
    ZE_RESULT_ERROR_DEVICE_LOST = 0x70000001,
    ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY = 0x70000002,
    ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY = 0x70000003,
    ZE_RESULT_ERROR_UNINITIALIZED = 0x78000001,
    ZE_RESULT_ERROR_UNSUPPORTED_FEATURE = 0x78000003,
    ZE_RESULT_ERROR_INVALID_ARGUMENT = 0x78000004,
    ZE_RESULT_ERROR_INVALID_NULL_HANDLE = 0x78000005,
    ZE_RESULT_ERROR_INVALID_NULL_POINTER = 0x78000007,
    ZE_RESULT_ERROR_INVALID_SIZE = 0x78000008,
    ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION = 0x7800000d,
    ZE_RESULT_ERROR_UNKNOWN = 0x7ffffffe
} ze_result_t;

typedef enum _ze_structure_type_t {
    ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES = 0x3,
    ZE_STRUCTURE_TYPE_CONTEXT_DESC = 0xd,
    ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC = 0xe,
    ZE_STRUCTURE_TYPE_EVENT_POOL_DESC = 0x10,
    ZE_STRUCTURE_TYPE_EVENT_DESC = 0x11,
    ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC = 0x15,
    ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC = 0x16,
    ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES = 0x17,
    ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC = 0x18,
    ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD = 0x1a,
    ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES = 0x10008
} ze_structure_type_t;

typedef enum _ze_device_type_t { ZE_DEVICE_TYPE_GPU = 1 } ze_device_type_t;
typedef enum _ze_memory_type_t {
    ZE_MEMORY_TYPE_UNKNOWN = 0,
    ZE_MEMORY_TYPE_HOST = 1,
    ZE_MEMORY_TYPE_DEVICE = 2
} ze_memory_type_t;
typedef enum _ze_command_queue_mode_t {
    ZE_COMMAND_QUEUE_MODE_DEFAULT = 0,
    ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS = 1,
    ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS = 2
} ze_command_queue_mode_t;
enum { ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF = 2 };
enum { ZE_EVENT_POOL_FLAG_HOST_VISIBLE = 1, ZE_EVENT_SCOPE_FLAG_HOST = 4 };

typedef struct _ze_driver_handle_t *ze_driver_handle_t;
typedef struct _ze_device_handle_t *ze_device_handle_t;
typedef struct _ze_context_handle_t *ze_context_handle_t;
typedef struct _ze_command_list_handle_t *ze_command_list_handle_t;
typedef struct _ze_event_pool_handle_t *ze_event_pool_handle_t;
typedef struct _ze_event_handle_t *ze_event_handle_t;
typedef uint8_t ze_bool_t;

typedef struct _ze_copy_region_t {
    uint32_t originX, originY, originZ, width, height, depth;
} ze_copy_region_t;

typedef struct _ze_device_uuid_t {
    uint8_t id[ZE_MAX_DEVICE_UUID_SIZE];
} ze_device_uuid_t;
typedef struct _ze_device_properties_t {
    ze_structure_type_t stype;
    void *pNext;
    ze_device_type_t type;
    uint32_t vendorId, deviceId, flags, subdeviceId, coreClockRate;
    uint64_t maxMemAllocSize;
    uint32_t maxHardwareContexts, maxCommandQueuePriority, numThreadsPerEU, physicalEUSimdWidth,
        numEUsPerSubslice, numSubslicesPerSlice, numSlices;
    uint64_t timerResolution;
    uint32_t timestampValidBits, kernelTimestampValidBits;
    ze_device_uuid_t uuid;
    char name[ZE_MAX_DEVICE_NAME];
} ze_device_properties_t;
typedef struct _ze_pci_address_ext_t {
    uint32_t domain, bus, device, function;
} ze_pci_address_ext_t;
typedef struct _ze_pci_speed_ext_t {
    int32_t genVersion, width;
    int64_t maxBandwidth;
} ze_pci_speed_ext_t;
typedef struct _ze_pci_ext_properties_t {
    ze_structure_type_t stype;
    void *pNext;
    ze_pci_address_ext_t address;
    ze_pci_speed_ext_t maxSpeed;
} ze_pci_ext_properties_t;
typedef struct _ze_context_desc_t {
    ze_structure_type_t stype;
    const void *pNext;
    uint32_t flags;
} ze_context_desc_t;
typedef struct _ze_device_mem_alloc_desc_t {
    ze_structure_type_t stype;
    const void *pNext;
    uint32_t flags, ordinal;
} ze_device_mem_alloc_desc_t;
typedef struct _ze_host_mem_alloc_desc_t {
    ze_structure_type_t stype;
    const void *pNext;
    uint32_t flags;
} ze_host_mem_alloc_desc_t;
typedef struct _ze_memory_allocation_properties_t {
    ze_structure_type_t stype;
    void *pNext;
    ze_memory_type_t type;
    uint64_t id, pageSize;
} ze_memory_allocation_properties_t;
typedef struct _ze_external_memory_export_desc_t {
    ze_structure_type_t stype;
    const void *pNext;
    uint32_t flags;
} ze_external_memory_export_desc_t;
typedef struct _ze_external_memory_export_fd_t {
    ze_structure_type_t stype;
    const void *pNext;
    uint32_t flags;
    int fd;
} ze_external_memory_export_fd_t;
typedef struct _ze_command_queue_desc_t {
    ze_structure_type_t stype;
    const void *pNext;
    uint32_t ordinal, index, flags;
    ze_command_queue_mode_t mode;
    uint32_t priority;
} ze_command_queue_desc_t;
typedef struct _ze_event_pool_desc_t {
    ze_structure_type_t stype;
    const void *pNext;
    uint32_t flags, count;
} ze_event_pool_desc_t;
typedef struct _ze_event_desc_t {
    ze_structure_type_t stype;
    const void *pNext;
    uint32_t index, signal, wait;
} ze_event_desc_t;

/* Drivers, devices, contexts */
ze_result_t zeInit(uint32_t flags);
ze_result_t zeDriverGet(uint32_t *pCount, ze_driver_handle_t *phDrivers);
ze_result_t zeDeviceGet(ze_driver_handle_t hDriver, uint32_t *pCount,
                        ze_device_handle_t *phDevices);
ze_result_t zeDeviceGetProperties(ze_device_handle_t hDevice,
                                  ze_device_properties_t *pDeviceProperties);
ze_result_t zeDevicePciGetPropertiesExt(ze_device_handle_t hDevice,
                                        ze_pci_ext_properties_t *pPciProperties);
ze_result_t zeDeviceCanAccessPeer(ze_device_handle_t hDevice, ze_device_handle_t hPeerDevice,
                                  ze_bool_t *value);
ze_result_t zeContextCreate(ze_driver_handle_t hDriver, const ze_context_desc_t *desc,
                            ze_context_handle_t *phContext);
ze_result_t zeContextDestroy(ze_context_handle_t hContext);

/* Memory */
ze_result_t zeMemAllocDevice(ze_context_handle_t hContext,
                             const ze_device_mem_alloc_desc_t *device_desc, size_t size,
                             size_t alignment, ze_device_handle_t hDevice, void **pptr);
ze_result_t zeMemAllocHost(ze_context_handle_t hContext, const ze_host_mem_alloc_desc_t *host_desc,
                           size_t size, size_t alignment, void **pptr);
ze_result_t zeMemFree(ze_context_handle_t hContext, void *ptr);
ze_result_t zeMemGetAllocProperties(ze_context_handle_t hContext, const void *ptr,
                                    ze_memory_allocation_properties_t *pMemAllocProperties,
                                    ze_device_handle_t *phDevice);
ze_result_t zeMemGetAddressRange(ze_context_handle_t hContext, const void *ptr, void **pBase,
                                 size_t *pSize);

/* Command lists and events */
ze_result_t zeCommandListCreateImmediate(ze_context_handle_t hContext, ze_device_handle_t hDevice,
                                         const ze_command_queue_desc_t *altdesc,
                                         ze_command_list_handle_t *phCommandList);
ze_result_t zeCommandListDestroy(ze_command_list_handle_t hCommandList);
ze_result_t zeCommandListAppendMemoryCopy(ze_command_list_handle_t hCommandList, void *dstptr,
                                          const void *srcptr, size_t size,
                                          ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                          ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendMemoryCopyRegion(
    ze_command_list_handle_t hCommandList, void *dstptr, const ze_copy_region_t *dstRegion,
    uint32_t dstPitch, uint32_t dstSlicePitch, const void *srcptr,
    const ze_copy_region_t *srcRegion, uint32_t srcPitch, uint32_t srcSlicePitch,
    ze_event_handle_t hSignalEvent, uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendMemoryFill(ze_command_list_handle_t hCommandList, void *ptr,
                                          const void *pattern, size_t pattern_size, size_t size,
                                          ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                          ze_event_handle_t *phWaitEvents);
ze_result_t zeEventPoolCreate(ze_context_handle_t hContext, const ze_event_pool_desc_t *desc,
                              uint32_t numDevices, ze_device_handle_t *phDevices,
                              ze_event_pool_handle_t *phEventPool);
ze_result_t zeEventPoolDestroy(ze_event_pool_handle_t hEventPool);
ze_result_t zeEventCreate(ze_event_pool_handle_t hEventPool, const ze_event_desc_t *desc,
                          ze_event_handle_t *phEvent);
ze_result_t zeEventDestroy(ze_event_handle_t hEvent);
ze_result_t zeEventQueryStatus(ze_event_handle_t hEvent);
ze_result_t zeEventHostReset(ze_event_handle_t hEvent);
ze_result_t zeEventHostSignal(ze_event_handle_t hEvent);
ze_result_t zeEventHostSynchronize(ze_event_handle_t hEvent, uint64_t timeout);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
