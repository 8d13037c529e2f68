/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Class ZE over this test's fake loader. test_cuda.c tests the code that classes share. */
#include "config.h"

#include <fcntl.h>
#include <unistd.h>

#include "kind/kind.h"
#include "kind/library.h"
#include "kind/ze_api.h"
#include "unit.h"

#define DECLARE(member, symbol, is_optional, parameters)                                           \
    static tk_ze_result fake_##member parameters;
TK_FUNCTIONS_OF_ZE(DECLARE)

enum { heap = 0x60000000, heap_size = 0x100000, unsupported = 0x78000003 };

static char a_device, a_context, another_device, a_driver, another_driver;

static struct {
    bool is_missing, cant_export, is_slow;
    const char *failing;
    int lists, pools, events, allocated, resets;
    uint32_t type;
    uint64_t id;
    const void *holder;
    int fd; /* of the driver's own */
    const void *used_list;
} loader;

int tk_kind_library_load(const char *const *files, const struct tk_kind_symbol *symbols,
                         size_t count, struct tk_kind_why *why)
{
#define KNOW(member, symbol, is_optional, parameters) {#symbol, (void *)fake_##member},
    static const struct {
        const char *name;
        void *function;
    } known[] = {TK_FUNCTIONS_OF_ZE(KNOW)};
    assert_string_equal(files[0], "libze_loader.so.1");
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(symbols[i].name, known[i].name);
        *symbols[i].function = known[i].function;
    }
    if (loader.is_missing)
        tk_kind_why(why, "%s can't be loaded", files[0]);
    return loader.is_missing ? -1 : 0;
}

#define MAY_FAIL(name)                                                                             \
    do {                                                                                           \
        if (loader.failing && strcmp(loader.failing, name) == 0)                                   \
            return unsupported;                                                                    \
    } while (0)

static tk_ze_result fake_init(uint32_t flags)
{
    assert_int_equal(flags, 0);
    MAY_FAIL("init");
    return TK_ZE_SUCCESS;
}

/* Two drivers with two devices each. */
static tk_ze_result fake_driver_get(uint32_t *count, void **drivers)
{
    MAY_FAIL("driver_get");
    assert_true(*count >= 2);
    *count = 2;
    drivers[0] = &a_driver;
    drivers[1] = &another_driver;
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_device_get(void *driver, uint32_t *count, void **devices)
{
    if (driver == &another_driver)
        MAY_FAIL("device_get");
    *count = 2;
    devices[0] = driver == &a_driver ? &a_device : &another_device;
    devices[1] = &a_context;
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_context_create(void *driver, const tk_ze_context_desc *desc,
                                        void **context)
{
    assert_int_equal(desc->stype, TK_ZE_CONTEXT_DESC);
    assert_null(desc->next);
    *context = driver;
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_device_get_properties(void *device, tk_ze_device_properties *properties)
{
    assert_ptr_equal(device, &a_device);
    assert_int_equal(properties->stype, TK_ZE_DEVICE_PROPERTIES);
    memset(properties->uuid, 'z', sizeof(properties->uuid));
    memset(properties->name, 'x', sizeof(properties->name) - 1);
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_device_get_pci(void *device, tk_ze_pci_properties *properties)
{
    assert_ptr_equal(device, &a_device);
    assert_int_equal(properties->stype, TK_ZE_PCI_EXT_PROPERTIES);
    properties->bus = 0x3a;
    properties->function = 1;
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_mem_alloc(void *context, const tk_ze_alloc_desc *desc, size_t size,
                                   size_t alignment, void *device, void **address)
{
    assert_true(context == &a_context && device == &a_device);
    assert_int_equal(desc->stype, TK_ZE_DEVICE_MEM_ALLOC_DESC);
    assert_int_equal(desc->ordinal, 5);
    assert_int_equal(size % alignment, 0);
    MAY_FAIL("mem_alloc");
    if (desc->next && loader.cant_export)
        return unsupported;
    loader.allocated++;
    *address = (void *)heap;
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_mem_free(void *context, void *address)
{
    assert_ptr_equal(context, &a_context);
    assert_ptr_equal(address, (void *)heap);
    loader.allocated--;
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_mem_get_properties(void *context, const void *address,
                                            tk_ze_alloc_properties *properties, void **device)
{
    tk_ze_export_fd *exported = (tk_ze_export_fd *)properties->next;
    assert_ptr_equal(context, &a_context);
    assert_int_equal(properties->stype, TK_ZE_MEMORY_ALLOCATION_PROPERTIES);
    properties->type = (uintptr_t)address - heap < heap_size ? loader.type : 0;
    properties->id = loader.id;
    *device = (void *)loader.holder;
    if (exported) {
        MAY_FAIL("export");
        assert_int_equal(exported->stype, TK_ZE_EXTERNAL_MEMORY_EXPORT_FD);
        exported->fd = loader.fd;
    }
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_mem_get_address_range(void *context, const void *address, void **base,
                                               size_t *size)
{
    assert_true(context == &a_context && address);
    *base = (void *)heap;
    *size = heap_size;
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_list_create(void *context, void *device, const tk_ze_queue_desc *desc,
                                     void **list)
{
    assert_true(context == &a_context && device == &a_device);
    assert_int_equal(desc->mode, TK_ZE_QUEUE_ASYNCHRONOUS);
    if (loader.lists == 1)
        MAY_FAIL("list_create");
    *list = (void *)(uintptr_t)++loader.lists;
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_list_destroy(void *list)
{
    assert_non_null(list);
    loader.lists--;
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_append_copy(void *list, void *to, const void *from, size_t size,
                                     void *event, uint32_t waits, void **wait_for)
{
    assert_true(to && from && size && event && waits == 0 && !wait_for);
    MAY_FAIL("append_copy");
    loader.used_list = list;
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_append_region(void *list, void *to, const tk_ze_region *to_region,
                                       uint32_t to_pitch, uint32_t to_slice_pitch, const void *from,
                                       const tk_ze_region *from_region, uint32_t from_pitch,
                                       uint32_t from_slice_pitch, void *event, uint32_t waits,
                                       void **wait_for)
{
    static const tk_ze_region rows = {.width = 3, .height = 4};
    assert_true(to && from && event && waits == 0 && !wait_for);
    assert_memory_equal(to_region, &rows, sizeof(rows));
    assert_memory_equal(from_region, &rows, sizeof(rows));
    assert_int_equal(to_pitch, 7);
    assert_int_equal(from_pitch, 5);
    assert_int_equal(to_slice_pitch + from_slice_pitch, 0);
    MAY_FAIL("append_region");
    loader.used_list = list;
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_event_pool_create(void *context, const tk_ze_event_pool_desc *desc,
                                           uint32_t count, void **device, void **pool)
{
    assert_true(context == &a_context && count == 1 && *device == &a_device);
    assert_int_equal(desc->flags, TK_ZE_EVENT_POOL_HOST_VISIBLE);
    MAY_FAIL("event_pool_create");
    loader.pools++;
    *pool = &loader;
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_event_pool_destroy(void *pool)
{
    assert_ptr_equal(pool, &loader);
    assert_int_equal(loader.events, 0);
    loader.pools--;
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_event_create(void *pool, const tk_ze_event_desc *desc, void **event)
{
    assert_ptr_equal(pool, &loader);
    assert_int_equal(desc->index, loader.events);
    if (loader.events == 9)
        MAY_FAIL("event_create");
    *event = (void *)(uintptr_t)++loader.events;
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_event_destroy(void *event)
{
    assert_non_null(event);
    loader.events--;
    return TK_ZE_SUCCESS;
}

static tk_ze_result fake_event_query(void *event)
{
    assert_non_null(event);
    MAY_FAIL("event_query");
    return loader.is_slow ? TK_ZE_NOT_READY : TK_ZE_SUCCESS;
}

static tk_ze_result fake_event_reset(void *event)
{
    assert_non_null(event);
    loader.resets++;
    return TK_ZE_SUCCESS;
}

/* ---- */

static struct tk_kind_why why;
static struct tk_kind_memory memory;
static bool is_argument;

static int set_up(void **state)
{
    memset(&loader, 0, sizeof(loader));
    loader.type = TK_ZE_MEMORY_TYPE_DEVICE;
    loader.holder = &a_device;
    loader.id = 1;
    loader.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return loader.fd < 0;
}

static int tear_down(void **state)
{
    close(loader.fd);
    return loader.lists || loader.pools || loader.events || loader.allocated;
}

static struct tk_kind_device *get(void)
{
    const struct tk_kind_args args = {.gex_class = TK_KIND_ZE,
                                      .ordinal = -1,
                                      .ze_device = &a_device,
                                      .ze_context = &a_context,
                                      .ze_memory_ordinal = 5};
    return tk_kind_device_get(&args, &why);
}

static void what_is_missing_is_named_and_leaves_nothing(void **state)
{
    static const struct {
        const char *call, *cause;
    } cases[] = {{"init", "zeInit: ze_result_t 0x78000003"},
                 {"list_create", "zeCommandListCreateImmediate: "},
                 {"event_pool_create", "zeEventCreate: "},
                 {"event_create", "zeEventCreate: "}};
    loader.is_missing = true;
    assert_null(get());
    unit_assert_says(why.text, "libze_loader.so.1 can't be loaded");
    loader.is_missing = false;
    for (int i = 0; i < 4; i++) {
        loader.failing = cases[i].call;
        assert_null(get());
        unit_assert_says(why.text, cases[i].cause);
        assert_int_equal(loader.lists + loader.pools + loader.events, 0);
    }
}

static void devices_of_all_drivers_are_listed(void **state)
{
    struct tk_kind_args args[4];
    bool is_loaded = false;
    assert_int_equal(tk_kind_ze.list(args, 4, &is_loaded, &why), 4);
    assert_true(is_loaded);
    assert_int_equal(args[0].gex_class, TK_KIND_ZE);
    assert_int_equal(args[0].ordinal, -1);
    assert_ptr_equal(args[0].ze_device, &a_device);
    assert_ptr_equal(args[1].ze_context, &a_driver);
    assert_ptr_equal(args[2].ze_device, &another_device);
    assert_ptr_equal(args[3].ze_context, &another_driver);
    assert_int_equal(tk_kind_ze.list(args, 3, &is_loaded, &why), 3);
    loader.failing = "device_get";
    assert_int_equal(tk_kind_ze.list(args, 4, &is_loaded, &why), 2);
    loader.failing = "driver_get";
    assert_int_equal(tk_kind_ze.list(args, 4, &is_loaded, &why), -1);
    assert_true(is_loaded);
    unit_assert_says(why.text, "zeDriverGet: ");
    loader.is_missing = true;
    assert_int_equal(tk_kind_ze.list(args, 4, &is_loaded, &why), -1);
    assert_false(is_loaded);
}

static void a_device_says_what_it_is(void **state)
{
    char text[160];
    struct tk_kind_device *device = get();
    unit_assert_says(tk_kind_device_text(device, text, sizeof(text)), "ZE device (xxxx");
    unit_assert_says(text, "PCI 0000:3a:00.1)");
    assert_int_equal(device->facts.uuid[0], 'z');
    assert_true(device->facts.needs_flush && !device->facts.has_ipc);
    assert_ptr_equal(get(), device);
    tk_kind_device_put(device);
    tk_kind_device_put(device);
}

static void memory_is_exported_if_the_driver_can(void **state)
{
    struct tk_kind_device *device = get();
    for (int i = 0; i < 2; i++) {
        loader.cant_export = i;
        assert_int_equal(tk_kind_memory_open(&memory, device, 0, 1, &is_argument, &why), TK_OK);
        assert_false(memory.has_ipc);
        tk_kind_memory_close(&memory);
    }
    loader.failing = "mem_alloc";
    assert_int_equal(tk_kind_memory_open(&memory, device, 0, 1, &is_argument, &why), TK_FAIL);
    assert_false(is_argument);
    unit_assert_says(why.text, "zeMemAllocDevice: ze_result_t 0x78000003");
    tk_kind_device_put(device);
}

static void memory_of_other_kinds_is_refused(void **state)
{
    struct tk_kind_device *device = get();
    assert_int_equal(tk_kind_memory_open(&memory, device, 64, 1, &is_argument, &why), TK_FAIL);
    unit_assert_says(why.text, "is not memory of this device (memory type 0)");
    loader.holder = &another_device;
    assert_int_equal(tk_kind_memory_open(&memory, device, heap, 1, &is_argument, &why), TK_FAIL);
    assert_true(is_argument);
    loader.holder = &a_device;
    assert_int_equal(tk_kind_memory_open(&memory, device, heap, 1, &is_argument, &why), TK_OK);
    assert_true(tk_kind_memory_is_valid(&memory, &why));
    loader.id = 2;
    assert_false(tk_kind_memory_is_valid(&memory, &why));
    tk_kind_memory_close(&memory);
    tk_kind_device_put(device);
}

static void events_are_used_again_and_may_run_out(void **state)
{
    struct tk_kind_device *device = get();
    struct tk_kind_copy copies[300];
    int started = 0;
    for (;; started++) {
        copies[started] =
            (struct tk_kind_copy){.to = heap, .from = 1, .nbytes = 1, .to_device = device};
        enum tk_status status = device->class->copy(&copies[started], &why);
        if (status == TK_BUSY)
            break;
        assert_int_equal(status, TK_OK);
    }
    assert_int_equal(started, 256);
    loader.is_slow = true;
    assert_int_equal(device->class->copy_test(&copies[0], &why), TK_BUSY);
    loader.is_slow = false;
    for (int i = 0; i < started; i++)
        assert_int_equal(device->class->copy_test(&copies[i], &why), TK_OK);
    assert_int_equal(loader.resets, started);
    loader.failing = "append_copy";
    assert_int_equal(device->class->copy(&copies[0], &why), TK_FAIL);
    loader.failing = "event_query";
    assert_int_equal(device->class->copy(&copies[0], &why), TK_OK);
    assert_int_equal(device->class->copy_test(&copies[0], &why), TK_FAIL);
    tk_kind_device_put(device);
}

static void rows_are_one_region(void **state)
{
    struct tk_kind_device *device = get();
    struct tk_kind_copy copy = {heap,           1, 3, device, NULL, .rows = 4, .to_pitch = 7,
                                .from_pitch = 5};
    loader.used_list = NULL;
    assert_int_equal(device->class->copy(&copy, &why), TK_OK);
    assert_non_null(loader.used_list);
    assert_int_equal(device->class->copy_test(&copy, &why), TK_OK);
    loader.failing = "append_region";
    assert_int_equal(device->class->copy(&copy, &why), TK_FAIL);
    tk_kind_device_put(device);
}

/* The driver closes its own descriptor. */
static void a_dma_buf_is_a_descriptor_of_its_own(void **state)
{
    struct tk_kind_device *device = get();
    int fd;
    uint64_t offset;
    assert_int_equal(device->class->export_dmabuf(device, heap + 5, 9, &fd, &offset, &why), TK_OK);
    assert_int_equal(offset, 5);
    assert_int_not_equal(fd, loader.fd);
    assert_int_equal(close(fd), 0);
    loader.failing = "export";
    assert_int_equal(device->class->export_dmabuf(device, heap + 5, 9, &fd, &offset, &why),
                     TK_FAIL);
    loader.failing = NULL;
    int own = loader.fd;
    loader.fd = -1;
    assert_int_equal(device->class->export_dmabuf(device, heap + 5, 9, &fd, &offset, &why),
                     TK_FAIL);
    unit_assert_says(why.text, "exports no dma-buf of this memory");
    loader.fd = own;
    tk_kind_device_put(device);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(what_is_missing_is_named_and_leaves_nothing),
    TEST(a_device_says_what_it_is),
    TEST(devices_of_all_drivers_are_listed),
    TEST(memory_is_exported_if_the_driver_can),
    TEST(memory_of_other_kinds_is_refused),
    TEST(events_are_used_again_and_may_run_out),
    TEST(a_dma_buf_is_a_descriptor_of_its_own),
    TEST(rows_are_one_region),
};

UNIT_MAIN(tests)
