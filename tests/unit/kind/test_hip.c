/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Class HIP over a fake runtime with two devices. Each call must leave the thread's current device
 * unchanged. test_cuda.c tests the code that classes share. */
#include "config.h"

#include <fcntl.h>
#include <unistd.h>

#include "kind/hip_api.h"
#include "kind/kind.h"
#include "kind/library.h"
#include "unit.h"

#define DECLARE(member, symbol, is_optional, parameters)                                           \
    static tk_hip_error fake_##member parameters;
TK_FUNCTIONS_OF_HIP(DECLARE)

enum { heap = 0x50000000, heap_size = 0x100000, callers_device = 1 };

static struct {
    int file; /* index of the library file that exists; -1: no file exists */
    bool has_hsa;
    const char *failing; /* this call fails with error 2 */
    int current, streams, events, opened, pinned, allocated;
    int type, is_managed, holder; /* of all memory */
    bool is_slow;
    int copied_as; /* hipMemcpyKind; 9: between devices */
    unsigned ipc_flags;
    int version, capture_mode;
    tk_hip_error last_error; /* kept until it is read, as by ROCm 7 */
} runtime;

static tk_hip_error fake_get_last_error(void)
{
    tk_hip_error error = runtime.last_error;
    runtime.last_error = TK_HIP_SUCCESS;
    return error;
}

static tk_hip_error fails(tk_hip_error error)
{
    runtime.last_error = error;
    return error;
}

static int fake_hsa_export(const void *address, size_t size, int *fd, uint64_t *offset)
{
    (void)size;
    if (runtime.failing && strcmp(runtime.failing, "export") == 0)
        return 0x1000;
    *fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *offset = (uintptr_t)address - heap;
    return 0;
}

static const char *fake_error_string(tk_hip_error error)
{
    return error == 2 ? "out of memory" : "another error";
}

int tk_kind_library_load(const char *const *files, const struct tk_kind_symbol *symbols,
                         size_t count, struct tk_kind_why *why)
{
#define KNOW(member, symbol, is_optional, parameters) {#symbol, (void *)fake_##member},
    static const struct {
        const char *name;
        void *function;
    } known[] = {TK_FUNCTIONS_OF_HIP(KNOW){"hipGetErrorString", (void *)fake_error_string}};
    if (strstr(files[0], "hsa")) {
        assert_string_equal(symbols[0].name, "hsa_amd_portable_export_dmabuf");
        *symbols[0].function = runtime.has_hsa ? (void *)fake_hsa_export : NULL;
        return 0;
    }
    assert_string_equal(files[0], "libamdhip64.so.7");
    assert_string_equal(files[1], "libamdhip64.so.6");
    assert_string_equal(files[2], "libamdhip64.so.5");
    assert_string_equal(files[3], "libamdhip64.so");
    assert_int_equal(count, sizeof(known) / sizeof(*known));
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(symbols[i].name, known[i].name);
        *symbols[i].function = known[i].function;
    }
    if (runtime.file < 0)
        tk_kind_why(why, "%s can't be loaded", files[0]);
    return runtime.file;
}

#define MAY_FAIL(name)                                                                             \
    do {                                                                                           \
        if (runtime.failing && strcmp(runtime.failing, name) == 0)                                 \
            return fails(TK_HIP_OUT_OF_MEMORY);                                                    \
    } while (0)
#define IS_RELAXED() assert_int_equal(runtime.capture_mode, TK_HIP_CAPTURE_RELAXED)
#define ON_DEVICE_0()                                                                              \
    do {                                                                                           \
        IS_RELAXED();                                                                              \
        assert_int_equal(runtime.current, 0);                                                      \
    } while (0)

static tk_hip_error fake_exchange_capture(int *mode)
{
    int old = runtime.capture_mode;
    runtime.capture_mode = *mode;
    *mode = old;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_init(unsigned flags)
{
    assert_int_equal(flags, 0);
    MAY_FAIL("init");
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_get_version(int *version)
{
    *version = runtime.version;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_get_device_count(int *count)
{
    *count = 2;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_get_device(int *device)
{
    MAY_FAIL("get_device");
    *device = runtime.current;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_set_device(int device)
{
    MAY_FAIL("set_device");
    runtime.current = device;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_device_get_name(char *name, int size, int device)
{
    snprintf(name, (size_t)size, "Instinct of paper %d", device);
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_device_get_uuid(tk_hip_uuid *uuid, int device)
{
    memset(uuid, 'A' + device, sizeof(*uuid));
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_device_get_pci(char *text, int size, int device)
{
    snprintf(text, (size_t)size, "0000:C%d:00.0", device);
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_mem_alloc(void **address, size_t size)
{
    (void)size;
    ON_DEVICE_0();
    MAY_FAIL("mem_alloc");
    runtime.allocated++;
    *address = (void *)heap;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_mem_get_info(size_t *free_bytes, size_t *total)
{
    ON_DEVICE_0();
    *free_bytes = 12345;
    *total = 99999;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_mem_free(void *address)
{
    IS_RELAXED();
    assert_ptr_equal(address, (void *)heap);
    runtime.allocated--;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_pointer_get_attributes(tk_hip_pointer *pointer, const void *address)
{
    if ((uintptr_t)address - heap >= heap_size)
        return fails(1);
    *pointer = (tk_hip_pointer){
        .type = runtime.type, .device = runtime.holder, .is_managed = runtime.is_managed};
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_mem_get_address_range(void **base, size_t *size, void *address)
{
    (void)address;
    *base = (void *)heap;
    *size = heap_size;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_stream_create(tk_hip_stream *stream, unsigned flags)
{
    ON_DEVICE_0();
    if (runtime.streams == 2)
        MAY_FAIL("stream_create");
    assert_int_equal(flags, TK_HIP_STREAM_NON_BLOCKING);
    *stream = (tk_hip_stream)(uintptr_t)++runtime.streams;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_stream_destroy(tk_hip_stream stream)
{
    IS_RELAXED();
    assert_non_null(stream);
    runtime.streams--;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_stream_synchronize(tk_hip_stream stream)
{
    assert_non_null(stream);
    runtime.copied_as = 0;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_event_create(tk_hip_event *event, unsigned flags)
{
    ON_DEVICE_0();
    MAY_FAIL("event_create");
    assert_int_equal(flags, TK_HIP_EVENT_DISABLE_TIMING);
    *event = (tk_hip_event)(uintptr_t)++runtime.events;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_event_destroy(tk_hip_event event)
{
    IS_RELAXED();
    assert_non_null(event);
    runtime.events--;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_event_record(tk_hip_event event, tk_hip_stream stream)
{
    assert_true(event && stream);
    MAY_FAIL("event_record");
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_event_query(tk_hip_event event)
{
    IS_RELAXED();
    assert_non_null(event);
    MAY_FAIL("event_query");
    return runtime.is_slow ? fails(TK_HIP_NOT_READY) : TK_HIP_SUCCESS;
}

static tk_hip_error fake_copy_async(void *to, const void *from, size_t size, int as,
                                    tk_hip_stream stream)
{
    (void)to, (void)from, (void)size;
    ON_DEVICE_0();
    assert_non_null(stream);
    MAY_FAIL("copy");
    runtime.copied_as = as;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_copy_between(void *to, int to_device, const void *from, int from_device,
                                      size_t size, tk_hip_stream stream)
{
    (void)to, (void)from, (void)size, (void)stream;
    ON_DEVICE_0();
    assert_int_equal(to_device, 0);
    assert_int_equal(from_device, 1);
    runtime.copied_as = 9;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                 size_t width, size_t height, int as, tk_hip_stream stream)
{
    ON_DEVICE_0();
    assert_true(to && from && stream);
    assert_int_equal(width, 3);
    assert_int_equal(height, 4);
    assert_int_equal(to_pitch, 7);
    assert_int_equal(from_pitch, 5);
    runtime.copied_as = 100 + as;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_ipc_get(tk_hip_ipc_handle *handle, void *address)
{
    ON_DEVICE_0();
    MAY_FAIL("ipc_get");
    memset(handle, 0, sizeof(*handle));
    memcpy(handle, &address, sizeof(address));
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_ipc_open(void **address, tk_hip_ipc_handle handle, unsigned flags)
{
    ON_DEVICE_0();
    MAY_FAIL("ipc_open");
    memcpy(address, &handle, sizeof(*address));
    runtime.ipc_flags = flags;
    runtime.opened++;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_ipc_close(void *address)
{
    assert_non_null(address);
    runtime.opened--;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_host_register(void *base, size_t size, unsigned flags)
{
    (void)base, (void)size;
    MAY_FAIL("host_register");
    assert_int_equal(flags, TK_HIP_HOST_REGISTER_PORTABLE);
    runtime.pinned++;
    return TK_HIP_SUCCESS;
}

static tk_hip_error fake_host_unregister(void *base)
{
    IS_RELAXED();
    (void)base;
    runtime.pinned--;
    return TK_HIP_SUCCESS;
}

/* ---- */

static struct tk_kind_why why;
static struct tk_kind_memory memory;
static bool is_argument;

/* ROCm 6; the caller's current device differs from the kinds' device. */
static int set_up(void **state)
{
    memset(&runtime, 0, sizeof(runtime));
    runtime.has_hsa = true;
    runtime.current = callers_device;
    runtime.type = TK_HIP_MEMORY_DEVICE_OF_6;
    return 0;
}

static int tear_down(void **state)
{
    return runtime.last_error || runtime.capture_mode || runtime.current != callers_device ||
           runtime.streams || runtime.events || runtime.opened || runtime.pinned ||
           runtime.allocated;
}

static struct tk_kind_device *get(int ordinal)
{
    const struct tk_kind_args args = {.gex_class = TK_KIND_HIP, .ordinal = ordinal};
    struct tk_kind_device *device = tk_kind_device_get(&args, &why);
    assert_int_equal(runtime.current, callers_device);
    return device;
}

static enum tk_status open_memory(struct tk_kind_device *device, uintptr_t address, size_t size)
{
    enum tk_status status = tk_kind_memory_open(&memory, device, address, size, &is_argument, &why);
    assert_int_equal(runtime.current, callers_device);
    return status;
}

static void assert_no_device(int ordinal, const char *cause)
{
    assert_null(get(ordinal));
    unit_assert_says(why.text, cause);
    assert_int_equal(runtime.streams, 0);
    assert_int_equal(runtime.last_error, TK_HIP_SUCCESS);
}

static void what_is_missing_is_named(void **state)
{
    runtime.file = -1;
    assert_no_device(0, "libamdhip64.so.7 can't be loaded");
    runtime.file = 0;
    assert_no_device(2, "there is no HIP device 2: this process sees 2 of them");
    runtime.failing = "init";
    assert_no_device(0, "hipInit: out of memory (HIP error 2)");
    runtime.failing = "get_device";
    assert_no_device(0, "hipGetDevice: ");
    runtime.failing = "set_device";
    assert_no_device(0, "hipSetDevice: ");
    runtime.failing = "stream_create";
    assert_no_device(0, "hipStreamCreateWithFlags: ");
}

static void devices_are_listed(void **state)
{
    struct tk_kind_args args[1];
    bool is_loaded = false;
    assert_int_equal(tk_kind_hip.list(args, 1, &is_loaded, &why), 1);
    assert_true(is_loaded);
    assert_int_equal(args[0].gex_class, TK_KIND_HIP);
    assert_int_equal(args[0].ordinal, 0);
    runtime.file = -1;
    assert_int_equal(tk_kind_hip.list(args, 1, &is_loaded, &why), -1);
    assert_false(is_loaded);
}

static void a_device_says_what_it_is(void **state)
{
    char text[160];
    struct tk_kind_device *device = get(0);
    assert_string_equal(tk_kind_device_text(device, text, sizeof(text)),
                        "HIP device 0 (Instinct of paper 0, PCI 0000:c0:00.0)");
    assert_int_equal(device->facts.uuid[15], 'A');
    assert_int_equal(device->class->total(device), 99999);
    assert_true(device->facts.has_dmabuf && device->facts.has_ipc && device->facts.needs_flush);
    tk_kind_device_put(device);
}

/* They number the types of memory and the flags of handles differently. */
static void all_versions_of_the_runtime_are_known(void **state)
{
    static const struct {
        int file, version;
        bool is_5;
    } cases[] = {
        {0, 0, false}, {1, 0, false}, {2, 0, true}, {3, 50221153, true}, {3, 60140000, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        bool is_5 = cases[i].is_5;
        uintptr_t mapped;
        runtime.file = cases[i].file;
        runtime.version = cases[i].version;
        struct tk_kind_device *device = get(0);
        runtime.type = is_5 ? 1 : 2;
        assert_int_equal(open_memory(device, heap, 64), TK_OK);
        assert_int_equal(device->class->ipc_open(device, &memory.ipc, &mapped, &why), TK_OK);
        assert_int_equal(runtime.current, callers_device);
        assert_int_equal(runtime.ipc_flags, is_5 ? 0 : 1);
        assert_int_equal(mapped, heap);
        device->class->ipc_close(device, mapped);
        tk_kind_memory_close(&memory);
        runtime.type = is_5 ? 0 : 1;
        assert_int_equal(open_memory(device, heap, 64), TK_FAIL);
        unit_assert_says(why.text, "is host memory");
        tk_kind_device_put(device);
    }
}

static void memory_of_other_kinds_is_refused(void **state)
{
    struct tk_kind_device *device = get(0);
    assert_int_equal(open_memory(device, heap - 1, 1), TK_FAIL);
    unit_assert_says(why.text, "is not memory of HIP, or was freed");
    runtime.holder = 1;
    assert_int_equal(open_memory(device, heap, 1), TK_FAIL);
    unit_assert_says(why.text, "is memory of HIP device 1, not of 0");
    runtime.holder = 0;
    runtime.is_managed = 1;
    assert_int_equal(open_memory(device, heap, 1), TK_FAIL);
    unit_assert_says(why.text, "is managed memory");
    runtime.is_managed = 0;
    assert_int_equal(open_memory(device, heap + 1, heap_size), TK_FAIL);
    unit_assert_says(why.text, "is not in one allocation");
    assert_true(is_argument);
    runtime.failing = "mem_alloc";
    assert_int_equal(open_memory(device, 0, 1), TK_FAIL);
    unit_assert_says(
        why.text, "hipMalloc of 65536 bytes, of 12345 that are free: out of memory (HIP error 2)");
    assert_false(is_argument);
    tk_kind_device_put(device);
}

static void memory_of_the_library_goes_with_the_segment(void **state)
{
    struct tk_kind_device *device = get(0);
    assert_int_equal(open_memory(device, 0, 1), TK_OK);
    tk_kind_device_put(device);
    assert_int_equal(runtime.allocated, 1);
    tk_kind_memory_close(&memory);
}

static void run_copy(struct tk_kind_copy *copy, int as)
{
    runtime.is_slow = true;
    assert_int_equal(tk_kind_hip.copy(copy, &why), TK_OK);
    assert_int_equal(runtime.current, callers_device);
    assert_int_equal(runtime.copied_as, as);
    assert_int_equal(tk_kind_hip.copy_test(copy, &why), TK_BUSY);
    assert_int_equal(runtime.last_error, TK_HIP_SUCCESS);
    runtime.is_slow = false;
    assert_int_equal(tk_kind_hip.copy_test(copy, &why), TK_OK);
    assert_int_equal(runtime.current, callers_device);
}

static void copies_go_each_direction(void **state)
{
    struct tk_kind_device *device = get(0), other = {.args = {.ordinal = 1}};
    struct {
        int ordinal;
    } own = {1};
    other.own = &own;
    run_copy(&(struct tk_kind_copy){.to = 1, .from = 2, .nbytes = 3, .to_device = device}, 1);
    run_copy(&(struct tk_kind_copy){.to = 1, .from = 2, .nbytes = 3, .from_device = device}, 2);
    run_copy(&(struct tk_kind_copy){1, 2, 3, device, device, 0, 0, 0, NULL}, 3);
    run_copy(&(struct tk_kind_copy){1, 2, 3, device, &other, 0, 0, 0, NULL}, 9);
    run_copy(&(struct tk_kind_copy){1, 2, 3, device, NULL, 4, 7, 5, NULL}, 101);
    run_copy(&(struct tk_kind_copy){1, 2, 3, NULL, device, 4, 7, 5, NULL}, 102);
    run_copy(&(struct tk_kind_copy){1, 2, 3, device, device, 4, 7, 5, NULL}, 103);
    run_copy(&(struct tk_kind_copy){1, 2, 3, device, &other, 4, 7, 5, NULL}, 9);
    assert_int_equal(runtime.events, 1);
    tk_kind_device_put(device);
}

static void a_copy_that_fails_is_not_in_flight(void **state)
{
    static const char *const calls[] = {"event_create", "copy", "event_record", "set_device"};
    struct tk_kind_device *device = get(0);
    struct tk_kind_copy copy = {.to = heap, .from = 1, .nbytes = 1, .to_device = device};
    for (int i = 0; i < 4; i++) {
        runtime.failing = calls[i];
        assert_int_equal(device->class->copy(&copy, &why), TK_FAIL);
        assert_int_equal(runtime.copied_as, 0);
        runtime.failing = NULL;
        assert_int_equal(runtime.current, callers_device);
    }
    assert_int_equal(device->class->copy(&copy, &why), TK_OK);
    runtime.failing = "event_query";
    assert_int_equal(device->class->copy_test(&copy, &why), TK_FAIL);
    assert_int_equal(runtime.events, 1);
    runtime.failing = NULL;
    tk_kind_device_put(device);
}

static void dma_bufs_are_those_of_the_hsa_runtime(void **state)
{
    struct tk_kind_device *device = get(0);
    int fd;
    uint64_t offset;
    assert_int_equal(device->class->export_dmabuf(device, heap + 5, 9, &fd, &offset, &why), TK_OK);
    assert_int_equal(offset, 5);
    close(fd);
    runtime.failing = "export";
    assert_int_equal(device->class->export_dmabuf(device, heap + 5, 9, &fd, &offset, &why),
                     TK_FAIL);
    unit_assert_says(why.text, "HSA status 0x1000");
    tk_kind_device_put(device);
    runtime.failing = NULL;
    runtime.has_hsa = false;
    device = get(0);
    assert_false(device->facts.has_dmabuf);
    assert_int_equal(device->class->export_dmabuf(device, heap + 5, 9, &fd, &offset, &why),
                     TK_FAIL);
    unit_assert_says(why.text, "ROCm 5.3");
    tk_kind_device_put(device);
}

static void host_memory_is_pinned_if_the_runtime_can(void **state)
{
    struct tk_kind_device *device = get(0);
    assert_true(device->class->pin_host(device, &memory, 64));
    device->class->unpin_host(device, &memory);
    runtime.failing = "host_register";
    assert_false(device->class->pin_host(device, &memory, 64));
    assert_int_equal(runtime.current, callers_device);
    tk_kind_device_put(device);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(what_is_missing_is_named),
    TEST(a_device_says_what_it_is),
    TEST(devices_are_listed),
    TEST(all_versions_of_the_runtime_are_known),
    TEST(memory_of_other_kinds_is_refused),
    TEST(memory_of_the_library_goes_with_the_segment),
    TEST(copies_go_each_direction),
    TEST(a_copy_that_fails_is_not_in_flight),
    TEST(dma_bufs_are_those_of_the_hsa_runtime),
    TEST(host_memory_is_pinned_if_the_runtime_can),
};

UNIT_MAIN(tests)
