/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Class CUDA_UVA over CUDA's driver. Each device has its primary context, retained while the device
 * is open, one stream for each direction of copies, and its idle events. A call that needs the
 * context pushes it and pops it again, so the caller's current context stays. The driver is
 * thread-safe; the events have a lock. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/mode.h"
#include "base/page.h"
#include "base/report.h"
#include "kind/cuda_api.h"
#include "kind/events.h"
#include "kind/kind.h"
#include "kind/library.h"

#define MEMBER(member, symbol, is_optional, parameters) tk_cu_result(*member) parameters;
static struct {
    TK_FUNCTIONS_OF_CUDA(MEMBER)
} cuda;

#define SYMBOL(member, symbol, is_optional, parameters)                                            \
    {#symbol, (void **)&cuda.member, is_optional},
static const struct tk_kind_symbol symbols[] = {TK_FUNCTIONS_OF_CUDA(SYMBOL)};

/* Two directions at once: a device has a copy engine for each. */
enum cuda_stream { CUDA_IN, CUDA_OUT, CUDA_INSIDE, cuda_streams };

struct cuda_device {
    tk_cu_device device;
    tk_cu_context context;
    tk_cu_stream streams[cuda_streams];
    struct tk_kind_events events;
};

static enum tk_status cuda_failed(struct tk_kind_why *why, const char *call, tk_cu_result result)
{
    const char *text = NULL;
    if (cuda.error_string(result, &text) != TK_CU_SUCCESS || !text)
        text = "unknown error";
    return tk_kind_why(why, "%s: %s (CUDA error %d)", call, text, result);
}

/* The calling thread's capture mode, saved while a call of ours runs in relaxed mode. */
static TK_PER_THREAD int capture_mode;

/* While a client thread captures a stream for a graph, calls such as cuEventQuery() and
 * cuMemAlloc() fail in every thread whose mode is not relaxed, and they invalidate the capture. The
 * library's calls are not part of the capture. */
static void cuda_exchange_capture(void)
{
    if (cuda.exchange_capture)
        cuda.exchange_capture(&capture_mode);
}

/* This fails if the client has called cuDevicePrimaryCtxReset(), which destroys the primary
 * context. */
static enum tk_status cuda_enter(const struct cuda_device *own, struct tk_kind_why *why)
{
    tk_cu_result result = cuda.context_push(own->context);
    if (result != TK_CU_SUCCESS)
        return cuda_failed(why, "cuCtxPushCurrent", result);
    capture_mode = TK_CU_CAPTURE_RELAXED;
    cuda_exchange_capture();
    return TK_OK;
}

static void cuda_leave(void)
{
    tk_cu_context ours;
    cuda_exchange_capture();
    cuda.context_pop(&ours);
}

/* ---- open and close ---- */

static int cuda_attribute(tk_cu_device device, int attribute, int otherwise)
{
    int value;
    return cuda.device_get_attribute(&value, attribute, device) == TK_CU_SUCCESS ? value
                                                                                 : otherwise;
}

static int cuda_load(struct tk_kind_why *why)
{
    static const char *const files[] = {"libcuda.so.1", NULL};
    return tk_kind_library_load(files, symbols, sizeof(symbols) / sizeof(*symbols), why);
}

static enum tk_status cuda_count(int *count, struct tk_kind_why *why)
{
    tk_cu_result result = cuda.init(0);
    if (result != TK_CU_SUCCESS)
        return cuda_failed(why, "cuInit", result);
    result = cuda.device_get_count(count);
    return result == TK_CU_SUCCESS ? TK_OK : cuda_failed(why, "cuDeviceGetCount", result);
}

static int cuda_list(struct tk_kind_args *args, int max, bool *is_loaded, struct tk_kind_why *why)
{
    int count = 0;
    int file = cuda_load(why);
    *is_loaded = file != TK_KIND_LIBRARY_ABSENT;
    if (file < 0 || cuda_count(&count, why) != TK_OK)
        return -1;
    return tk_kind_list_ordinals(TK_KIND_CUDA_UVA, count, args, max);
}

static enum tk_status cuda_find_device(int ordinal, tk_cu_device *device, struct tk_kind_why *why)
{
    int count = 0;
    if (cuda_load(why) < 0 || cuda_count(&count, why) != TK_OK)
        return TK_FAIL;
    if (ordinal < 0 || ordinal >= count)
        return tk_kind_why(why, "there is no CUDA device %d: this process sees %d of them", ordinal,
                           count);
    tk_cu_result result = cuda.device_get(device, ordinal);
    if (result != TK_CU_SUCCESS)
        return cuda_failed(why, "cuDeviceGet", result);
    if (cuda_attribute(*device, TK_CU_DEVICE_UNIFIED_ADDRESSING, 0))
        return TK_OK;
    return tk_kind_why(why, "CUDA device %d has no unified addressing", ordinal);
}

static void cuda_pci(tk_cu_device device, char *pci, size_t size)
{
    int domain = cuda_attribute(device, TK_CU_DEVICE_PCI_DOMAIN_ID, 0);
    int bus = cuda_attribute(device, TK_CU_DEVICE_PCI_BUS_ID, -1);
    int place = cuda_attribute(device, TK_CU_DEVICE_PCI_DEVICE_ID, -1);
    if (bus >= 0 && place >= 0)
        snprintf(pci, size, "%04x:%02x:%02x.0", domain & 0xffff, bus & 0xff, place & 0xff);
}

/* A kernel of this device must see a remote write; other devices may not need to. A driver that
 * does not know the attribute promises nothing. */
static void cuda_facts(tk_cu_device device, struct tk_kind_facts *facts)
{
    tk_cu_uuid uuid;
    if (cuda.device_get_name(facts->name, sizeof(facts->name), device) != TK_CU_SUCCESS)
        snprintf(facts->name, sizeof(facts->name), "unknown");
    cuda_pci(device, facts->pci, sizeof(facts->pci));
    if (cuda.device_get_uuid && cuda.device_get_uuid(&uuid, device) == TK_CU_SUCCESS)
        memcpy(facts->uuid, uuid.bytes, sizeof(facts->uuid));
    facts->has_dmabuf =
        cuda.export_range && cuda_attribute(device, TK_CU_DEVICE_DMA_BUF_SUPPORTED, 0);
    facts->has_ipc = cuda.ipc_get && cuda.ipc_open && cuda.ipc_close;
    facts->needs_flush = cuda_attribute(device, TK_CU_DEVICE_GPU_DIRECT_RDMA_WRITES_ORDERING,
                                        TK_CU_ORDERING_NONE) < TK_CU_ORDERING_OWNER;
    facts->can_flush =
        cuda.flush_writes &&
        cuda_attribute(device, TK_CU_DEVICE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 0) &
            TK_CU_FLUSH_OPTION_HOST;
}

static void cuda_drop_streams(struct cuda_device *own)
{
    struct tk_kind_event *event;
    while ((event = tk_kind_event_take(&own->events)) != NULL) {
        cuda.event_destroy(event->handle);
        free(event);
    }
    for (int i = 0; i < cuda_streams; i++)
        if (own->streams[i])
            cuda.stream_destroy(own->streams[i]);
}

/* Non-blocking: the client's default stream and the library's copies do not wait for each other. */
static enum tk_status cuda_make_streams(struct cuda_device *own, struct tk_kind_why *why)
{
    if (cuda_enter(own, why) != TK_OK)
        return TK_FAIL;
    tk_cu_result result = TK_CU_SUCCESS;
    for (int i = 0; i < cuda_streams && result == TK_CU_SUCCESS; i++)
        result = cuda.stream_create(&own->streams[i], TK_CU_STREAM_NON_BLOCKING);
    if (result != TK_CU_SUCCESS)
        cuda_drop_streams(own);
    cuda_leave();
    return result == TK_CU_SUCCESS ? TK_OK : cuda_failed(why, "cuStreamCreate", result);
}

static enum tk_status cuda_open(struct tk_kind_device *device, struct tk_kind_why *why)
{
    struct cuda_device own = {.events = {.lock = TK_LOCK_INIT}};
    if (cuda_find_device(device->args.ordinal, &own.device, why) != TK_OK)
        return TK_FAIL;
    tk_cu_result result = cuda.context_retain(&own.context, own.device);
    if (result != TK_CU_SUCCESS)
        return cuda_failed(why, "cuDevicePrimaryCtxRetain", result);
    if (cuda_make_streams(&own, why) != TK_OK) {
        cuda.context_release(own.device);
        return TK_FAIL;
    }
    cuda_facts(own.device, &device->facts);
    device->own = malloc(sizeof(own));
    if (!device->own)
        tk_panic("out of memory for a CUDA device");
    memcpy(device->own, &own, sizeof(own));
    return TK_OK;
}

/* If the context was destroyed, so were its streams and events. */
static void cuda_close(struct tk_kind_device *device)
{
    struct cuda_device *own = device->own;
    struct tk_kind_why why;
    if (cuda_enter(own, &why) == TK_OK) {
        cuda_drop_streams(own);
        cuda_leave();
    }
    cuda.context_release(own->device);
    free(own);
}

/* ---- memory ---- */

static size_t cuda_total(struct tk_kind_device *device)
{
    struct tk_kind_why why;
    size_t left, total = 0;
    if (!cuda.mem_get_info || cuda_enter(device->own, &why) != TK_OK)
        return 0;
    tk_cu_result result = cuda.mem_get_info(&left, &total);
    cuda_leave();
    return result == TK_CU_SUCCESS ? total : 0;
}

/* Within the context. */
static enum tk_status cuda_alloc_here(size_t size, uintptr_t *address, struct tk_kind_why *why)
{
    tk_cu_pointer pointer = 0;
    char call[120];
    size_t left, total;
    tk_cu_result result = cuda.mem_alloc(&pointer, size);
    *address = (uintptr_t)pointer;
    if (result == TK_CU_SUCCESS)
        return TK_OK;
    if (cuda.mem_get_info && cuda.mem_get_info(&left, &total) == TK_CU_SUCCESS)
        snprintf(call, sizeof(call), "cuMemAlloc of %zu bytes, of %zu that are free", size, left);
    else
        snprintf(call, sizeof(call), "cuMemAlloc of %zu bytes", size);
    return cuda_failed(why, call, result);
}

static enum tk_status cuda_alloc(struct tk_kind_device *device, size_t size, uintptr_t *address,
                                 struct tk_kind_why *why)
{
    if (cuda_enter(device->own, why) != TK_OK)
        return TK_FAIL;
    enum tk_status status = cuda_alloc_here(size, address, why);
    cuda_leave();
    return status;
}

static void cuda_free(struct tk_kind_device *device, uintptr_t address)
{
    struct tk_kind_why why;
    if (cuda_enter(device->own, &why) != TK_OK)
        return; /* freed with its context */
    cuda.mem_free(address);
    cuda_leave();
}

static bool cuda_pointer_has(void *value, int attribute, uintptr_t address)
{
    return cuda.pointer_get_attribute(value, attribute, address) == TK_CU_SUCCESS;
}

static enum tk_status cuda_judge(const struct tk_kind_device *device, uintptr_t address,
                                 struct tk_kind_why *why)
{
    unsigned type = 0, is_managed = 0;
    int ordinal = device->args.ordinal;
    if (!cuda_pointer_has(&type, TK_CU_POINTER_MEMORY_TYPE, address))
        return tk_kind_why(why, "0x%zx is not memory of CUDA, or was freed", address);
    if (type != TK_CU_MEMORYTYPE_DEVICE)
        return tk_kind_why(why,
                           "0x%zx is host memory or an array (memory type %u), not memory of "
                           "a device",
                           address, type);
    if (cuda_pointer_has(&is_managed, TK_CU_POINTER_IS_MANAGED, address) && is_managed)
        return tk_kind_why(why, "0x%zx is managed memory, which moves between host and device",
                           address);
    if (cuda_pointer_has(&ordinal, TK_CU_POINTER_DEVICE_ORDINAL, address) &&
        ordinal != device->args.ordinal)
        return tk_kind_why(why, "0x%zx is memory of CUDA device %d, not of %d", address, ordinal,
                           device->args.ordinal);
    return TK_OK;
}

/* The attributes also cover VMM memory, which cuMemGetAddressRange() does not know; drivers before
 * CUDA 11 lack the attributes. */
static enum tk_status cuda_range(struct tk_kind_device *device, uintptr_t address,
                                 struct tk_kind_allocation *allocation, struct tk_kind_why *why)
{
    void *base = NULL;
    size_t size = 0;
    if (cuda_pointer_has(&base, TK_CU_POINTER_RANGE_START_ADDR, address) &&
        cuda_pointer_has(&size, TK_CU_POINTER_RANGE_SIZE, address)) {
        allocation->base = (uintptr_t)base;
        allocation->size = size;
        return TK_OK;
    }
    tk_cu_pointer start = 0;
    if (cuda_enter(device->own, why) != TK_OK)
        return TK_FAIL;
    tk_cu_result result = cuda.mem_get_address_range(&start, &size, address);
    cuda_leave();
    if (result != TK_CU_SUCCESS)
        return cuda_failed(why, "cuMemGetAddressRange", result);
    allocation->base = (uintptr_t)start;
    allocation->size = size;
    return TK_OK;
}

static enum tk_status cuda_find(struct tk_kind_device *device, uintptr_t address,
                                struct tk_kind_allocation *allocation, struct tk_kind_why *why)
{
    unsigned long long id = 0;
    *allocation = (struct tk_kind_allocation){0};
    if (cuda_judge(device, address, why) != TK_OK ||
        cuda_range(device, address, allocation, why) != TK_OK)
        return TK_FAIL;
    if (cuda_pointer_has(&id, TK_CU_POINTER_BUFFER_ID, address))
        allocation->id = id;
    return TK_OK;
}

/* Without this attribute, a client's copy such as cuMemcpyDtoD() may return before it is done, and
 * an HCA would send the old data. */
static void cuda_prepare(struct tk_kind_device *device, uintptr_t address)
{
    unsigned yes = 1;
    (void)device;
    if (cuda.pointer_set_attribute)
        cuda.pointer_set_attribute(&yes, TK_CU_POINTER_SYNC_MEMOPS, address);
}

/* ---- copies ---- */

static struct tk_kind_event *cuda_event(struct cuda_device *own, struct tk_kind_why *why)
{
    struct tk_kind_event *event = tk_kind_event_take(&own->events);
    if (event)
        return event;
    tk_cu_event handle = NULL;
    tk_cu_result result = cuda.event_create(&handle, TK_CU_EVENT_DISABLE_TIMING);
    if (result == TK_CU_SUCCESS)
        return tk_kind_event_new(handle);
    cuda_failed(why, "cuEventCreate", result);
    return NULL;
}

/* The device that copies: the destination's, or the source's if the destination is host memory. */
static struct cuda_device *cuda_copier(const struct tk_kind_copy *copy)
{
    return (copy->to_device ? copy->to_device : copy->from_device)->own;
}

static tk_cu_stream cuda_stream(const struct tk_kind_copy *copy, const struct cuda_device *own)
{
    return own->streams[!copy->from_device ? CUDA_IN : !copy->to_device ? CUDA_OUT : CUDA_INSIDE];
}

static tk_cu_result cuda_enqueue_range(const struct tk_kind_copy *copy, struct cuda_device *own,
                                       uintptr_t to, uintptr_t from)
{
    tk_cu_stream stream = cuda_stream(copy, own);
    if (!copy->from_device)
        return cuda.copy_to_device(to, (const void *)from, copy->nbytes, stream);
    if (!copy->to_device)
        return cuda.copy_to_host((void *)to, from, copy->nbytes, stream);
    const struct cuda_device *other = copy->from_device->own;
    if (other == own)
        return cuda.copy_inside(to, from, copy->nbytes, stream);
    return cuda.copy_between(to, own->context, from, other->context, copy->nbytes, stream);
}

/* One call copies all rows, but not between two contexts. According to the documentation, a copy
 * within a device may fail for pitches that cuMemAllocPitch() did not choose. */
static tk_cu_result cuda_enqueue_2d(const struct tk_kind_copy *copy, const struct cuda_device *own)
{
    const tk_cu_copy_2d rows = {
        .from_type = copy->from_device ? TK_CU_MEMORYTYPE_DEVICE : TK_CU_MEMORYTYPE_HOST,
        .from_host = copy->from_device ? NULL : (const void *)copy->from,
        .from_device = copy->from_device ? copy->from : 0,
        .from_pitch = copy->from_pitch,
        .to_type = copy->to_device ? TK_CU_MEMORYTYPE_DEVICE : TK_CU_MEMORYTYPE_HOST,
        .to_host = copy->to_device ? NULL : (void *)copy->to,
        .to_device = copy->to_device ? copy->to : 0,
        .to_pitch = copy->to_pitch,
        .width = copy->nbytes,
        .height = copy->rows};
    bool is_peer = copy->from_device && copy->to_device && copy->from_device->own != own;
    return is_peer || !cuda.copy_2d ? TK_CU_INVALID_VALUE
                                    : cuda.copy_2d(&rows, cuda_stream(copy, own));
}

static tk_cu_result cuda_enqueue(const struct tk_kind_copy *copy, struct cuda_device *own)
{
    if (copy->rows < 2)
        return cuda_enqueue_range(copy, own, copy->to, copy->from);
    tk_cu_result result = cuda_enqueue_2d(copy, own);
    if (result != TK_CU_INVALID_VALUE)
        return result;
    result = TK_CU_SUCCESS;
    for (size_t i = 0; i < copy->rows && result == TK_CU_SUCCESS; i++)
        result = cuda_enqueue_range(copy, own, copy->to + i * copy->to_pitch,
                                    copy->from + i * copy->from_pitch);
    return result;
}

static enum tk_status cuda_start_copy(struct tk_kind_copy *copy, struct cuda_device *own,
                                      struct tk_kind_why *why)
{
    tk_cu_stream stream = cuda_stream(copy, own);
    struct tk_kind_event *event = cuda_event(own, why);
    if (!event)
        return TK_FAIL;
    tk_cu_result result = cuda_enqueue(copy, own);
    if (result == TK_CU_SUCCESS)
        result = cuda.event_record(event->handle, stream);
    /* The copy, or some of its rows, may be in flight, and the library could not see it end. */
    if (result != TK_CU_SUCCESS)
        cuda.stream_synchronize(stream);
    copy->event = event;
    if (result == TK_CU_SUCCESS)
        return TK_OK;
    tk_kind_event_give(&own->events, event);
    return cuda_failed(why, "copying", result);
}

static enum tk_status cuda_copy(struct tk_kind_copy *copy, struct tk_kind_why *why)
{
    struct cuda_device *own = cuda_copier(copy);
    if (cuda_enter(own, why) != TK_OK)
        return TK_FAIL;
    enum tk_status status = cuda_start_copy(copy, own, why);
    cuda_leave();
    return status;
}

static enum tk_status cuda_copy_test(struct tk_kind_copy *copy, struct tk_kind_why *why)
{
    struct cuda_device *own = cuda_copier(copy);
    struct tk_kind_event *event = copy->event;
    enum tk_status status = cuda_enter(own, why);
    if (status == TK_OK) {
        tk_cu_result result = cuda.event_query(event->handle);
        cuda_leave();
        if (result == TK_CU_NOT_READY)
            return TK_BUSY;
        if (result != TK_CU_SUCCESS)
            status = cuda_failed(why, "copying", result);
    }
    tk_kind_event_give(&own->events, event);
    copy->event = NULL;
    return status;
}

/* ---- other processes and devices ---- */

/* The driver accepts only whole host pages. */
static enum tk_status cuda_export_dmabuf(struct tk_kind_device *device, uintptr_t address,
                                         size_t size, int *fd, uint64_t *offset,
                                         struct tk_kind_why *why)
{
    if (!device->facts.has_dmabuf)
        return tk_kind_why(why, "the driver exports no dma-bufs: CUDA 11.7, and the open kernel "
                                "modules of the driver, do");
    size_t page = tk_page_size();
    uintptr_t start = address & ~(page - 1);
    size_t length = tk_align_up(address + size - start, page);
    if (cuda_enter(device->own, why) != TK_OK)
        return TK_FAIL;
    *fd = -1;
    tk_cu_result result = cuda.export_range(fd, start, length, TK_CU_RANGE_HANDLE_DMA_BUF_FD, 0);
    cuda_leave();
    if (result != TK_CU_SUCCESS)
        return cuda_failed(why, "cuMemGetHandleForAddressRange", result);
    *offset = address - start;
    return TK_OK;
}

static enum tk_status cuda_ipc_get(struct tk_kind_device *device, uintptr_t address,
                                   struct tk_kind_ipc *ipc, struct tk_kind_why *why)
{
    tk_cu_ipc_handle handle;
    if (cuda_enter(device->own, why) != TK_OK)
        return TK_FAIL;
    tk_cu_result result = cuda.ipc_get(&handle, address);
    cuda_leave();
    if (result != TK_CU_SUCCESS)
        return cuda_failed(why, "cuIpcGetMemHandle", result);
    memcpy(ipc->handle, handle.reserved, sizeof(ipc->handle));
    return TK_OK;
}

static enum tk_status cuda_ipc_open(struct tk_kind_device *device, const struct tk_kind_ipc *ipc,
                                    uintptr_t *base, struct tk_kind_why *why)
{
    tk_cu_ipc_handle handle;
    tk_cu_pointer address = 0;
    memcpy(handle.reserved, ipc->handle, sizeof(handle.reserved));
    if (!device->facts.has_ipc)
        return tk_kind_why(why, "the driver has no cuIpcOpenMemHandle()");
    if (cuda_enter(device->own, why) != TK_OK)
        return TK_FAIL;
    tk_cu_result result = cuda.ipc_open(&address, handle, TK_CU_IPC_LAZY_ENABLE_PEER_ACCESS);
    cuda_leave();
    if (result != TK_CU_SUCCESS)
        return cuda_failed(why, "cuIpcOpenMemHandle", result);
    *base = (uintptr_t)address;
    return TK_OK;
}

static void cuda_ipc_close(struct tk_kind_device *device, uintptr_t base)
{
    struct tk_kind_why why;
    if (cuda_enter(device->own, &why) != TK_OK)
        return;
    cuda.ipc_close(base);
    cuda_leave();
}

static enum tk_status cuda_flush(struct tk_kind_device *device, struct tk_kind_why *why)
{
    if (cuda_enter(device->own, why) != TK_OK)
        return TK_FAIL;
    tk_cu_result result = cuda.flush_writes(TK_CU_FLUSH_TARGET_CURRENT_CTX, TK_CU_FLUSH_TO_OWNER);
    cuda_leave();
    return result == TK_CU_SUCCESS ? TK_OK : cuda_failed(why, "cuFlushGPUDirectRDMAWrites", result);
}

/* Portable: pinned for all contexts, so that buffers serve all devices. */
static bool cuda_pin_host(struct tk_kind_device *device, void *base, size_t size)
{
    struct tk_kind_why why;
    if (!cuda.host_register || !cuda.host_unregister || cuda_enter(device->own, &why) != TK_OK)
        return false;
    bool is_pinned =
        cuda.host_register(base, size, TK_CU_MEMHOSTREGISTER_PORTABLE) == TK_CU_SUCCESS;
    cuda_leave();
    return is_pinned;
}

static void cuda_unpin_host(struct tk_kind_device *device, void *base)
{
    struct tk_kind_why why;
    if (cuda_enter(device->own, &why) != TK_OK)
        return;
    cuda.host_unregister(base);
    cuda_leave();
}

const struct tk_kind_class tk_kind_cuda = {
    .name = "CUDA_UVA",
    .library = "libcuda.so.1",
    .gex_class = TK_KIND_CUDA_UVA,
    .list = cuda_list,
    .open = cuda_open,
    .close = cuda_close,
    .total = cuda_total,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .find = cuda_find,
    .prepare = cuda_prepare,
    .copy = cuda_copy,
    .copy_test = cuda_copy_test,
    .export_dmabuf = cuda_export_dmabuf,
    .ipc_get = cuda_ipc_get,
    .ipc_open = cuda_ipc_open,
    .ipc_close = cuda_ipc_close,
    .flush = cuda_flush,
    .pin_host = cuda_pin_host,
    .unpin_host = cuda_unpin_host,
};
