/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Level Zero's immediate command lists, which are streams, and its events, which are signaled until
 * they are reset. Owns both, and the pools of events. Copies are asynchronous to all host memory:
 * the specification promises nothing else. */
#include "config.h"

#include <stdlib.h>
#include <time.h>

#include "common/clock.h"
#include "contrib/softgpu/ze/ze_entry.h"

struct _ze_command_list_handle_t {
    struct _ze_command_list_handle_t *next;
    struct sgpu_context *context;
    struct sgpu_stream *stream;
    bool synchronous;
};

struct _ze_event_pool_handle_t {
    struct _ze_event_pool_handle_t *next;
    uint32_t count, used;
};

struct _ze_event_handle_t {
    struct _ze_event_handle_t *next;
    ze_event_pool_handle_t pool;
    struct sgpu_op *mark; /* the operation that signals it; NULL: none */
    bool signaled;        /* by the host */
};

static ze_command_list_handle_t lists;
static ze_event_pool_handle_t pools;
static ze_event_handle_t events;

/* ---- lists ---- */

ze_result_t zeCommandListCreateImmediate(ze_context_handle_t hContext, ze_device_handle_t hDevice,
                                         const ze_command_queue_desc_t *altdesc,
                                         ze_command_list_handle_t *phCommandList)
{
    ze_result_t result = ze_enter();
    ze_command_list_handle_t l;
    struct sgpu_context *c;
    int status;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    status = ze_context_of(hContext, ze_device(hDevice), &c);
    if (status != SGPU_OK || !altdesc || !phCommandList || altdesc->ordinal != 0)
        return ze_leave(status != SGPU_OK ? status : SGPU_INVALID_VALUE);
    l = calloc(1, sizeof *l);
    if (!l)
        return ze_leave(SGPU_OUT_OF_MEMORY);
    status = sgpu_stream_create(c, SGPU_STREAM_NON_BLOCKING, &l->stream);
    if (status != SGPU_OK) {
        free(l);
        return ze_leave(status);
    }
    l->context = c;
    l->synchronous = altdesc->mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
    l->next = lists;
    *phCommandList = lists = l;
    return ze_leave(SGPU_OK);
}

/* Locks and finds a list whose device works. */
static ze_result_t enter_list(ze_command_list_handle_t handle)
{
    ze_result_t result = ze_enter();
    ze_command_list_handle_t l = lists;
    int status;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    while (l && l != handle)
        l = l->next;
    status = l ? sgpu_context_check(l->context) : SGPU_INVALID_HANDLE;
    return status == SGPU_OK ? ZE_RESULT_SUCCESS : ze_leave(status);
}

ze_result_t zeCommandListDestroy(ze_command_list_handle_t hCommandList)
{
    ze_result_t result = ze_enter();
    ze_command_list_handle_t *at = &lists;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    while (*at && *at != hCommandList)
        at = &(*at)->next;
    if (!*at)
        return ze_leave(SGPU_INVALID_HANDLE);
    *at = hCommandList->next;
    if (hCommandList->context->alive)
        sgpu_stream_destroy(hCommandList->stream);
    free(hCommandList);
    return ze_leave(SGPU_OK);
}

/* ---- events ---- */

static bool event_known(ze_event_handle_t handle)
{
    for (ze_event_handle_t e = events; e; e = e->next)
        if (e == handle)
            return true;
    return false;
}

static bool is_signaled(ze_event_handle_t e)
{
    return e->signaled || (e->mark && e->mark->done);
}

static void event_clear(ze_event_handle_t e)
{
    if (e->mark)
        sgpu_op_put(e->mark);
    e->mark = NULL;
    e->signaled = false;
}

/* An empty operation, queued after all operations of the list and after `after` */
static int mark_list(ze_command_list_handle_t l, struct sgpu_op *after, struct sgpu_op **out)
{
    struct sgpu_op *mark = sgpu_op_create(SGPU_OP_MARK);
    int status = mark ? sgpu_stream_submit(l->stream, mark, after) : SGPU_OUT_OF_MEMORY;

    if (status == SGPU_OK && out)
        *out = sgpu_op_get(mark);
    if (mark)
        sgpu_op_put(mark);
    return status;
}

/* Does not wait for events that only the host can signal: no operation completes them. */
static int list_wait(ze_command_list_handle_t l, uint32_t n, ze_event_handle_t *wait)
{
    int status = SGPU_OK;

    for (uint32_t i = 0; i < n && status == SGPU_OK; i++)
        if (!wait || !event_known(wait[i]))
            status = SGPU_INVALID_HANDLE;
        else if (!is_signaled(wait[i]))
            status = wait[i]->mark ? mark_list(l, wait[i]->mark, NULL) : SGPU_NOT_SUPPORTED;
    return status;
}

static int list_signal(ze_command_list_handle_t l, ze_event_handle_t e)
{
    int status = SGPU_OK;

    if (e) {
        event_clear(e);
        status = mark_list(l, NULL, &e->mark);
    }
    return status == SGPU_OK && l->synchronous ? sgpu_stream_wait(l->stream) : status;
}

ze_result_t zeEventPoolCreate(ze_context_handle_t hContext, const ze_event_pool_desc_t *desc,
                              uint32_t numDevices, ze_device_handle_t *phDevices,
                              ze_event_pool_handle_t *phEventPool)
{
    ze_result_t result = ze_enter();
    ze_event_pool_handle_t p;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    if (!ze_context_known(hContext))
        return ze_leave(SGPU_INVALID_HANDLE);
    for (uint32_t i = 0; i < numDevices; i++)
        if (!phDevices || ze_device(phDevices[i]) < 0)
            return ze_leave(SGPU_INVALID_HANDLE);
    if (!desc || desc->count == 0 || !phEventPool)
        return ze_leave(SGPU_INVALID_VALUE);
    p = calloc(1, sizeof *p);
    if (!p)
        return ze_leave(SGPU_OUT_OF_MEMORY);
    p->count = desc->count;
    p->next = pools;
    *phEventPool = pools = p;
    return ze_leave(SGPU_OK);
}

static ze_event_pool_handle_t *pool_find(ze_event_pool_handle_t handle)
{
    ze_event_pool_handle_t *at = &pools;

    while (*at && *at != handle)
        at = &(*at)->next;
    return at;
}

ze_result_t zeEventPoolDestroy(ze_event_pool_handle_t hEventPool)
{
    ze_result_t result = ze_enter();
    ze_event_pool_handle_t *at;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    at = pool_find(hEventPool);
    if (!*at || hEventPool->used > 0) /* The events must be destroyed before. */
        return ze_leave(*at ? SGPU_INVALID_VALUE : SGPU_INVALID_HANDLE);
    *at = hEventPool->next;
    free(hEventPool);
    return ze_leave(SGPU_OK);
}

ze_result_t zeEventCreate(ze_event_pool_handle_t hEventPool, const ze_event_desc_t *desc,
                          ze_event_handle_t *phEvent)
{
    ze_result_t result = ze_enter();
    ze_event_handle_t e;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    if (!*pool_find(hEventPool))
        return ze_leave(SGPU_INVALID_HANDLE);
    if (!desc || !phEvent || desc->index >= hEventPool->count)
        return ze_leave(SGPU_INVALID_VALUE);
    e = calloc(1, sizeof *e);
    if (!e)
        return ze_leave(SGPU_OUT_OF_MEMORY);
    e->pool = hEventPool;
    hEventPool->used++;
    e->next = events;
    *phEvent = events = e;
    return ze_leave(SGPU_OK);
}

/* Locks and finds an event. */
static ze_result_t enter_event(ze_event_handle_t handle)
{
    ze_result_t result = ze_enter();

    if (result != ZE_RESULT_SUCCESS)
        return result;
    return event_known(handle) ? ZE_RESULT_SUCCESS : ze_leave(SGPU_INVALID_HANDLE);
}

ze_result_t zeEventDestroy(ze_event_handle_t hEvent)
{
    ze_result_t result = enter_event(hEvent);
    ze_event_handle_t *at = &events;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    while (*at != hEvent)
        at = &(*at)->next;
    *at = hEvent->next;
    hEvent->pool->used--;
    event_clear(hEvent);
    free(hEvent);
    return ze_leave(SGPU_OK);
}

/* An operation that failed signals nothing; its device is lost. */
static int event_status(ze_event_handle_t e)
{
    if (e->mark && e->mark->done && e->mark->status != SGPU_OK)
        return e->mark->status;
    return is_signaled(e) ? SGPU_OK : SGPU_NOT_READY;
}

ze_result_t zeEventQueryStatus(ze_event_handle_t hEvent)
{
    ze_result_t result = enter_event(hEvent);

    return result != ZE_RESULT_SUCCESS ? result : ze_leave(event_status(hEvent));
}

ze_result_t zeEventHostReset(ze_event_handle_t hEvent)
{
    ze_result_t result = enter_event(hEvent);

    if (result != ZE_RESULT_SUCCESS)
        return result;
    event_clear(hEvent);
    return ze_leave(SGPU_OK);
}

ze_result_t zeEventHostSignal(ze_event_handle_t hEvent)
{
    ze_result_t result = enter_event(hEvent);

    if (result != ZE_RESULT_SUCCESS)
        return result;
    hEvent->signaled = true;
    return ze_leave(SGPU_OK);
}

ze_result_t zeEventHostSynchronize(ze_event_handle_t hEvent, uint64_t timeout)
{
    uint64_t begin = tk_now();
    ze_result_t result;

    for (;;) {
        result = zeEventQueryStatus(hEvent);
        if (result != ZE_RESULT_NOT_READY || tk_now() - begin >= timeout)
            return result;
        nanosleep(&(struct timespec){0, 20000}, NULL);
    }
}

/* ---- work ---- */

static ze_result_t enter_work(ze_command_list_handle_t l, ze_event_handle_t signal, uint32_t n,
                              ze_event_handle_t *wait)
{
    ze_result_t result = enter_list(l);
    int status;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    status = signal && !event_known(signal) ? SGPU_INVALID_HANDLE : list_wait(l, n, wait);
    return status == SGPU_OK ? ZE_RESULT_SUCCESS : ze_leave(status);
}

ze_result_t zeCommandListAppendMemoryCopy(ze_command_list_handle_t hCommandList, void *dstptr,
                                          const void *srcptr, size_t size,
                                          ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                          ze_event_handle_t *phWaitEvents)
{
    ze_command_list_handle_t l = hCommandList;
    ze_result_t result = enter_work(l, hSignalEvent, numWaitEvents, phWaitEvents);
    int status;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    status = sgpu_copy(l->context, l->stream, (uint64_t)(uintptr_t)dstptr,
                       (uint64_t)(uintptr_t)srcptr, size, SGPU_UNSTAGED);
    return ze_leave(status == SGPU_OK ? list_signal(l, hSignalEvent) : status);
}

static bool is_2d(const ze_copy_region_t *to, const ze_copy_region_t *from)
{
    return to && from && to->depth == 0 && from->depth == 0 && to->originZ == 0 &&
           from->originZ == 0 && to->width == from->width && to->height == from->height;
}

static uint64_t region_at(const void *base, const ze_copy_region_t *region, uint32_t pitch)
{
    return (uint64_t)(uintptr_t)base + (uint64_t)region->originY * pitch + region->originX;
}

/* In two dimensions */
ze_result_t zeCommandListAppendMemoryCopyRegion(
    ze_command_list_handle_t hCommandList, void *dstptr, const ze_copy_region_t *dstRegion,
    uint32_t dstPitch, uint32_t dstSlicePitch, const void *srcptr,
    const ze_copy_region_t *srcRegion, uint32_t srcPitch, uint32_t srcSlicePitch,
    ze_event_handle_t hSignalEvent, uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents)
{
    ze_command_list_handle_t l = hCommandList;
    ze_result_t result = enter_work(l, hSignalEvent, numWaitEvents, phWaitEvents);
    int status;

    (void)dstSlicePitch, (void)srcSlicePitch;
    if (result != ZE_RESULT_SUCCESS)
        return result;
    if (!is_2d(dstRegion, srcRegion))
        return ze_leave(SGPU_NOT_SUPPORTED);
    status =
        sgpu_copy_rows(l->context, l->stream, region_at(dstptr, dstRegion, dstPitch),
                       region_at(srcptr, srcRegion, srcPitch),
                       &(struct sgpu_rows){dstRegion->width, dstRegion->height, dstPitch, srcPitch},
                       SGPU_UNSTAGED);
    return ze_leave(status == SGPU_OK ? list_signal(l, hSignalEvent) : status);
}

ze_result_t zeCommandListAppendMemoryFill(ze_command_list_handle_t hCommandList, void *ptr,
                                          const void *pattern, size_t pattern_size, size_t size,
                                          ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                          ze_event_handle_t *phWaitEvents)
{
    ze_command_list_handle_t l = hCommandList;
    ze_result_t result = enter_work(l, hSignalEvent, numWaitEvents, phWaitEvents);
    int status;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    if (!pattern || pattern_size != 1)
        return ze_leave(pattern ? SGPU_NOT_SUPPORTED : SGPU_INVALID_VALUE);
    status = sgpu_set(l->context, l->stream, (uint64_t)(uintptr_t)ptr,
                      *(const unsigned char *)pattern, 1, size);
    return ze_leave(status == SGPU_OK ? list_signal(l, hSignalEvent) : status);
}
