/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Class HIP over AMD's runtime. Each device has one stream for each direction of copies, and its
 * idle events. The current device is a state of the thread in HIP: a call that needs another one
 * sets it and sets the caller's again. The runtime is thread-safe; the events have a lock. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mode.h"
#include "base/report.h"
#include "kind/events.h"
#include "kind/hip_api.h"
#include "kind/kind.h"
#include "kind/library.h"

#define MEMBER(member, symbol, is_optional, parameters) tk_hip_error(*member) parameters;
static struct {
    TK_FUNCTIONS_OF_HIP(MEMBER)
    tk_hip_error_string *error_string;
} hip;

#define SYMBOL(member, symbol, is_optional, parameters)                                            \
    {#symbol, (void **)&hip.member, is_optional},
static const struct tk_kind_symbol hip_symbols[] = {
    TK_FUNCTIONS_OF_HIP(SYMBOL){"hipGetErrorString", (void **)&hip.error_string, true}};

static tk_hsa_export_dmabuf *hsa_export;
static bool hip_is_5; /* the loaded library is from ROCm 5 or older */

enum hip_stream { HIP_IN, HIP_OUT, HIP_INSIDE, hip_streams };

struct hip_device {
    int ordinal;
    tk_hip_stream streams[hip_streams];
    struct tk_kind_events events;
};

/* Since ROCm 7 the runtime keeps an error, even hipErrorNotReady, until hipGetLastError(): a client
 * that calls it after a kernel launch would take the library's error for its own. Clearing it also
 * clears a client's error that the client has not read yet. */
static bool hip_ok(tk_hip_error error)
{
    if (error != TK_HIP_SUCCESS && hip.get_last_error)
        hip.get_last_error();
    return error == TK_HIP_SUCCESS;
}

static enum tk_status hip_failed(struct tk_kind_why *why, const char *call, tk_hip_error error)
{
    hip_ok(error);
    const char *text = hip.error_string ? hip.error_string(error) : NULL;
    return tk_kind_why(why, "%s: %s (HIP error %d)", call, text ? text : "unknown error", error);
}

/* The calling thread's capture mode, saved while a call of ours runs in relaxed mode. */
static TK_PER_THREAD int capture_mode;

/* As for CUDA (cuda.c): the library's calls must not disturb a capture by the client. */
static void hip_capture_leave(void)
{
    if (hip.exchange_capture)
        hip.exchange_capture(&capture_mode);
}

static void hip_capture_enter(void)
{
    capture_mode = TK_HIP_CAPTURE_RELAXED;
    hip_capture_leave();
}

static enum tk_status hip_set(int ordinal, int *callers, struct tk_kind_why *why)
{
    tk_hip_error error = hip.get_device(callers);
    if (error != TK_HIP_SUCCESS)
        return hip_failed(why, "hipGetDevice", error);
    if (*callers == ordinal)
        return TK_OK;
    error = hip.set_device(ordinal);
    return error == TK_HIP_SUCCESS ? TK_OK : hip_failed(why, "hipSetDevice", error);
}

static enum tk_status hip_enter(int ordinal, int *callers, struct tk_kind_why *why)
{
    if (hip_set(ordinal, callers, why) != TK_OK)
        return TK_FAIL;
    hip_capture_enter();
    return TK_OK;
}

static void hip_leave(int ordinal, int callers)
{
    hip_capture_leave();
    if (callers != ordinal)
        hip_ok(hip.set_device(callers));
}

/* ---- open and close ---- */

/* libamdhip64.so is of any version. */
static bool hip_is_old(void)
{
    int version;
    return hip.get_version && hip_ok(hip.get_version(&version)) && version < 60000000;
}

/* A machine may have several versions: the newest is preferred. */
static int hip_load(struct tk_kind_why *why)
{
    enum { of_rocm_5 = 2, of_any };
    static const char *const files[] = {
        "libamdhip64.so.7",
        "libamdhip64.so.6", [of_rocm_5] = "libamdhip64.so.5", [of_any] = "libamdhip64.so", NULL};
    static const char *const hsa_files[] = {"libhsa-runtime64.so.1", NULL};
    static const struct tk_kind_symbol hsa_symbols[] = {
        {"hsa_amd_portable_export_dmabuf", (void **)&hsa_export, true}};
    struct tk_kind_why no_matter;
    int file =
        tk_kind_library_load(files, hip_symbols, sizeof(hip_symbols) / sizeof(*hip_symbols), why);
    if (file < 0)
        return file;
    hip_is_5 = file == of_rocm_5 || (file == of_any && hip_is_old());
    tk_kind_library_load(hsa_files, hsa_symbols, 1, &no_matter);
    return file;
}

static enum tk_status hip_count(int *count, struct tk_kind_why *why)
{
    tk_hip_error error = hip.init(0);
    if (error != TK_HIP_SUCCESS)
        return hip_failed(why, "hipInit", error);
    error = hip.get_device_count(count);
    return error == TK_HIP_SUCCESS ? TK_OK : hip_failed(why, "hipGetDeviceCount", error);
}

static int hip_list(struct tk_kind_args *args, int max, bool *is_loaded, struct tk_kind_why *why)
{
    int count = 0;
    int file = hip_load(why);
    *is_loaded = file != TK_KIND_LIBRARY_ABSENT;
    if (file < 0 || hip_count(&count, why) != TK_OK)
        return -1;
    return tk_kind_list_ordinals(TK_KIND_HIP, count, args, max);
}

static enum tk_status hip_find_device(int ordinal, struct tk_kind_why *why)
{
    int count = 0;
    if (hip_load(why) < 0 || hip_count(&count, why) != TK_OK)
        return TK_FAIL;
    if (ordinal >= 0 && ordinal < count)
        return TK_OK;
    return tk_kind_why(why, "there is no HIP device %d: this process sees %d of them", ordinal,
                       count);
}

static void hip_facts(int ordinal, struct tk_kind_facts *facts)
{
    tk_hip_uuid uuid;
    if (!hip.device_get_name ||
        !hip_ok(hip.device_get_name(facts->name, sizeof(facts->name), ordinal)))
        snprintf(facts->name, sizeof(facts->name), "unknown");
    if (!hip.device_get_pci || !hip_ok(hip.device_get_pci(facts->pci, sizeof(facts->pci), ordinal)))
        facts->pci[0] = 0;
    for (char *c = facts->pci; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    if (hip.device_get_uuid && hip_ok(hip.device_get_uuid(&uuid, ordinal)))
        memcpy(facts->uuid, uuid.bytes, sizeof(facts->uuid));
    facts->has_dmabuf = hsa_export != NULL;
    facts->has_ipc = hip.ipc_get && hip.ipc_open && hip.ipc_close;
    /* AMD's reference for these versions does not promise an order of remote writes. */
    facts->needs_flush = true;
}

static void hip_drop_streams(struct hip_device *own)
{
    struct tk_kind_event *event;
    while ((event = tk_kind_event_take(&own->events)) != NULL) {
        hip_ok(hip.event_destroy(event->handle));
        free(event);
    }
    for (int i = 0; i < hip_streams; i++)
        if (own->streams[i])
            hip_ok(hip.stream_destroy(own->streams[i]));
}

static enum tk_status hip_make_streams(struct hip_device *own, struct tk_kind_why *why)
{
    int callers;
    if (hip_enter(own->ordinal, &callers, why) != TK_OK)
        return TK_FAIL;
    tk_hip_error error = TK_HIP_SUCCESS;
    for (int i = 0; i < hip_streams && error == TK_HIP_SUCCESS; i++)
        error = hip.stream_create(&own->streams[i], TK_HIP_STREAM_NON_BLOCKING);
    if (error != TK_HIP_SUCCESS)
        hip_drop_streams(own);
    hip_leave(own->ordinal, callers);
    return error == TK_HIP_SUCCESS ? TK_OK : hip_failed(why, "hipStreamCreateWithFlags", error);
}

static enum tk_status hip_open(struct tk_kind_device *device, struct tk_kind_why *why)
{
    struct hip_device own = {.ordinal = device->args.ordinal, .events = {.lock = TK_LOCK_INIT}};
    if (hip_find_device(own.ordinal, why) != TK_OK || hip_make_streams(&own, why) != TK_OK)
        return TK_FAIL;
    hip_facts(own.ordinal, &device->facts);
    device->own = malloc(sizeof(own));
    if (!device->own)
        tk_panic("out of memory for a HIP device");
    memcpy(device->own, &own, sizeof(own));
    return TK_OK;
}

static void hip_close(struct tk_kind_device *device)
{
    struct hip_device *own = device->own;
    struct tk_kind_why why;
    int callers;
    if (hip_enter(own->ordinal, &callers, &why) == TK_OK) {
        hip_drop_streams(own);
        hip_leave(own->ordinal, callers);
    }
    free(own);
}

/* ---- memory ---- */

static size_t hip_total(struct tk_kind_device *device)
{
    struct tk_kind_why why;
    size_t left, total = 0;
    int callers, ordinal = device->args.ordinal;
    if (!hip.mem_get_info || hip_enter(ordinal, &callers, &why) != TK_OK)
        return 0;
    tk_hip_error error = hip.mem_get_info(&left, &total);
    hip_leave(ordinal, callers);
    return error == TK_HIP_SUCCESS ? total : 0;
}

/* On the device. */
static enum tk_status hip_alloc_here(size_t size, uintptr_t *address, struct tk_kind_why *why)
{
    void *pointer = NULL;
    char call[120];
    size_t left, total;
    tk_hip_error error = hip.mem_alloc(&pointer, size);
    *address = (uintptr_t)pointer;
    if (error == TK_HIP_SUCCESS)
        return TK_OK;
    if (hip.mem_get_info && hip_ok(hip.mem_get_info(&left, &total)))
        snprintf(call, sizeof(call), "hipMalloc of %zu bytes, of %zu that are free", size, left);
    else
        snprintf(call, sizeof(call), "hipMalloc of %zu bytes", size);
    return hip_failed(why, call, error);
}

static enum tk_status hip_alloc(struct tk_kind_device *device, size_t size, uintptr_t *address,
                                struct tk_kind_why *why)
{
    int callers, ordinal = device->args.ordinal;
    if (hip_enter(ordinal, &callers, why) != TK_OK)
        return TK_FAIL;
    enum tk_status status = hip_alloc_here(size, address, why);
    hip_leave(ordinal, callers);
    return status;
}

/* hipFree() finds the device by the address. */
static void hip_free(struct tk_kind_device *device, uintptr_t address)
{
    (void)device;
    hip_capture_enter();
    hip_ok(hip.mem_free((void *)address));
    hip_capture_leave();
}

static enum tk_status hip_judge(const struct tk_kind_device *device, uintptr_t address,
                                struct tk_kind_why *why)
{
    tk_hip_pointer pointer = {0};
    int ordinal = device->args.ordinal;
    if (!hip_ok(hip.pointer_get_attributes(&pointer, (void *)address)))
        return tk_kind_why(why, "0x%zx is not memory of HIP, or was freed", address);
    if (pointer.is_managed)
        return tk_kind_why(why, "0x%zx is managed memory, which moves between host and device",
                           address);
    if (pointer.type != (hip_is_5 ? TK_HIP_MEMORY_DEVICE_OF_5 : TK_HIP_MEMORY_DEVICE_OF_6))
        return tk_kind_why(why, "0x%zx is host memory (memory type %d), not memory of a device",
                           address, pointer.type);
    if (pointer.device != ordinal)
        return tk_kind_why(why, "0x%zx is memory of HIP device %d, not of %d", address,
                           pointer.device, ordinal);
    return TK_OK;
}

/* No allocation number is available in every version of HIP. */
static enum tk_status hip_find(struct tk_kind_device *device, uintptr_t address,
                               struct tk_kind_allocation *allocation, struct tk_kind_why *why)
{
    void *base = NULL;
    size_t size = 0;
    *allocation = (struct tk_kind_allocation){0};
    if (hip_judge(device, address, why) != TK_OK)
        return TK_FAIL;
    tk_hip_error error = hip.mem_get_address_range(&base, &size, (void *)address);
    if (error != TK_HIP_SUCCESS)
        return hip_failed(why, "hipMemGetAddressRange", error);
    allocation->base = (uintptr_t)base;
    allocation->size = size;
    return TK_OK;
}

/* ---- copies ---- */

static struct tk_kind_event *hip_event(struct hip_device *own, struct tk_kind_why *why)
{
    struct tk_kind_event *event = tk_kind_event_take(&own->events);
    if (event)
        return event;
    tk_hip_event handle = NULL;
    tk_hip_error error = hip.event_create(&handle, TK_HIP_EVENT_DISABLE_TIMING);
    if (error == TK_HIP_SUCCESS)
        return tk_kind_event_new(handle);
    hip_failed(why, "hipEventCreateWithFlags", error);
    return NULL;
}

/* The device that copies: the destination's, or the source's if the destination is host memory. */
static struct hip_device *hip_copier(const struct tk_kind_copy *copy)
{
    return (copy->to_device ? copy->to_device : copy->from_device)->own;
}

static tk_hip_stream hip_stream(const struct tk_kind_copy *copy, const struct hip_device *own)
{
    return own->streams[!copy->from_device ? HIP_IN : !copy->to_device ? HIP_OUT : HIP_INSIDE];
}

static int hip_direction(const struct tk_kind_copy *copy)
{
    return !copy->from_device ? TK_HIP_COPY_TO_DEVICE
           : !copy->to_device ? TK_HIP_COPY_TO_HOST
                              : TK_HIP_COPY_INSIDE;
}

static bool hip_is_between(const struct tk_kind_copy *copy, const struct hip_device *own)
{
    return copy->from_device && copy->to_device && copy->from_device->own != own;
}

static tk_hip_error hip_enqueue_range(const struct tk_kind_copy *copy, struct hip_device *own,
                                      uintptr_t to, uintptr_t from)
{
    tk_hip_stream stream = hip_stream(copy, own);
    if (!hip_is_between(copy, own))
        return hip.copy_async((void *)to, (const void *)from, copy->nbytes, hip_direction(copy),
                              stream);
    const struct hip_device *other = copy->from_device->own;
    return hip.copy_between((void *)to, own->ordinal, (const void *)from, other->ordinal,
                            copy->nbytes, stream);
}

/* One call for all rows, but not between two devices. */
static tk_hip_error hip_enqueue(const struct tk_kind_copy *copy, struct hip_device *own)
{
    tk_hip_error error = TK_HIP_SUCCESS;
    if (copy->rows < 2)
        return hip_enqueue_range(copy, own, copy->to, copy->from);
    if (hip.copy_2d && !hip_is_between(copy, own))
        return hip.copy_2d((void *)copy->to, copy->to_pitch, (const void *)copy->from,
                           copy->from_pitch, copy->nbytes, copy->rows, hip_direction(copy),
                           hip_stream(copy, own));
    for (size_t i = 0; i < copy->rows && error == TK_HIP_SUCCESS; i++)
        error = hip_enqueue_range(copy, own, copy->to + i * copy->to_pitch,
                                  copy->from + i * copy->from_pitch);
    return error;
}

static enum tk_status hip_start_copy(struct tk_kind_copy *copy, struct hip_device *own,
                                     struct tk_kind_why *why)
{
    tk_hip_stream stream = hip_stream(copy, own);
    struct tk_kind_event *event = hip_event(own, why);
    if (!event)
        return TK_FAIL;
    tk_hip_error error = hip_enqueue(copy, own);
    if (error == TK_HIP_SUCCESS)
        error = hip.event_record(event->handle, stream);
    /* The copy, or some of its rows, may be in flight, and the library could not see it end. */
    if (error != TK_HIP_SUCCESS)
        hip_ok(hip.stream_synchronize(stream));
    copy->event = event;
    if (error == TK_HIP_SUCCESS)
        return TK_OK;
    tk_kind_event_give(&own->events, event);
    return hip_failed(why, "copying", error);
}

static enum tk_status hip_copy(struct tk_kind_copy *copy, struct tk_kind_why *why)
{
    struct hip_device *own = hip_copier(copy);
    int callers;
    if (hip_enter(own->ordinal, &callers, why) != TK_OK)
        return TK_FAIL;
    enum tk_status status = hip_start_copy(copy, own, why);
    hip_leave(own->ordinal, callers);
    return status;
}

static enum tk_status hip_copy_test(struct tk_kind_copy *copy, struct tk_kind_why *why)
{
    struct hip_device *own = hip_copier(copy);
    struct tk_kind_event *event = copy->event;
    hip_capture_enter();
    tk_hip_error error = hip.event_query(event->handle);
    hip_capture_leave();
    if (error == TK_HIP_NOT_READY) {
        hip_ok(error);
        return TK_BUSY;
    }
    tk_kind_event_give(&own->events, event);
    copy->event = NULL;
    return error == TK_HIP_SUCCESS ? TK_OK : hip_failed(why, "copying", error);
}

/* ---- other processes and devices ---- */

static enum tk_status hip_export_dmabuf(struct tk_kind_device *device, uintptr_t address,
                                        size_t size, int *fd, uint64_t *offset,
                                        struct tk_kind_why *why)
{
    if (!device->facts.has_dmabuf)
        return tk_kind_why(why, "libhsa-runtime64.so.1 has no hsa_amd_portable_export_dmabuf(): "
                                "ROCm 5.3 has it");
    *fd = -1;
    int status = hsa_export((const void *)address, size, fd, offset);
    if (status == 0)
        return TK_OK;
    return tk_kind_why(why, "hsa_amd_portable_export_dmabuf: HSA status 0x%x", (unsigned)status);
}

static enum tk_status hip_ipc_get(struct tk_kind_device *device, uintptr_t address,
                                  struct tk_kind_ipc *ipc, struct tk_kind_why *why)
{
    tk_hip_ipc_handle handle;
    int callers, ordinal = device->args.ordinal;
    if (hip_enter(ordinal, &callers, why) != TK_OK)
        return TK_FAIL;
    tk_hip_error error = hip.ipc_get(&handle, (void *)address);
    hip_leave(ordinal, callers);
    if (error != TK_HIP_SUCCESS)
        return hip_failed(why, "hipIpcGetMemHandle", error);
    memcpy(ipc->handle, handle.reserved, sizeof(ipc->handle));
    return TK_OK;
}

static enum tk_status hip_ipc_open(struct tk_kind_device *device, const struct tk_kind_ipc *ipc,
                                   uintptr_t *base, struct tk_kind_why *why)
{
    tk_hip_ipc_handle handle;
    void *address = NULL;
    int callers, ordinal = device->args.ordinal;
    memcpy(handle.reserved, ipc->handle, sizeof(handle.reserved));
    if (!device->facts.has_ipc)
        return tk_kind_why(why, "the runtime has no hipIpcOpenMemHandle()");
    if (hip_enter(ordinal, &callers, why) != TK_OK)
        return TK_FAIL;
    tk_hip_error error =
        hip.ipc_open(&address, handle, hip_is_5 ? TK_HIP_IPC_FLAGS_OF_5 : TK_HIP_IPC_FLAGS_OF_6);
    hip_leave(ordinal, callers);
    if (error != TK_HIP_SUCCESS)
        return hip_failed(why, "hipIpcOpenMemHandle", error);
    *base = (uintptr_t)address;
    return TK_OK;
}

static void hip_ipc_close(struct tk_kind_device *device, uintptr_t base)
{
    struct tk_kind_why why;
    int callers, ordinal = device->args.ordinal;
    if (hip_enter(ordinal, &callers, &why) != TK_OK)
        return;
    hip_ok(hip.ipc_close((void *)base));
    hip_leave(ordinal, callers);
}

static bool hip_pin_host(struct tk_kind_device *device, void *base, size_t size)
{
    struct tk_kind_why why;
    int callers, ordinal = device->args.ordinal;
    if (!hip.host_register || !hip.host_unregister || hip_enter(ordinal, &callers, &why) != TK_OK)
        return false;
    bool is_pinned = hip_ok(hip.host_register(base, size, TK_HIP_HOST_REGISTER_PORTABLE));
    hip_leave(ordinal, callers);
    return is_pinned;
}

static void hip_unpin_host(struct tk_kind_device *device, void *base)
{
    (void)device;
    hip_capture_enter();
    hip_ok(hip.host_unregister(base));
    hip_capture_leave();
}

const struct tk_kind_class tk_kind_hip = {
    .name = "HIP",
    .library = "libamdhip64.so",
    .gex_class = TK_KIND_HIP,
    .list = hip_list,
    .open = hip_open,
    .close = hip_close,
    .total = hip_total,
    .alloc = hip_alloc,
    .free = hip_free,
    .find = hip_find,
    .copy = hip_copy,
    .copy_test = hip_copy_test,
    .export_dmabuf = hip_export_dmabuf,
    .ipc_get = hip_ipc_get,
    .ipc_open = hip_ipc_open,
    .ipc_close = hip_ipc_close,
    .pin_host = hip_pin_host,
    .unpin_host = hip_unpin_host,
};
