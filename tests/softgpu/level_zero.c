/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Level Zero on the same device: immediate command lists, events, dma-bufs. */
#include <level_zero/ze_api.h>
#include <sys/mman.h>

#include "cases.h"

enum { SIZE = 20000, PAGE = 4096 };
static ze_device_handle_t devices[2];
static ze_context_handle_t context;
static ze_driver_handle_t driver;

static void start(void)
{
    ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    uint32_t n = 1;

    GOOD(zeInit(0));
    GOOD(zeDriverGet(&n, &driver));
    n = 2;
    GOOD(zeDeviceGet(driver, &n, devices));
    GOOD(zeContextCreate(driver, &desc, &context));
}

static unsigned char *alloc(int device, const void *extension)
{
    ze_device_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,
                                       .pNext = extension};
    void *p;

    GOOD(zeMemAllocDevice(context, &desc, SIZE, 65536, devices[device], &p));
    CHECK((uintptr_t)p % 65536 == 0);
    return p;
}

static ze_command_list_handle_t list(int device, ze_command_queue_mode_t mode)
{
    ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .mode = mode};
    ze_command_list_handle_t l;

    GOOD(zeCommandListCreateImmediate(context, devices[device], &desc, &l));
    return l;
}

static ze_event_handle_t event(void)
{
    ze_event_pool_desc_t pool_desc = {
        .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = 1, .count = 1};
    ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC};
    ze_event_pool_handle_t pool;
    ze_event_handle_t e;

    GOOD(zeEventPoolCreate(context, &pool_desc, 1, devices, &pool));
    GOOD(zeEventCreate(pool, &desc, &e));
    return e;
}

static void uninitialized(void)
{
    uint32_t n = 1;

    GIVES(ZE_RESULT_ERROR_UNINITIALIZED, zeDriverGet(&n, &driver));
    GIVES(ZE_RESULT_ERROR_UNINITIALIZED, zeInit(0)); /* without a device */
}

static void properties(void)
{
    ze_device_properties_t p = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    ze_pci_ext_properties_t pci = {.stype = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES};
    ze_memory_allocation_properties_t m = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
    ze_device_handle_t holder;
    unsigned char *memory;
    size_t size;
    void *base;

    start();
    GOOD(zeDeviceGetProperties(devices[1], &p));
    CHECK(strcmp(p.name, "softgpu1") == 0);
    GOOD(zeDevicePciGetPropertiesExt(devices[1], &pci));
    CHECK(pci.address.bus == 0x42);
    memory = alloc(1, NULL);
    GOOD(zeMemGetAllocProperties(context, memory + 7, &m, &holder));
    CHECK(m.type == ZE_MEMORY_TYPE_DEVICE && holder == devices[1] && m.id != 0);
    GOOD(zeMemGetAddressRange(context, memory + 7, &base, &size));
    CHECK(base == memory && size == SIZE);
    GOOD(zeMemFree(context, memory));
    GOOD(zeMemGetAllocProperties(context, memory, &m, &holder));
    CHECK(m.type == ZE_MEMORY_TYPE_UNKNOWN && holder == NULL);
    GIVES(ZE_RESULT_ERROR_INVALID_ARGUMENT, zeMemFree(context, memory));
    GIVES(ZE_RESULT_ERROR_INVALID_NULL_HANDLE,
          zeMemGetAddressRange((ze_context_handle_t)&m, memory, &base, &size) == 0
              ? 0
              : zeContextDestroy((ze_context_handle_t)&m));
    GOOD(zeContextDestroy(context));
    GIVES(ZE_RESULT_ERROR_INVALID_NULL_HANDLE, zeContextDestroy(context));
}

/* Copies to any host memory are asynchronous; the end of a copy signals its event, which stays
 * signaled until it is reset. */
static void copies(void)
{
    static unsigned char in[SIZE], out[SIZE];
    ze_command_list_handle_t first, second;
    ze_event_handle_t e, f;
    unsigned char *p, *q;

    start();
    first = list(0, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS);
    second = list(1, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS);
    p = alloc(0, NULL);
    q = alloc(1, NULL);
    e = event();
    f = event();
    fill_random(in, SIZE);
    for (int i = 0; i < 3; i++) {
        memset(out, 0, SIZE);
        GIVES(ZE_RESULT_NOT_READY, zeEventQueryStatus(e));
        GOOD(zeCommandListAppendMemoryCopy(first, p, in, SIZE, NULL, 0, NULL));
        GOOD(zeCommandListAppendMemoryCopy(first, q, p, SIZE, e, 0, NULL));
        GOOD(zeCommandListAppendMemoryCopy(second, out, q, SIZE, f, 1, &e));
        GIVES(ZE_RESULT_NOT_READY, zeEventQueryStatus(f));
        CHECK(out[5] == 0 && out[6] == 0 && out[7] == 0);
        GIVES(ZE_RESULT_NOT_READY, zeEventHostSynchronize(f, 0));
        GOOD(zeEventHostSynchronize(f, UINT64_MAX));
        CHECK(memcmp(in, out, SIZE) == 0);
        GOOD(zeEventQueryStatus(e));
        GOOD(zeEventHostReset(e));
        GOOD(zeEventHostReset(f));
    }
    first = list(0, ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS);
    GOOD(zeCommandListAppendMemoryFill(first, p, "x", 1, SIZE, NULL, 0, NULL));
    GOOD(zeCommandListAppendMemoryCopy(first, out, p, SIZE, NULL, 0, NULL));
    CHECK(out[0] == 'x' && out[SIZE - 1] == 'x');
    GIVES(ZE_RESULT_ERROR_INVALID_ARGUMENT,
          zeCommandListAppendMemoryCopy(first, out, p + 1, SIZE, NULL, 0, NULL));
    GOOD(zeCommandListAppendMemoryCopyRegion(
        first, p, &(ze_copy_region_t){.originX = 5, .originY = 1, .width = 3, .height = 7}, 100, 0,
        in, &(ze_copy_region_t){.width = 3, .height = 7}, 10, 0, NULL, 0, NULL));
    GOOD(zeCommandListAppendMemoryCopy(first, out, p, SIZE, NULL, 0, NULL));
    for (int i = 0; i < 7; i++)
        CHECK(memcmp(in + 10 * i, out + 105 + 100 * i, 3) == 0 && out[108 + 100 * i] == 'x');
    GOOD(zeCommandListDestroy(first));
    GIVES(ZE_RESULT_ERROR_INVALID_NULL_HANDLE, zeCommandListDestroy(first));
}

static void cpu_access(void)
{
    start();
    *(volatile char *)alloc(0, NULL) = 1;
}

static void dmabufs(void)
{
    ze_external_memory_export_desc_t wish = {.stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC,
                                             .flags = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF};
    ze_external_memory_export_fd_t fd = {.stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD,
                                         .flags = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF,
                                         .fd = -1};
    ze_memory_allocation_properties_t m = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
                                           .pNext = &fd};
    unsigned char *plain, *p, *bytes, back = 0;
    int before, first;

    start();
    before = count_descriptors();
    plain = alloc(0, NULL);
    GIVES(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, zeMemGetAllocProperties(context, plain, &m, NULL));
    p = alloc(0, &wish);
    GOOD(zeMemGetAllocProperties(context, p + PAGE, &m, NULL));
    first = fd.fd;
    GOOD(zeMemGetAllocProperties(context, p, &m, NULL));
    CHECK(first >= 0 && fd.fd == first); /* the driver's, not the caller's */
    bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, first, lseek(first, 0, SEEK_CUR));
    CHECK(bytes != MAP_FAILED);
    bytes[5000] = 44;
    GOOD(zeCommandListAppendMemoryCopy(list(0, ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS), &back, p + 5000,
                                       1, NULL, 0, NULL));
    CHECK(back == 44);
    munmap(bytes, SIZE);
    GOOD(zeMemFree(context, p));
    GOOD(zeMemFree(context, plain));
    CHECK(count_descriptors() == before);
}

static void no_dmabufs(void)
{
    ze_external_memory_export_desc_t wish = {.stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC,
                                             .flags = ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF};
    ze_device_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,
                                       .pNext = &wish};
    void *p;

    start();
    GIVES(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
          zeMemAllocDevice(context, &desc, SIZE, 0, devices[0], &p));
    alloc(0, NULL);
}

static void lost(void)
{
    static char host[100];
    ze_command_list_handle_t l;
    ze_event_handle_t e;
    unsigned char *p;

    start();
    l = list(0, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS);
    e = event();
    p = alloc(0, NULL);
    GOOD(zeCommandListAppendMemoryCopy(l, p, host, sizeof host, e, 0, NULL));
    GIVES(ZE_RESULT_ERROR_DEVICE_LOST, zeEventHostSynchronize(e, UINT64_MAX));
    GIVES(ZE_RESULT_ERROR_DEVICE_LOST,
          zeCommandListAppendMemoryCopy(l, p, host, sizeof host, e, 0, NULL));
}

static const struct gpu_case cases[] = {
    {"uninitialized", uninitialized, "devices=0", NULL, 0},
    {"properties", properties, "devices=2", NULL, 0},
    {"copies", copies, "devices=2", "copy:ms=50", 0},
    {"access of the CPU", cpu_access, NULL, NULL, SIGSEGV},
    {"dma-bufs", dmabufs, NULL, NULL, 0},
    {"no dma-bufs", no_dmabufs, "no-dmabuf", NULL, 0},
    {"lost", lost, NULL, "copy:nth=1,ms=20,error=CUDA_ERROR_LAUNCH_FAILED", 0},
};

int main(void)
{
    return RUN_CASES(cases);
}
