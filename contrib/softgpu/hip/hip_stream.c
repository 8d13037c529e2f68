/* SPDX-License-Identifier: BSD-3-Clause
 *
 * HIP's streams and events. Owns nothing. */
#include "config.h"

#include <stdlib.h>

#include "contrib/softgpu/hip/hip_entry.h"

/* ---- streams ---- */

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags)
{
    struct sgpu_context *c;
    struct sgpu_stream *s = NULL;
    hipError_t result = hip_enter_context(&c);
    int status;

    if (result != hipSuccess)
        return result;
    status = stream ? sgpu_stream_create(c, flags, &s) : SGPU_INVALID_VALUE;
    if (status == SGPU_OK)
        *stream = (hipStream_t)(void *)s;
    return hip_leave(status);
}

hipError_t hipStreamCreate(hipStream_t *stream)
{
    return hipStreamCreateWithFlags(stream, 0);
}

hipError_t hipStreamDestroy(hipStream_t stream)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    hipError_t result = hip_enter_stream(stream, &c, &s);

    if (result != hipSuccess)
        return result;
    if (s == c->legacy)
        return hip_leave(SGPU_INVALID_HANDLE);
    sgpu_stream_destroy(s);
    return hip_leave(SGPU_OK);
}

hipError_t hipStreamQuery(hipStream_t stream)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    hipError_t result = hip_enter_stream(stream, &c, &s);

    return result != hipSuccess ? result : hip_leave(sgpu_stream_query(s));
}

hipError_t hipStreamSynchronize(hipStream_t stream)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    hipError_t result = hip_enter_stream(stream, &c, &s);

    return result != hipSuccess ? result : hip_leave(sgpu_stream_wait(s));
}

hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int *flags)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    hipError_t result = hip_enter_stream(stream, &c, &s);

    if (result != hipSuccess)
        return result;
    if (flags)
        *flags = sgpu_stream_flags(s);
    return hip_leave(flags ? SGPU_OK : SGPU_INVALID_VALUE);
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    struct sgpu_event *e;
    hipError_t result = hip_enter_stream(stream, &c, &s);

    if (result != hipSuccess)
        return result;
    e = sgpu_event_find(event);
    if (!e || flags != 0)
        return hip_leave(e ? SGPU_INVALID_VALUE : SGPU_INVALID_HANDLE);
    return hip_leave(sgpu_stream_wait_event(s, e));
}

struct callback {
    hipStreamCallback_t function;
    hipStream_t stream;
    void *argument;
};

static void call_back(void *p)
{
    struct callback b = *(struct callback *)p;

    free(p);
    b.function(b.stream, hipSuccess, b.argument);
}

hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void *userData,
                                unsigned int flags)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    struct callback *b;
    hipError_t result = hip_enter_stream(stream, &c, &s);
    int status = SGPU_OUT_OF_MEMORY;

    if (result != hipSuccess)
        return result;
    if (!callback || flags != 0)
        return hip_leave(SGPU_INVALID_VALUE);
    b = malloc(sizeof *b);
    if (b) {
        *b = (struct callback){callback, stream, userData};
        status = sgpu_call(s, call_back, b);
        if (status != SGPU_OK)
            free(b);
    }
    return hip_leave(status);
}

/* ---- events ---- */

/* Locks and finds an event. */
static hipError_t enter_event(hipEvent_t handle, struct sgpu_event **e)
{
    struct sgpu_context *c;
    hipError_t result = hip_enter_context(&c);

    if (result != hipSuccess)
        return result;
    *e = sgpu_event_find(handle);
    return *e ? hipSuccess : hip_leave(SGPU_INVALID_HANDLE);
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
{
    struct sgpu_context *c;
    struct sgpu_event *e = NULL;
    hipError_t result = hip_enter_context(&c);
    int status;

    if (result != hipSuccess)
        return result;
    /* The flags that choose which caches an event writes back have no effect here. */
    flags &= ~(unsigned)(hipEventReleaseToDevice | hipEventReleaseToSystem);
    status = event ? sgpu_event_create(c, flags, &e) : SGPU_INVALID_VALUE;
    if (status == SGPU_OK)
        *event = (hipEvent_t)(void *)e;
    return hip_leave(status);
}

hipError_t hipEventCreate(hipEvent_t *event)
{
    return hipEventCreateWithFlags(event, 0);
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    struct sgpu_event *e;
    hipError_t result = hip_enter_stream(stream, &c, &s);

    if (result != hipSuccess)
        return result;
    e = sgpu_event_find(event);
    if (!e || sgpu_event_context(e) != c)
        return hip_leave(SGPU_INVALID_HANDLE);
    return hip_leave(sgpu_event_record(e, s));
}

hipError_t hipEventQuery(hipEvent_t event)
{
    struct sgpu_event *e;
    hipError_t result = enter_event(event, &e);

    return result != hipSuccess ? result : hip_leave(sgpu_event_query(e));
}

hipError_t hipEventSynchronize(hipEvent_t event)
{
    struct sgpu_event *e;
    hipError_t result = enter_event(event, &e);

    return result != hipSuccess ? result : hip_leave(sgpu_event_wait(e));
}

hipError_t hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop)
{
    struct sgpu_event *from, *to;
    hipError_t result = enter_event(start, &from);

    if (result != hipSuccess)
        return result;
    to = sgpu_event_find(stop);
    if (!ms || !to)
        return hip_leave(to ? SGPU_INVALID_VALUE : SGPU_INVALID_HANDLE);
    return hip_leave(sgpu_event_elapsed(from, to, ms));
}

hipError_t hipEventDestroy(hipEvent_t event)
{
    struct sgpu_event *e;
    hipError_t result = enter_event(event, &e);

    if (result != hipSuccess)
        return result;
    sgpu_event_destroy(e);
    return hip_leave(SGPU_OK);
}
