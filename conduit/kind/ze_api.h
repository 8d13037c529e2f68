/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the library calls of oneAPI Level Zero's loader (libze_loader.so.1), declared from the
 * public specification of Level Zero, so that its headers are not needed to build.
 * tests/unit/kind/ze_headers.c compares with them where they are installed. */
#ifndef TK_KIND_ZE_API_H
#define TK_KIND_ZE_API_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t tk_ze_result;

/* ze_result_t */
enum { TK_ZE_SUCCESS = 0, TK_ZE_NOT_READY = 1 };

/* ze_structure_type_t */
enum {
    TK_ZE_DEVICE_PROPERTIES = 0x3,
    TK_ZE_CONTEXT_DESC = 0xd,
    TK_ZE_COMMAND_QUEUE_DESC = 0xe,
    TK_ZE_EVENT_POOL_DESC = 0x10,
    TK_ZE_EVENT_DESC = 0x11,
    TK_ZE_DEVICE_MEM_ALLOC_DESC = 0x15,
    TK_ZE_MEMORY_ALLOCATION_PROPERTIES = 0x17,
    TK_ZE_EXTERNAL_MEMORY_EXPORT_DESC = 0x18,
    TK_ZE_EXTERNAL_MEMORY_EXPORT_FD = 0x1a,
    TK_ZE_PCI_EXT_PROPERTIES = 0x10008
};

enum { TK_ZE_MEMORY_TYPE_DEVICE = 2 };
enum { TK_ZE_EXTERNAL_MEMORY_DMA_BUF = 2 };
enum { TK_ZE_QUEUE_ASYNCHRONOUS = 2 };
enum { TK_ZE_EVENT_POOL_HOST_VISIBLE = 1 };
enum { TK_ZE_EVENT_SCOPE_HOST = 4 };

/* Each struct begins with its type and a chain of extensions. */
#define TK_ZE_HEAD                                                                                 \
    uint32_t stype;                                                                                \
    const void *next

typedef struct {
    TK_ZE_HEAD;
    uint32_t type, vendor, device, flags, subdevice, clock_rate;
    uint64_t max_allocation;
    uint32_t hardware_contexts, queue_priority, threads, simd_width, units, subslices, slices;
    uint64_t timer_resolution;
    uint32_t timestamp_bits, kernel_timestamp_bits;
    uint8_t uuid[16];
    char name[256];
} tk_ze_device_properties;

typedef struct {
    TK_ZE_HEAD;
    uint32_t domain, bus, device, function;
    int32_t generation, width;
    int64_t bandwidth;
} tk_ze_pci_properties;

typedef struct {
    TK_ZE_HEAD;
    uint32_t flags;
} tk_ze_context_desc;

typedef struct {
    TK_ZE_HEAD;
    uint32_t flags, ordinal;
} tk_ze_alloc_desc;

typedef struct {
    TK_ZE_HEAD;
    uint32_t type;
    uint64_t id, page_size;
} tk_ze_alloc_properties;

typedef struct {
    TK_ZE_HEAD;
    uint32_t flags;
} tk_ze_export_desc;

typedef struct {
    TK_ZE_HEAD;
    uint32_t flags;
    int fd;
} tk_ze_export_fd;

typedef struct {
    TK_ZE_HEAD;
    uint32_t ordinal, index, flags, mode, priority;
} tk_ze_queue_desc;

typedef struct {
    TK_ZE_HEAD;
    uint32_t flags, count;
} tk_ze_event_pool_desc;

typedef struct {
    TK_ZE_HEAD;
    uint32_t index, signal, wait;
} tk_ze_event_desc;

/* ze_copy_region_t */
typedef struct {
    uint32_t x, y, z, width, height, depth;
} tk_ze_region;

/* f(member, symbol, is_optional, parameters): all return ze_result_t; all handles are pointers. */
/* clang-format off */
#define TK_FUNCTIONS_OF_ZE(f)                                                                   \
    f(init, zeInit, false, (uint32_t flags))                                                    \
    f(driver_get, zeDriverGet, true, (uint32_t *count, void **drivers))                         \
    f(device_get, zeDeviceGet, true, (void *driver, uint32_t *count, void **devices))           \
    f(context_create, zeContextCreate, true,                                                    \
      (void *driver, const tk_ze_context_desc *desc, void **context))                           \
    f(device_get_properties, zeDeviceGetProperties, false,                                      \
      (void *device, tk_ze_device_properties *properties))                                      \
    f(device_get_pci, zeDevicePciGetPropertiesExt, true,                                        \
      (void *device, tk_ze_pci_properties *properties))                                         \
    f(mem_alloc, zeMemAllocDevice, false,                                                       \
      (void *context, const tk_ze_alloc_desc *desc, size_t size, size_t alignment,              \
       void *device, void **address))                                                           \
    f(mem_free, zeMemFree, false, (void *context, void *address))                               \
    f(mem_get_properties, zeMemGetAllocProperties, false,                                       \
      (void *context, const void *address, tk_ze_alloc_properties *properties, void **device))  \
    f(mem_get_address_range, zeMemGetAddressRange, false,                                       \
      (void *context, const void *address, void **base, size_t *size))                          \
    f(list_create, zeCommandListCreateImmediate, false,                                         \
      (void *context, void *device, const tk_ze_queue_desc *desc, void **list))                 \
    f(list_destroy, zeCommandListDestroy, false, (void *list))                                  \
    f(append_copy, zeCommandListAppendMemoryCopy, false,                                        \
      (void *list, void *to, const void *from, size_t size, void *event, uint32_t waits,        \
       void **wait_for))                                                                        \
    f(append_region, zeCommandListAppendMemoryCopyRegion, false,                                \
      (void *list, void *to, const tk_ze_region *to_region, uint32_t to_pitch,                  \
       uint32_t to_slice_pitch, const void *from, const tk_ze_region *from_region,              \
       uint32_t from_pitch, uint32_t from_slice_pitch, void *event, uint32_t waits,             \
       void **wait_for))                                                                        \
    f(event_pool_create, zeEventPoolCreate, false,                                              \
      (void *context, const tk_ze_event_pool_desc *desc, uint32_t count, void **devices,        \
       void **pool))                                                                            \
    f(event_pool_destroy, zeEventPoolDestroy, false, (void *pool))                              \
    f(event_create, zeEventCreate, false,                                                       \
      (void *pool, const tk_ze_event_desc *desc, void **event))                                 \
    f(event_destroy, zeEventDestroy, false, (void *event))                                      \
    f(event_query, zeEventQueryStatus, false, (void *event))                                    \
    f(event_reset, zeEventHostReset, false, (void *event))
/* clang-format on */

#endif
