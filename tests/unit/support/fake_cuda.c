/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See fake_cuda.h. */
#include "config.h"

#include "fake_cuda.h"

#include <fcntl.h>
#include <sched.h>

#include "base/page.h"
#include "kind/cuda_api.h"
#include "kind/library.h"

#define DECLARE(member, symbol, is_optional, parameters)                                           \
    static tk_cu_result fake_##member parameters;
TK_FUNCTIONS_OF_CUDA(DECLARE)

struct fake_cuda fake_cuda;

int tk_kind_library_load(const char *const *files, const struct tk_kind_symbol *symbols,
                         size_t count, struct tk_kind_why *why)
{
#define KNOW(member, symbol, is_optional, parameters) {#symbol, (void *)fake_##member},
    static const struct {
        const char *name;
        void *function;
    } known[] = {TK_FUNCTIONS_OF_CUDA(KNOW)};
    assert_int_equal(count, sizeof(known) / sizeof(*known));
    if (fake_cuda.is_missing) {
        tk_kind_why(why, "%s can't be loaded", files[0]);
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        bool is_absent = fake_cuda.absent && strcmp(fake_cuda.absent, known[i].name) == 0;
        assert_string_equal(symbols[i].name, known[i].name);
        assert_true(!is_absent || symbols[i].is_optional);
        *symbols[i].function = is_absent ? NULL : known[i].function;
    }
    return 0;
}

static bool fails(const char *name)
{
    return fake_cuda.failing && strcmp(fake_cuda.failing, name) == 0;
}

#define MAY_FAIL(name)                                                                             \
    do {                                                                                           \
        if (fails(name))                                                                           \
            return fake_cuda.code;                                                                 \
    } while (0)

/* Calls that need a current context: 100 + ordinal is the primary one of a device. None may disturb
 * the capture of a stream by another thread. */
#define NEEDS_CONTEXT()                                                                            \
    do {                                                                                           \
        assert_true(fake_cuda.depth > 0 && fake_cuda.stack[fake_cuda.depth - 1] >= 100);           \
        assert_true(fake_cuda.capture_mode == TK_CU_CAPTURE_RELAXED);                              \
    } while (0)

static tk_cu_result fake_exchange_capture(int *mode)
{
    int old = fake_cuda.capture_mode;
    fake_cuda.capture_mode = *mode;
    *mode = old;
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_init(unsigned flags)
{
    assert_int_equal(flags, 0);
    MAY_FAIL("cuInit");
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_error_string(tk_cu_result error, const char **text)
{
    *text = error == no_device ? "no CUDA-capable device is detected" : "some error";
    return error == 999 ? TK_CU_INVALID_VALUE : TK_CU_SUCCESS;
}

static tk_cu_result fake_device_get_count(int *count)
{
    *count = fake_cuda.count;
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_device_get(tk_cu_device *device, int ordinal)
{
    *device = ordinal;
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_device_get_name(char *name, int size, tk_cu_device device)
{
    snprintf(name, (size_t)size, "Paper %d", device);
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_device_get_uuid(tk_cu_uuid *uuid, tk_cu_device device)
{
    memset(uuid, 'a' + device, sizeof(*uuid));
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_device_get_attribute(int *value, int attribute, tk_cu_device device)
{
    switch (attribute) {
    case TK_CU_DEVICE_PCI_DOMAIN_ID:
        *value = 1;
        return TK_CU_SUCCESS;
    case TK_CU_DEVICE_PCI_BUS_ID:
        *value = 0x3b;
        return TK_CU_SUCCESS;
    case TK_CU_DEVICE_PCI_DEVICE_ID:
        *value = device;
        return TK_CU_SUCCESS;
    case TK_CU_DEVICE_UNIFIED_ADDRESSING:
        *value = !fake_cuda.no_uva;
        return TK_CU_SUCCESS;
    case TK_CU_DEVICE_DMA_BUF_SUPPORTED:
        *value = fake_cuda.has_dmabuf;
        return TK_CU_SUCCESS;
    case TK_CU_DEVICE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS:
        *value = fake_cuda.flush_options;
        return TK_CU_SUCCESS;
    case TK_CU_DEVICE_GPU_DIRECT_RDMA_WRITES_ORDERING:
        *value = fake_cuda.ordering;
        return fake_cuda.ordering < 0 ? TK_CU_INVALID_VALUE : TK_CU_SUCCESS;
    default:
        return TK_CU_INVALID_VALUE;
    }
}

static tk_cu_result fake_context_retain(tk_cu_context *context, tk_cu_device device)
{
    MAY_FAIL("cuDevicePrimaryCtxRetain");
    sched_yield();
    assert_int_equal(fake_cuda.retained[device]++, 0);
    *context = (tk_cu_context)(uintptr_t)(100 + device);
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_context_release(tk_cu_device device)
{
    fake_cuda.retained[device]--;
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_context_push(tk_cu_context context)
{
    MAY_FAIL("cuCtxPushCurrent");
    fake_cuda.stack[fake_cuda.depth++] = (uintptr_t)context;
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_context_pop(tk_cu_context *context)
{
    assert_true(fake_cuda.depth > 1);
    *context = (tk_cu_context)fake_cuda.stack[--fake_cuda.depth];
    return TK_CU_SUCCESS;
}

uintptr_t fake_cuda_allocate(size_t size, int device)
{
    uintptr_t base = heap;
    if (fake_cuda.allocations > 0)
        base = fake_cuda.at[fake_cuda.allocations - 1].base +
               fake_cuda.at[fake_cuda.allocations - 1].size;
    fake_cuda.at[fake_cuda.allocations++] = (struct allocation){.base = base,
                                                                .size = size,
                                                                .device = device,
                                                                .id = ++fake_cuda.ids,
                                                                .type = TK_CU_MEMORYTYPE_DEVICE};
    return base;
}

static tk_cu_result fake_mem_alloc(tk_cu_pointer *address, size_t size)
{
    NEEDS_CONTEXT();
    MAY_FAIL("cuMemAlloc");
    *address = fake_cuda_allocate(size, (int)fake_cuda.stack[fake_cuda.depth - 1] - 100);
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_mem_get_info(size_t *free_bytes, size_t *total)
{
    NEEDS_CONTEXT();
    *free_bytes = 12345;
    *total = 99999;
    return TK_CU_SUCCESS;
}

static struct allocation *holder(uintptr_t address)
{
    for (int i = 0; i < fake_cuda.allocations; i++)
        if (address - fake_cuda.at[i].base < fake_cuda.at[i].size)
            return &fake_cuda.at[i];
    return NULL;
}

static tk_cu_result fake_mem_free(tk_cu_pointer address)
{
    struct allocation *a = holder(address);
    NEEDS_CONTEXT();
    assert_non_null(a);
    assert_int_equal(a->base, address);
    *a = fake_cuda.at[--fake_cuda.allocations];
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_mem_get_address_range(tk_cu_pointer *base, size_t *size,
                                               tk_cu_pointer address)
{
    const struct allocation *a = holder(address);
    NEEDS_CONTEXT();
    assert_non_null(a);
    *base = a->base;
    *size = a->size;
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_pointer_get_attribute(void *value, int attribute, tk_cu_pointer address)
{
    const struct allocation *a = holder(address);
    if (!a)
        return TK_CU_INVALID_VALUE;
    switch (attribute) {
    case TK_CU_POINTER_MEMORY_TYPE:
        *(unsigned *)value = a->type;
        return TK_CU_SUCCESS;
    case TK_CU_POINTER_IS_MANAGED:
        *(unsigned *)value = a->is_managed;
        return TK_CU_SUCCESS;
    case TK_CU_POINTER_DEVICE_ORDINAL:
        *(int *)value = a->device;
        return TK_CU_SUCCESS;
    case TK_CU_POINTER_BUFFER_ID:
        *(unsigned long long *)value = (unsigned long long)a->id;
        return TK_CU_SUCCESS;
    case TK_CU_POINTER_RANGE_START_ADDR:
        *(void **)value = (void *)a->base;
        return fake_cuda.no_ranges ? TK_CU_INVALID_VALUE : TK_CU_SUCCESS;
    case TK_CU_POINTER_RANGE_SIZE:
        *(size_t *)value = a->size;
        return fake_cuda.no_ranges ? TK_CU_INVALID_VALUE : TK_CU_SUCCESS;
    default:
        return TK_CU_INVALID_VALUE;
    }
}

static tk_cu_result fake_pointer_set_attribute(const void *value, int attribute,
                                               tk_cu_pointer address)
{
    assert_int_equal(attribute, TK_CU_POINTER_SYNC_MEMOPS);
    assert_int_equal(*(const unsigned *)value, 1);
    fake_cuda.synced = address;
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_stream_create(tk_cu_stream *stream, unsigned flags)
{
    NEEDS_CONTEXT();
    assert_int_equal(flags, TK_CU_STREAM_NON_BLOCKING);
    if (fails("cuStreamCreate") && fake_cuda.streams == 1)
        return fake_cuda.code;
    *stream = (tk_cu_stream)(uintptr_t)++fake_cuda.streams;
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_stream_destroy(tk_cu_stream stream)
{
    NEEDS_CONTEXT();
    assert_non_null(stream);
    fake_cuda.streams--;
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_stream_synchronize(tk_cu_stream stream)
{
    NEEDS_CONTEXT();
    assert_non_null(stream);
    fake_cuda.copied.by = "nothing any more";
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_event_create(tk_cu_event *event, unsigned flags)
{
    NEEDS_CONTEXT();
    MAY_FAIL("cuEventCreate");
    assert_int_equal(flags, TK_CU_EVENT_DISABLE_TIMING);
    *event = (tk_cu_event)(uintptr_t)++fake_cuda.events;
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_event_destroy(tk_cu_event event)
{
    NEEDS_CONTEXT();
    assert_non_null(event);
    fake_cuda.events--;
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_event_record(tk_cu_event event, tk_cu_stream stream)
{
    NEEDS_CONTEXT();
    assert_true(event && stream);
    MAY_FAIL("cuEventRecord");
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_event_query(tk_cu_event event)
{
    NEEDS_CONTEXT();
    assert_non_null(event);
    MAY_FAIL("cuEventQuery");
    return fake_cuda.is_slow ? TK_CU_NOT_READY : TK_CU_SUCCESS;
}

static tk_cu_result copied(const char *by, unsigned long long to, unsigned long long from,
                           size_t size)
{
    NEEDS_CONTEXT();
    MAY_FAIL("cuMemcpy");
    fake_cuda.copied.by = by;
    fake_cuda.copied.to = to;
    fake_cuda.copied.from = from;
    fake_cuda.copied.size = size;
    fake_cuda.copied.calls++;
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_copy_2d(const tk_cu_copy_2d *copy, tk_cu_stream stream)
{
    bool is_out = copy->from_type == TK_CU_MEMORYTYPE_DEVICE;
    bool is_in = copy->to_type == TK_CU_MEMORYTYPE_DEVICE;
    assert_non_null(stream);
    assert_int_equal(copy->from_x + copy->from_y + copy->to_x + copy->to_y, 0);
    assert_true(is_out || copy->from_type == TK_CU_MEMORYTYPE_HOST);
    assert_true(is_in || copy->to_type == TK_CU_MEMORYTYPE_HOST);
    assert_null(is_out ? copy->from_host : (const void *)(uintptr_t)copy->from_device);
    assert_null(is_in ? copy->to_host : (void *)(uintptr_t)copy->to_device);
    MAY_FAIL("cuMemcpy2DAsync");
    fake_cuda.copied.rows = copy->height;
    fake_cuda.copied.to_pitch = copy->to_pitch;
    fake_cuda.copied.from_pitch = copy->from_pitch;
    return copied("2D", is_in ? copy->to_device : (uintptr_t)copy->to_host,
                  is_out ? copy->from_device : (uintptr_t)copy->from_host, copy->width);
}

static tk_cu_result fake_copy_to_device(tk_cu_pointer to, const void *from, size_t size,
                                        tk_cu_stream stream)
{
    assert_non_null(stream);
    return copied("HtoD", to, (uintptr_t)from, size);
}

static tk_cu_result fake_copy_to_host(void *to, tk_cu_pointer from, size_t size,
                                      tk_cu_stream stream)
{
    assert_non_null(stream);
    return copied("DtoH", (uintptr_t)to, from, size);
}

static tk_cu_result fake_copy_inside(tk_cu_pointer to, tk_cu_pointer from, size_t size,
                                     tk_cu_stream stream)
{
    assert_non_null(stream);
    return copied("DtoD", to, from, size);
}

static tk_cu_result fake_copy_between(tk_cu_pointer to, tk_cu_context to_context,
                                      tk_cu_pointer from, tk_cu_context from_context, size_t size,
                                      tk_cu_stream stream)
{
    assert_non_null(stream);
    assert_int_equal((uintptr_t)to_context, 101);
    assert_int_equal((uintptr_t)from_context, 100);
    return copied("Peer", to, from, size);
}

static tk_cu_result fake_ipc_get(tk_cu_ipc_handle *handle, tk_cu_pointer address)
{
    NEEDS_CONTEXT();
    MAY_FAIL("cuIpcGetMemHandle");
    assert_int_equal(holder(address)->base, address);
    memset(handle, 0, sizeof(*handle));
    memcpy(handle->reserved, &holder(address)->base, sizeof(uintptr_t));
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_ipc_open(tk_cu_pointer *address, tk_cu_ipc_handle handle, unsigned flags)
{
    uintptr_t base;
    NEEDS_CONTEXT();
    MAY_FAIL("cuIpcOpenMemHandle");
    assert_int_equal(flags, TK_CU_IPC_LAZY_ENABLE_PEER_ACCESS);
    memcpy(&base, handle.reserved, sizeof(base));
    *address = base + 0x100000000;
    fake_cuda.opened++;
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_ipc_close(tk_cu_pointer address)
{
    NEEDS_CONTEXT();
    assert_true(address > 0x100000000);
    fake_cuda.opened--;
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_export_range(void *handle, tk_cu_pointer address, size_t size, int type,
                                      unsigned long long flags)
{
    NEEDS_CONTEXT();
    MAY_FAIL("cuMemGetHandleForAddressRange");
    assert_int_equal(type, TK_CU_RANGE_HANDLE_DMA_BUF_FD);
    assert_int_equal(flags, 0);
    assert_int_equal(address % tk_page_size(), 0);
    assert_int_equal(size % tk_page_size(), 0);
    *(int *)handle = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_flush_writes(int target, int scope)
{
    NEEDS_CONTEXT();
    MAY_FAIL("cuFlushGPUDirectRDMAWrites");
    assert_int_equal(target, TK_CU_FLUSH_TARGET_CURRENT_CTX);
    assert_int_equal(scope, TK_CU_FLUSH_TO_OWNER);
    fake_cuda.flushes++;
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_host_register(void *base, size_t size, unsigned flags)
{
    (void)base, (void)size;
    NEEDS_CONTEXT();
    MAY_FAIL("cuMemHostRegister");
    assert_int_equal(flags, TK_CU_MEMHOSTREGISTER_PORTABLE);
    fake_cuda.pinned++;
    return TK_CU_SUCCESS;
}

static tk_cu_result fake_host_unregister(void *base)
{
    (void)base;
    NEEDS_CONTEXT();
    fake_cuda.pinned--;
    return TK_CU_SUCCESS;
}
