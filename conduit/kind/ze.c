/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Class ZE over Level Zero. The client gives the device and its context. Each device has one
 * immediate command list for each direction of copies and a pool of events, all made when the
 * device is opened. Level Zero has no state of a thread. A command list is for one thread at a
 * time: it has a lock. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "kind/events.h"
#include "kind/kind.h"
#include "kind/library.h"
#include "kind/ze_api.h"

#define MEMBER(member, symbol, is_optional, parameters) tk_ze_result(*member) parameters;
static struct {
    TK_FUNCTIONS_OF_ZE(MEMBER)
} ze;

#define SYMBOL(member, symbol, is_optional, parameters) {#symbol, (void **)&ze.member, is_optional},
static const struct tk_kind_symbol ze_symbols[] = {TK_FUNCTIONS_OF_ZE(SYMBOL)};

enum ze_list { ZE_IN, ZE_OUT, ZE_INSIDE, ze_lists };
enum { ze_events_max = 256, ze_listed_max = 64 };

struct ze_device {
    void *device, *context;
    void *lists[ze_lists];
    tk_lock_t lists_lock;
    void *pool;
    struct tk_kind_events events;
};

static enum tk_status ze_failed(struct tk_kind_why *why, const char *call, tk_ze_result result)
{
    return tk_kind_why(why, "%s: ze_result_t 0x%x", call, result);
}

/* ---- open and close ---- */

static int ze_load(struct tk_kind_why *why)
{
    static const char *const files[] = {"libze_loader.so.1", NULL};
    size_t count = sizeof(ze_symbols) / sizeof(*ze_symbols);
    return tk_kind_library_load(files, ze_symbols, count, why);
}

static enum tk_status ze_start(struct tk_kind_why *why)
{
    tk_ze_result result = ze.init(0);
    return result == TK_ZE_SUCCESS ? TK_OK : ze_failed(why, "zeInit", result);
}

/* Adds the driver's devices behind the first `count`. */
static int ze_list_driver(void *driver, struct tk_kind_args *args, int count, int max)
{
    const tk_ze_context_desc desc = {.stype = TK_ZE_CONTEXT_DESC};
    void *devices[ze_listed_max], *context;
    uint32_t found = ze_listed_max;
    if (ze.device_get(driver, &found, devices) != TK_ZE_SUCCESS || found == 0 ||
        ze.context_create(driver, &desc, &context) != TK_ZE_SUCCESS)
        return count;
    for (uint32_t i = 0; i < found && count < max; i++)
        args[count++] = (struct tk_kind_args){
            .gex_class = TK_KIND_ZE, .ordinal = -1, .ze_device = devices[i], .ze_context = context};
    return count;
}

static int ze_list(struct tk_kind_args *args, int max, bool *is_loaded, struct tk_kind_why *why)
{
    void *drivers[ze_listed_max];
    uint32_t found = ze_listed_max;
    int count = 0;
    int file = ze_load(why);
    *is_loaded = file != TK_KIND_LIBRARY_ABSENT;
    if (file < 0 || ze_start(why) != TK_OK)
        return -1;
    if (!ze.driver_get || !ze.device_get || !ze.context_create)
        return tk_kind_why(why, "libze_loader.so.1 has no zeDriverGet()"), -1;
    tk_ze_result result = ze.driver_get(&found, drivers);
    if (result != TK_ZE_SUCCESS)
        return ze_failed(why, "zeDriverGet", result), -1;
    for (uint32_t i = 0; i < found; i++)
        count = ze_list_driver(drivers[i], args, count, max);
    return count;
}

static void ze_facts(void *device, struct tk_kind_facts *facts)
{
    tk_ze_device_properties properties = {.stype = TK_ZE_DEVICE_PROPERTIES};
    tk_ze_pci_properties pci = {.stype = TK_ZE_PCI_EXT_PROPERTIES};
    snprintf(facts->name, sizeof(facts->name), "unknown");
    if (ze.device_get_properties(device, &properties) == TK_ZE_SUCCESS) {
        snprintf(facts->name, sizeof(facts->name), "%.60s", properties.name);
        memcpy(facts->uuid, properties.uuid, sizeof(facts->uuid));
    }
    if (ze.device_get_pci && ze.device_get_pci(device, &pci) == TK_ZE_SUCCESS)
        snprintf(facts->pci, sizeof(facts->pci), "%04x:%02x:%02x.%x", pci.domain & 0xffff,
                 pci.bus & 0xff, pci.device & 0xff, pci.function & 0xf);
    facts->has_dmabuf = true;
    facts->has_ipc = false;
    /* The specification promises no order of remote writes. */
    facts->needs_flush = true;
}

static void ze_drop(struct ze_device *own)
{
    struct tk_kind_event *event;
    while ((event = tk_kind_event_take(&own->events)) != NULL) {
        ze.event_destroy(event->handle);
        free(event);
    }
    if (own->pool)
        ze.event_pool_destroy(own->pool);
    for (int i = 0; i < ze_lists; i++)
        if (own->lists[i])
            ze.list_destroy(own->lists[i]);
}

static tk_ze_result ze_make_events(struct ze_device *own)
{
    const tk_ze_event_pool_desc desc = {.stype = TK_ZE_EVENT_POOL_DESC,
                                        .flags = TK_ZE_EVENT_POOL_HOST_VISIBLE,
                                        .count = ze_events_max};
    tk_ze_result result = ze.event_pool_create(own->context, &desc, 1, &own->device, &own->pool);
    for (uint32_t i = 0; i < ze_events_max && result == TK_ZE_SUCCESS; i++) {
        const tk_ze_event_desc one = {.stype = TK_ZE_EVENT_DESC,
                                      .index = i,
                                      .signal = TK_ZE_EVENT_SCOPE_HOST,
                                      .wait = TK_ZE_EVENT_SCOPE_HOST};
        void *handle = NULL;
        result = ze.event_create(own->pool, &one, &handle);
        if (result == TK_ZE_SUCCESS)
            tk_kind_event_give(&own->events, tk_kind_event_new(handle));
    }
    return result;
}

/* Queue group 0 can copy on every device; a copy-only group may not exist. */
static enum tk_status ze_make(struct ze_device *own, struct tk_kind_why *why)
{
    const tk_ze_queue_desc desc = {.stype = TK_ZE_COMMAND_QUEUE_DESC,
                                   .mode = TK_ZE_QUEUE_ASYNCHRONOUS};
    tk_ze_result result = TK_ZE_SUCCESS;
    for (int i = 0; i < ze_lists && result == TK_ZE_SUCCESS; i++)
        result = ze.list_create(own->context, own->device, &desc, &own->lists[i]);
    const char *call = "zeCommandListCreateImmediate";
    if (result == TK_ZE_SUCCESS) {
        call = "zeEventCreate";
        result = ze_make_events(own);
    }
    if (result == TK_ZE_SUCCESS)
        return TK_OK;
    ze_drop(own);
    return ze_failed(why, call, result);
}

static enum tk_status ze_open(struct tk_kind_device *device, struct tk_kind_why *why)
{
    struct ze_device own = {.device = device->args.ze_device,
                            .context = device->args.ze_context,
                            .lists_lock = TK_LOCK_INIT,
                            .events = {.lock = TK_LOCK_INIT}};
    if (ze_load(why) < 0 || ze_start(why) != TK_OK || ze_make(&own, why) != TK_OK)
        return TK_FAIL;
    ze_facts(own.device, &device->facts);
    device->own = malloc(sizeof(own));
    if (!device->own)
        tk_panic("out of memory for a Level Zero device");
    memcpy(device->own, &own, sizeof(own));
    return TK_OK;
}

static void ze_close(struct tk_kind_device *device)
{
    ze_drop(device->own);
    free(device->own);
}

/* ---- memory ---- */

/* Memory that can't be exported is still usable. */
static enum tk_status ze_alloc(struct tk_kind_device *device, size_t size, uintptr_t *address,
                               struct tk_kind_why *why)
{
    const struct ze_device *own = device->own;
    const tk_ze_export_desc exported = {.stype = TK_ZE_EXTERNAL_MEMORY_EXPORT_DESC,
                                        .flags = TK_ZE_EXTERNAL_MEMORY_DMA_BUF};
    tk_ze_alloc_desc desc = {.stype = TK_ZE_DEVICE_MEM_ALLOC_DESC,
                             .next = &exported,
                             .ordinal = device->args.ze_memory_ordinal};
    void *pointer = NULL;
    const size_t alignment = 65536;
    tk_ze_result result = ze.mem_alloc(own->context, &desc, size, alignment, own->device, &pointer);
    if (result != TK_ZE_SUCCESS) {
        desc.next = NULL;
        result = ze.mem_alloc(own->context, &desc, size, alignment, own->device, &pointer);
    }
    if (result != TK_ZE_SUCCESS)
        return ze_failed(why, "zeMemAllocDevice", result);
    *address = (uintptr_t)pointer;
    return TK_OK;
}

static void ze_free(struct tk_kind_device *device, uintptr_t address)
{
    const struct ze_device *own = device->own;
    ze.mem_free(own->context, (void *)address);
}

static enum tk_status ze_find(struct tk_kind_device *device, uintptr_t address,
                              struct tk_kind_allocation *allocation, struct tk_kind_why *why)
{
    const struct ze_device *own = device->own;
    const void *pointer = (const void *)address;
    tk_ze_alloc_properties properties = {.stype = TK_ZE_MEMORY_ALLOCATION_PROPERTIES};
    void *base = NULL, *holder = NULL;
    size_t size = 0;
    *allocation = (struct tk_kind_allocation){0};
    tk_ze_result result = ze.mem_get_properties(own->context, pointer, &properties, &holder);
    if (result != TK_ZE_SUCCESS)
        return ze_failed(why, "zeMemGetAllocProperties", result);
    if (properties.type != TK_ZE_MEMORY_TYPE_DEVICE || holder != own->device)
        return tk_kind_why(why, "0x%zx is not memory of this device (memory type %u)", address,
                           properties.type);
    result = ze.mem_get_address_range(own->context, pointer, &base, &size);
    if (result != TK_ZE_SUCCESS)
        return ze_failed(why, "zeMemGetAddressRange", result);
    *allocation =
        (struct tk_kind_allocation){.base = (uintptr_t)base, .size = size, .id = properties.id};
    return TK_OK;
}

/* ---- copies ---- */

static struct ze_device *ze_copier(const struct tk_kind_copy *copy, enum ze_list *list)
{
    *list = !copy->from_device ? ZE_IN : !copy->to_device ? ZE_OUT : ZE_INSIDE;
    return (copy->to_device ? copy->to_device : copy->from_device)->own;
}

static tk_ze_result ze_append(const struct tk_kind_copy *copy, void *list, void *event)
{
    void *to = (void *)copy->to;
    const void *from = (const void *)copy->from;
    const tk_ze_region rows = {.width = (uint32_t)copy->nbytes, .height = (uint32_t)copy->rows};
    if (copy->rows < 2)
        return ze.append_copy(list, to, from, copy->nbytes, event, 0, NULL);
    return ze.append_region(list, to, &rows, (uint32_t)copy->to_pitch, 0, from, &rows,
                            (uint32_t)copy->from_pitch, 0, event, 0, NULL);
}

static enum tk_status ze_copy(struct tk_kind_copy *copy, struct tk_kind_why *why)
{
    enum ze_list list;
    struct ze_device *own = ze_copier(copy, &list);
    struct tk_kind_event *event = tk_kind_event_take(&own->events);
    if (!event)
        return TK_BUSY;
    tk_lock(&own->lists_lock);
    tk_ze_result result = ze_append(copy, own->lists[list], event->handle);
    tk_unlock(&own->lists_lock);
    copy->event = event;
    if (result == TK_ZE_SUCCESS)
        return TK_OK;
    tk_kind_event_give(&own->events, event);
    return ze_failed(why, "copying", result);
}

static enum tk_status ze_copy_test(struct tk_kind_copy *copy, struct tk_kind_why *why)
{
    enum ze_list list;
    struct ze_device *own = ze_copier(copy, &list);
    struct tk_kind_event *event = copy->event;
    tk_ze_result result = ze.event_query(event->handle);
    if (result == TK_ZE_NOT_READY)
        return TK_BUSY;
    ze.event_reset(event->handle);
    tk_kind_event_give(&own->events, event);
    copy->event = NULL;
    return result == TK_ZE_SUCCESS ? TK_OK : ze_failed(why, "zeEventQueryStatus", result);
}

/* ---- other processes and devices ---- */

/* The driver owns the descriptor and keeps it open until the memory is freed. */
static enum tk_status ze_export_dmabuf(struct tk_kind_device *device, uintptr_t address,
                                       size_t size, int *fd, uint64_t *offset,
                                       struct tk_kind_why *why)
{
    const struct ze_device *own = device->own;
    tk_ze_export_fd exported = {
        .stype = TK_ZE_EXTERNAL_MEMORY_EXPORT_FD, .flags = TK_ZE_EXTERNAL_MEMORY_DMA_BUF, .fd = -1};
    tk_ze_alloc_properties properties = {.stype = TK_ZE_MEMORY_ALLOCATION_PROPERTIES,
                                         .next = &exported};
    struct tk_kind_allocation allocation;
    void *holder = NULL;
    (void)size;
    if (ze_find(device, address, &allocation, why) != TK_OK)
        return TK_FAIL;
    tk_ze_result result =
        ze.mem_get_properties(own->context, (const void *)address, &properties, &holder);
    if (result != TK_ZE_SUCCESS)
        return ze_failed(why, "zeMemGetAllocProperties for a dma-buf", result);
    *fd = exported.fd < 0 ? -1 : fcntl(exported.fd, F_DUPFD_CLOEXEC, 0);
    if (*fd < 0)
        return tk_kind_why(why,
                           "the driver exports no dma-buf of this memory: it must be allocated "
                           "with ze_external_memory_export_desc_t");
    *offset = address - allocation.base;
    return TK_OK;
}

static enum tk_status ze_ipc_get(struct tk_kind_device *device, uintptr_t address,
                                 struct tk_kind_ipc *ipc, struct tk_kind_why *why)
{
    (void)device, (void)address, (void)ipc;
    return tk_kind_why(why, "Level Zero's IPC handles are file descriptors, which only their "
                            "process can use");
}

static enum tk_status ze_ipc_open(struct tk_kind_device *device, const struct tk_kind_ipc *ipc,
                                  uintptr_t *base, struct tk_kind_why *why)
{
    *base = 0;
    return ze_ipc_get(device, 0, (struct tk_kind_ipc *)ipc, why);
}

static void ze_ipc_close(struct tk_kind_device *device, uintptr_t base)
{
    (void)device, (void)base;
}

/* Level Zero cannot pin existing host memory: the driver stages its copies. */
static bool ze_pin_host(struct tk_kind_device *device, void *base, size_t size)
{
    (void)device, (void)base, (void)size;
    return false;
}

static void ze_unpin_host(struct tk_kind_device *device, void *base)
{
    (void)device, (void)base;
}

const struct tk_kind_class tk_kind_ze = {
    .name = "ZE",
    .library = "libze_loader.so.1",
    .gex_class = TK_KIND_ZE,
    .list = ze_list,
    .open = ze_open,
    .close = ze_close,
    .alloc = ze_alloc,
    .free = ze_free,
    .find = ze_find,
    .copy = ze_copy,
    .copy_test = ze_copy_test,
    .export_dmabuf = ze_export_dmabuf,
    .ipc_get = ze_ipc_get,
    .ipc_open = ze_ipc_open,
    .ipc_close = ze_ipc_close,
    .pin_host = ze_pin_host,
    .unpin_host = ze_unpin_host,
};
