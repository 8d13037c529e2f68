/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Class CUDA_UVA, devices and their memory, over the driver of fake_cuda.c. After each case nothing
 * of the driver may be in use, and after each call the caller's context must be current. */
#include "config.h"

#include <unistd.h>

#include "base/page.h"
#include "base/kind_mode.h"
#include "fake_cuda.h"
#include "kind/cuda_api.h"
#include "kind/kind.h"
#include "unit.h"

enum { clients_context = 7, clients_mode = 1 };

static struct tk_kind_why why;

static int set_up(void **state)
{
    memset(&fake_cuda, 0, sizeof(fake_cuda));
    fake_cuda.count = devices;
    fake_cuda.has_dmabuf = 1;
    fake_cuda.ordering = TK_CU_ORDERING_OWNER;
    fake_cuda.stack[fake_cuda.depth++] = clients_context;
    fake_cuda.capture_mode = clients_mode;
    memset(&why, 0, sizeof(why));
    return 0;
}

static int tear_down(void **state)
{
    return fake_cuda.depth != 1 || fake_cuda.stack[0] != clients_context || fake_cuda.retained[0] ||
           fake_cuda.retained[1] || fake_cuda.streams || fake_cuda.events || fake_cuda.opened ||
           fake_cuda.pinned;
}

static void assert_unchanged(void)
{
    assert_int_equal(fake_cuda.depth, 1);
    assert_int_equal(fake_cuda.stack[0], clients_context);
    assert_int_equal(fake_cuda.capture_mode, clients_mode);
}

static struct tk_kind_device *get(int ordinal)
{
    const struct tk_kind_args args = {.gex_class = TK_KIND_CUDA_UVA, .ordinal = ordinal};
    struct tk_kind_device *device = tk_kind_device_get(&args, &why);
    assert_unchanged();
    return device;
}

static void assert_no_device(int ordinal, const char *cause)
{
    assert_null(get(ordinal));
    unit_assert_says(why.text, cause);
    assert_null(strchr(why.text, '\n'));
}

/* ---- devices */

static void what_is_missing_is_named(void **state)
{
    fake_cuda.is_missing = true;
    assert_no_device(0, "libcuda.so.1 can't be loaded");
    fake_cuda.is_missing = false;
    assert_no_device(2, "there is no CUDA device 2: this process sees 2 of them");
    assert_no_device(-1, "there is no CUDA device -1");
    fake_cuda.no_uva = 1;
    assert_no_device(1, "CUDA device 1 has no unified addressing");
    fake_cuda.no_uva = 0;
    fake_cuda.failing = "cuInit";
    fake_cuda.code = no_device;
    assert_no_device(0, "cuInit: no CUDA-capable device is detected (CUDA error 100)");
    fake_cuda.code = 999;
    assert_no_device(0, "cuInit: unknown error (CUDA error 999)");
}

static void a_device_that_cannot_be_opened_leaves_nothing(void **state)
{
    static const char *const calls[] = {"cuDevicePrimaryCtxRetain", "cuCtxPushCurrent",
                                        "cuStreamCreate"};
    fake_cuda.code = TK_CU_OUT_OF_MEMORY;
    for (int i = 0; i < 3; i++) {
        fake_cuda.failing = calls[i];
        assert_no_device(0, calls[i]);
        assert_int_equal(fake_cuda.retained[0] + fake_cuda.streams, 0);
    }
}

static void devices_are_listed(void **state)
{
    struct tk_kind_args args[devices];
    bool is_loaded = false;
    assert_int_equal(tk_kind_cuda.list(args, devices, &is_loaded, &why), devices);
    assert_true(is_loaded);
    assert_int_equal(args[1].gex_class, TK_KIND_CUDA_UVA);
    assert_int_equal(args[1].ordinal, 1);
    assert_int_equal(tk_kind_cuda.list(args, 1, &is_loaded, &why), 1);
    fake_cuda.is_missing = true;
    assert_int_equal(tk_kind_cuda.list(args, devices, &is_loaded, &why), -1);
    assert_false(is_loaded);
    unit_assert_says(why.text, "libcuda.so.1 can't be loaded");
}

static void a_device_says_what_it_is(void **state)
{
    char text[160];
    struct tk_kind_device *device = get(1);
    assert_string_equal(device->facts.pci, "0001:3b:01.0");
    assert_string_equal(tk_kind_device_text(device, text, sizeof(text)),
                        "CUDA_UVA device 1 (Paper 1, PCI 0001:3b:01.0)");
    assert_int_equal(device->facts.uuid[15], 'b');
    assert_int_equal(device->class->total(device), 99999);
    assert_unchanged();
    assert_true(device->facts.has_dmabuf && device->facts.has_ipc && !device->facts.needs_flush);
    tk_kind_device_put(device);
}

/* A driver without the attribute guarantees nothing. */
static void writes_are_flushed_unless_the_device_orders_them(void **state)
{
    static const struct {
        int ordering;
        bool needs_flush;
    } cases[] = {{-1, true},
                 {TK_CU_ORDERING_NONE, true},
                 {TK_CU_ORDERING_OWNER, false},
                 {TK_CU_ORDERING_ALL_DEVICES, false}};
    for (int i = 0; i < 4; i++) {
        fake_cuda.ordering = cases[i].ordering;
        struct tk_kind_device *device = get(0);
        assert_int_equal(device->facts.needs_flush, cases[i].needs_flush);
        tk_kind_device_put(device);
    }
}

/* The attribute has bits: 2 is a flush by work in a stream. */
static void a_flush_is_made_where_the_driver_has_one_for_the_host(void **state)
{
    static const struct {
        const char *absent;
        int options;
        bool can_flush;
    } cases[] = {{NULL, 0, false},
                 {NULL, 2, false},
                 {NULL, TK_CU_FLUSH_OPTION_HOST | 2, true},
                 {"cuFlushGPUDirectRDMAWrites", TK_CU_FLUSH_OPTION_HOST, false}};
    for (int i = 0; i < 4; i++) {
        fake_cuda.absent = cases[i].absent;
        fake_cuda.flush_options = cases[i].options;
        struct tk_kind_device *device = get(0);
        assert_int_equal(device->facts.can_flush, cases[i].can_flush);
        if (cases[i].can_flush) {
            assert_int_equal(device->class->flush(device, &why), TK_OK);
            assert_int_equal(fake_cuda.flushes, 1);
            fake_cuda.failing = "cuFlushGPUDirectRDMAWrites";
            fake_cuda.code = 719;
            assert_int_equal(device->class->flush(device, &why), TK_FAIL);
            unit_assert_says(why.text, "cuFlushGPUDirectRDMAWrites: some error (CUDA error 719)");
            fake_cuda.failing = NULL;
        }
        tk_kind_device_put(device);
    }
    fake_cuda.absent = NULL;
}

static void old_drivers_lack_dma_bufs_and_ipc(void **state)
{
    fake_cuda.absent = "cuMemGetHandleForAddressRange";
    struct tk_kind_device *device = get(0);
    int fd;
    uint64_t offset;
    assert_false(device->facts.has_dmabuf);
    assert_int_equal(device->class->export_dmabuf(device, heap, 1, &fd, &offset, &why), TK_FAIL);
    unit_assert_says(why.text, "CUDA 11.7");
    tk_kind_device_put(device);
    fake_cuda.absent = "cuIpcOpenMemHandle_v2";
    device = get(0);
    assert_false(device->facts.has_ipc);
    tk_kind_device_put(device);
}

static void a_device_is_opened_once_and_closed_with_its_last_use(void **state)
{
    struct tk_kind_device *first = get(0), *second = get(0), *other = get(1);
    assert_ptr_equal(first, second);
    assert_ptr_not_equal(first, other);
    assert_int_equal(fake_cuda.retained[0], 1);
    assert_ptr_equal(
        tk_kind_device_like(TK_KIND_CUDA_UVA, (const unsigned char *)"bbbbbbbbbbbbbbbb"), other);
    assert_ptr_equal(
        tk_kind_device_like(TK_KIND_CUDA_UVA, (const unsigned char *)"aaaaaaaaaaaaaaaa"), first);
    assert_non_null(
        tk_kind_device_like(TK_KIND_CUDA_UVA, (const unsigned char *)"cccccccccccccccc"));
    assert_null(tk_kind_device_like(TK_KIND_HIP, (const unsigned char *)"bbbbbbbbbbbbbbbb"));
    tk_kind_device_put(first);
    assert_int_equal(fake_cuda.retained[0], 1);
    tk_kind_device_put(second);
    assert_int_equal(fake_cuda.retained[0], 0);
    assert_int_equal(fake_cuda.retained[1], 1);
    tk_kind_device_put(other);
}

/* ---- memory */

static struct tk_kind_memory memory;
static bool is_argument;

static enum tk_status open_memory(struct tk_kind_device *device, uintptr_t address, size_t size)
{
    is_argument = false;
    enum tk_status status = tk_kind_memory_open(&memory, device, address, size, &is_argument, &why);
    assert_unchanged();
    return status;
}

static void assert_refused(struct tk_kind_device *device, uintptr_t address, size_t size,
                           const char *cause)
{
    assert_int_equal(open_memory(device, address, size), TK_FAIL);
    assert_true(is_argument);
    unit_assert_says(why.text, cause);
}

static void memory_of_the_library_goes_with_the_segment(void **state)
{
    struct tk_kind_device *device = get(1);
    assert_int_equal(open_memory(device, 0, 100), TK_OK);
    assert_true(memory.is_ours && memory.has_ipc);
    assert_int_equal(memory.size, 65536);
    assert_int_equal(memory.base, heap);
    assert_int_equal(fake_cuda.at[0].device, 1);
    assert_int_equal(fake_cuda.synced, heap);
    tk_kind_memory_close(&memory);
    assert_int_equal(fake_cuda.allocations, 0);
    tk_kind_device_put(device);
}

static void a_kind_may_go_before_its_segments(void **state)
{
    struct tk_kind_device *device = get(0);
    assert_int_equal(open_memory(device, 0, 100), TK_OK);
    tk_kind_device_put(device);
    assert_int_equal(fake_cuda.retained[0], 1);
    tk_kind_memory_close(&memory);
    assert_int_equal(fake_cuda.retained[0], 0);
    assert_int_equal(fake_cuda.allocations, 0);
}

/* The address of freed memory comes again, and so may its IPC handle. */
static void each_allocation_has_a_serial_number(void **state)
{
    struct tk_kind_device *device = get(0);
    struct tk_kind_memory first;
    struct tk_kind_why why;
    bool is_argument;
    uintptr_t base = fake_cuda_allocate(10000, 0);
    assert_int_equal(tk_kind_memory_open(&first, device, base, 100, &is_argument, &why), TK_OK);
    assert_int_equal(open_memory(device, base + 100, 100), TK_OK);
    assert_int_equal(memory.serial, first.serial);
    tk_kind_memory_close(&first);
    uint32_t before = memory.serial;
    tk_kind_memory_close(&memory);
    assert_int_equal(open_memory(device, base, 100), TK_OK);
    assert_int_not_equal(memory.serial, before);
    tk_kind_memory_close(&memory);
    tk_kind_device_put(device);
}

static void memory_of_the_client_stays_the_clients(void **state)
{
    struct tk_kind_device *device = get(0);
    uintptr_t base = fake_cuda_allocate(10000, 0);
    assert_int_equal(open_memory(device, base + 100, 9900), TK_OK);
    assert_false(memory.is_ours);
    assert_int_equal(memory.size, 9900);
    assert_int_equal(memory.allocation.base, base);
    assert_int_equal(memory.ipc.offset, 100);
    tk_kind_memory_close(&memory);
    assert_int_equal(fake_cuda.allocations, 1);
    tk_kind_device_put(device);
}

static void memory_that_lacks_is_a_matter_of_resources(void **state)
{
    struct tk_kind_device *device = get(0);
    fake_cuda.failing = "cuMemAlloc";
    fake_cuda.code = TK_CU_OUT_OF_MEMORY;
    assert_int_equal(open_memory(device, 0, 100), TK_FAIL);
    assert_false(is_argument);
    unit_assert_says(why.text, "cuMemAlloc of 65536 bytes, of 12345 that are free: some error "
                               "(CUDA error 2)");
    fake_cuda.absent = "cuMemGetInfo_v2";
    struct tk_kind_device *other = get(1);
    assert_int_equal(open_memory(other, 0, 100), TK_FAIL);
    unit_assert_says(why.text, "cuMemAlloc of 65536 bytes: some error");
    tk_kind_device_put(other);
    fake_cuda.failing = NULL;
    assert_int_equal(open_memory(device, 0, SIZE_MAX - 100), TK_FAIL);
    assert_false(is_argument);
    tk_kind_device_put(device);
}

/* The attributes of ranges came with CUDA 11. */
static void a_segment_lies_in_one_allocation_of_its_device(void **state)
{
    struct tk_kind_device *device = get(0);
    uintptr_t first = fake_cuda_allocate(4096, 0), second = fake_cuda_allocate(8192, 0),
              other = fake_cuda_allocate(4096, 1);
    uintptr_t host = fake_cuda_allocate(4096, 0), managed = fake_cuda_allocate(4096, 0);
    fake_cuda.at[3].type = 1;
    fake_cuda.at[4].is_managed = 1;
    for (int i = 0; i < 2; i++) {
        fake_cuda.no_ranges = i;
        assert_refused(device, first + 1, 4096,
                       "[0x40000001, +4096) is not in one allocation: it begins in [0x40000000, "
                       "+4096) and ends in [0x40001000, +8192)");
        assert_refused(device, second, 8193, "ends outside: 0x40003000 is memory of CUDA device 1");
        assert_refused(device, second, 100000, "is not memory of CUDA, or was freed");
        assert_refused(device, second, SIZE_MAX - 5, "the range wraps around");
        assert_refused(device, other, 1, "is memory of CUDA device 1, not of 0");
        assert_refused(device, host, 1, "is host memory or an array");
        assert_refused(device, managed, 1, "is managed memory");
        assert_refused(device, heap - 1, 1, "0x3fffffff is not memory of CUDA, or was freed");
        assert_int_equal(open_memory(device, second, 8192), TK_OK);
        tk_kind_memory_close(&memory);
    }
    tk_kind_device_put(device);
}

static void memory_freed_under_a_segment_is_seen(void **state)
{
    struct tk_kind_device *device = get(0);
    uintptr_t base = fake_cuda_allocate(4096, 0);
    assert_int_equal(open_memory(device, base, 4096), TK_OK);
    assert_true(tk_kind_memory_is_valid(&memory, &why));
    fake_cuda.allocations = 0;
    assert_false(tk_kind_memory_is_valid(&memory, &why));
    unit_assert_says(why.text, "is not memory of CUDA, or was freed");
    assert_int_equal(fake_cuda_allocate(4096, 0), base);
    assert_false(tk_kind_memory_is_valid(&memory, &why));
    unit_assert_says(why.text, "belongs to another allocation now");
    tk_kind_memory_close(&memory);
    tk_kind_device_put(device);
}

/* cuDevicePrimaryCtxReset() of the client */
static void a_context_that_was_destroyed_is_an_error_of_each_call(void **state)
{
    struct tk_kind_device *device = get(0);
    struct tk_kind_copy copy = {.to = heap, .from = 1, .nbytes = 1, .to_device = device};
    uint64_t offset;
    int fd;
    fake_cuda.failing = "cuCtxPushCurrent";
    fake_cuda.code = 709;
    assert_int_equal(open_memory(device, 0, 100), TK_FAIL);
    unit_assert_says(why.text, "CUDA error 709");
    assert_int_equal(device->class->copy(&copy, &why), TK_FAIL);
    assert_int_equal(device->class->export_dmabuf(device, heap, 1, &fd, &offset, &why), TK_FAIL);
    assert_false(device->class->pin_host(device, &copy, 1));
    fake_cuda.streams = 0; /* gone with the context */
    tk_kind_device_put(device);
}

/* ---- copies, other processes, HCAs */

static void run_copy(struct tk_kind_copy *copy, const char *by)
{
    const struct tk_kind_class *class = &tk_kind_cuda;
    fake_cuda.is_slow = true;
    assert_int_equal(class->copy(copy, &why), TK_OK);
    assert_unchanged();
    assert_string_equal(fake_cuda.copied.by, by);
    assert_int_equal(fake_cuda.copied.to, copy->to);
    assert_int_equal(fake_cuda.copied.from, copy->from);
    assert_int_equal(fake_cuda.copied.size, copy->nbytes);
    assert_int_equal(class->copy_test(copy, &why), TK_BUSY);
    fake_cuda.is_slow = false;
    assert_int_equal(class->copy_test(copy, &why), TK_OK);
    assert_unchanged();
}

static void copies_go_each_direction_and_share_an_event(void **state)
{
    struct tk_kind_device *a = get(0), *b = get(1);
    run_copy(&(struct tk_kind_copy){.to = 1, .from = 2, .nbytes = 3, .to_device = a}, "HtoD");
    run_copy(&(struct tk_kind_copy){.to = 1, .from = 2, .nbytes = 4, .from_device = a}, "DtoH");
    run_copy(&(struct tk_kind_copy){.to = 1, .from = 2, .nbytes = 5, a, a}, "DtoD");
    assert_int_equal(fake_cuda.events, 1);
    run_copy(&(struct tk_kind_copy){.to = 1, .from = 2, .nbytes = 5, b, a}, "Peer");
    tk_kind_device_put(a);
    tk_kind_device_put(b);
}

static void run_rows(struct tk_kind_device *to, struct tk_kind_device *from, const char *by)
{
    struct tk_kind_copy copy = {1000, 2000, 3, to, from, .rows = 4, .to_pitch = 7, .from_pitch = 5};
    bool is_whole = strcmp(by, "2D") == 0;
    fake_cuda.copied.calls = 0;
    assert_int_equal(tk_kind_cuda.copy(&copy, &why), TK_OK);
    assert_unchanged();
    assert_string_equal(fake_cuda.copied.by, by);
    assert_int_equal(fake_cuda.copied.calls, is_whole ? 1 : 4);
    assert_int_equal(fake_cuda.copied.to, is_whole ? 1000 : 1000 + 3 * 7);
    assert_int_equal(fake_cuda.copied.from, is_whole ? 2000 : 2000 + 3 * 5);
    assert_int_equal(fake_cuda.copied.size, 3);
    assert_int_equal(tk_kind_cuda.copy_test(&copy, &why), TK_OK);
    if (!is_whole)
        return;
    assert_int_equal(fake_cuda.copied.rows, 4);
    assert_int_equal(fake_cuda.copied.to_pitch, 7);
    assert_int_equal(fake_cuda.copied.from_pitch, 5);
}

static void rows_are_one_copy_where_the_driver_can(void **state)
{
    struct tk_kind_device *a = get(0), *b = get(1);
    run_rows(a, NULL, "2D");
    run_rows(NULL, a, "2D");
    run_rows(a, a, "2D");
    run_rows(b, a, "Peer");
    fake_cuda.failing = "cuMemcpy2DAsync"; /* a pitch that it does not like */
    fake_cuda.code = TK_CU_INVALID_VALUE;
    run_rows(a, a, "DtoD");
    assert_int_equal(fake_cuda.events, 2);
    tk_kind_device_put(a);
    tk_kind_device_put(b);
    fake_cuda.absent = "cuMemcpy2DAsync_v2";
    a = get(0);
    run_rows(a, NULL, "HtoD");
    run_rows(NULL, a, "DtoH");
    tk_kind_device_put(a);
}

static void a_copy_that_fails_is_not_in_flight(void **state)
{
    static const char *const calls[] = {"cuEventCreate", "cuMemcpy", "cuEventRecord"};
    struct tk_kind_device *device = get(0);
    struct tk_kind_copy copy = {.to = heap, .from = 1, .nbytes = 1, .to_device = device};
    fake_cuda.code = 700;
    for (int i = 0; i < 3; i++) {
        fake_cuda.failing = calls[i];
        assert_int_equal(device->class->copy(&copy, &why), TK_FAIL);
        unit_assert_says(why.text, "CUDA error 700");
        assert_unchanged();
    }
    assert_string_equal(fake_cuda.copied.by, "nothing any more");
    fake_cuda.failing = "cuEventQuery";
    assert_int_equal(device->class->copy(&copy, &why), TK_OK);
    assert_int_equal(device->class->copy_test(&copy, &why), TK_FAIL);
    assert_int_equal(fake_cuda.events, 1);
    tk_kind_device_put(device);
}

static void a_dma_buf_covers_whole_pages_and_tells_the_offset(void **state)
{
    struct tk_kind_device *device = get(0);
    int fd;
    uint64_t offset;
    assert_int_equal(
        device->class->export_dmabuf(device, heap + 4096 + 17, 100, &fd, &offset, &why), TK_OK);
    assert_unchanged();
    assert_int_equal(offset, (4096 + 17) % tk_page_size());
    close(fd);
    fake_cuda.failing = "cuMemGetHandleForAddressRange";
    fake_cuda.code = 801;
    assert_int_equal(device->class->export_dmabuf(device, heap, 1, &fd, &offset, &why), TK_FAIL);
    assert_unchanged();
    assert_int_equal(fd, -1);
    tk_kind_device_put(device);
}

static void handles_open_elsewhere_and_close(void **state)
{
    struct tk_kind_device *device = get(0);
    uintptr_t base = fake_cuda_allocate(8192, 0), mapped;
    assert_int_equal(open_memory(device, base + 64, 100), TK_OK);
    assert_int_equal(memory.ipc.offset, 64);
    assert_int_equal(device->class->ipc_open(device, &memory.ipc, &mapped, &why), TK_OK);
    assert_int_equal(mapped, base + 0x100000000);
    device->class->ipc_close(device, mapped);
    assert_unchanged();
    tk_kind_memory_close(&memory);
    fake_cuda.failing = "cuIpcGetMemHandle";
    fake_cuda.code = 801;
    assert_int_equal(open_memory(device, base + 64, 100), TK_OK);
    assert_false(memory.has_ipc);
    tk_kind_memory_close(&memory);
    tk_kind_device_put(device);
}

static void host_memory_is_pinned_if_the_driver_can(void **state)
{
    struct tk_kind_device *device = get(0);
    assert_true(device->class->pin_host(device, &memory, 64));
    assert_unchanged();
    device->class->unpin_host(device, &memory);
    assert_unchanged();
    fake_cuda.failing = "cuMemHostRegister";
    fake_cuda.code = 801;
    assert_false(device->class->pin_host(device, &memory, 64));
    assert_unchanged();
    tk_kind_device_put(device);
}

static void only_the_three_classes_of_devices_exist(void **state)
{
    assert_ptr_equal(tk_kind_class_of(TK_KIND_CUDA_UVA), &tk_kind_cuda);
    assert_ptr_equal(tk_kind_class_of(TK_KIND_HIP), tk_has_kind_hip ? &tk_kind_hip : NULL);
    assert_ptr_equal(tk_kind_class_of(TK_KIND_ZE), tk_has_kind_ze ? &tk_kind_ze : NULL);
    assert_null(tk_kind_class_of(TK_KIND_HOST));
    assert_null(tk_kind_class_of(TK_KIND_NUMBERS));
    assert_null(tk_kind_class_of(-1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(what_is_missing_is_named),
    TEST(a_device_that_cannot_be_opened_leaves_nothing),
    TEST(a_device_says_what_it_is),
    TEST(devices_are_listed),
    TEST(writes_are_flushed_unless_the_device_orders_them),
    TEST(a_flush_is_made_where_the_driver_has_one_for_the_host),
    TEST(old_drivers_lack_dma_bufs_and_ipc),
    TEST(a_device_is_opened_once_and_closed_with_its_last_use),
    TEST(memory_of_the_library_goes_with_the_segment),
    TEST(a_kind_may_go_before_its_segments),
    TEST(each_allocation_has_a_serial_number),
    TEST(memory_of_the_client_stays_the_clients),
    TEST(memory_that_lacks_is_a_matter_of_resources),
    TEST(a_segment_lies_in_one_allocation_of_its_device),
    TEST(memory_freed_under_a_segment_is_seen),
    TEST(a_context_that_was_destroyed_is_an_error_of_each_call),
    TEST(copies_go_each_direction_and_share_an_event),
    TEST(rows_are_one_copy_where_the_driver_can),
    TEST(a_copy_that_fails_is_not_in_flight),
    TEST(a_dma_buf_covers_whole_pages_and_tells_the_offset),
    TEST(handles_open_elsewhere_and_close),
    TEST(host_memory_is_pinned_if_the_driver_can),
    TEST(only_the_three_classes_of_devices_exist),
};

UNIT_MAIN(tests)
