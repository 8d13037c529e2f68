/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The driver API's streams and events. Owns nothing. */
#include "config.h"

#include <stdlib.h>

#include "contrib/softgpu/cuda/cuda_entry.h"

/* ---- streams ---- */

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    struct sgpu_context *c;
    struct sgpu_stream *s = NULL;
    CUresult result = cuda_enter_context(&c);
    int status;

    if (result != CUDA_SUCCESS)
        return result;
    status = phStream ? sgpu_stream_create(c, Flags, &s) : SGPU_INVALID_VALUE;
    if (status == SGPU_OK)
        *phStream = (CUstream)(void *)s;
    return cuda_leave(status);
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    (void)priority;
    return cuStreamCreate(phStream, flags);
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    CUresult result = cuda_enter_stream(hStream, &c, &s);

    if (result != CUDA_SUCCESS)
        return result;
    if (flags)
        *flags = sgpu_stream_flags(s);
    return cuda_leave(flags ? SGPU_OK : SGPU_INVALID_VALUE);
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    CUresult result = cuda_enter_stream(hStream, &c, &s);

    if (result != CUDA_SUCCESS)
        return result;
    if (pctx)
        *pctx = (CUcontext)(void *)c;
    return cuda_leave(pctx ? SGPU_OK : SGPU_INVALID_VALUE);
}

CUresult cuStreamDestroy_v2(CUstream hStream)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    CUresult result = cuda_enter_stream(hStream, &c, &s);

    if (result != CUDA_SUCCESS)
        return result;
    if (s == c->legacy)
        return cuda_leave(SGPU_INVALID_HANDLE);
    sgpu_stream_destroy(s);
    return cuda_leave(SGPU_OK);
}

CUresult cuStreamQuery(CUstream hStream)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    CUresult result = cuda_enter_stream(hStream, &c, &s);

    return result != CUDA_SUCCESS ? result : cuda_leave(sgpu_stream_query(s));
}

CUresult cuStreamSynchronize(CUstream hStream)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    CUresult result = cuda_enter_stream(hStream, &c, &s);

    return result != CUDA_SUCCESS ? result : cuda_leave(sgpu_stream_wait(s));
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    struct sgpu_event *e;
    CUresult result = cuda_enter_stream(hStream, &c, &s);

    if (result != CUDA_SUCCESS)
        return result;
    e = sgpu_event_find(hEvent);
    if (!e || Flags != 0)
        return cuda_leave(e ? SGPU_INVALID_VALUE : SGPU_INVALID_HANDLE);
    return cuda_leave(sgpu_stream_wait_event(s, e));
}

/* ---- functions of the host ---- */

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    CUresult result = cuda_enter_stream(hStream, &c, &s);

    if (result != CUDA_SUCCESS)
        return result;
    return cuda_leave(fn ? sgpu_call(s, fn, userData) : SGPU_INVALID_VALUE);
}

struct callback {
    CUstreamCallback function;
    CUstream stream;
    void *argument;
};

static void call_back(void *p)
{
    struct callback b = *(struct callback *)p;

    free(p);
    b.function(b.stream, CUDA_SUCCESS, b.argument);
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
                             unsigned int flags)
{
    struct callback *b;
    CUresult result;

    if (!callback || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    b = malloc(sizeof *b);
    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *b = (struct callback){callback, hStream, userData};
    result = cuLaunchHostFunc(hStream, call_back, b);
    if (result != CUDA_SUCCESS)
        free(b);
    return result;
}

/* ---- events ---- */

/* Locks and finds an event. */
static CUresult enter_event(CUevent handle, struct sgpu_event **e)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);

    if (result != CUDA_SUCCESS)
        return result;
    *e = sgpu_event_find(handle);
    return *e ? CUDA_SUCCESS : cuda_leave(SGPU_INVALID_HANDLE);
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    struct sgpu_context *c;
    struct sgpu_event *e = NULL;
    CUresult result = cuda_enter_context(&c);
    int status;

    if (result != CUDA_SUCCESS)
        return result;
    status = phEvent ? sgpu_event_create(c, Flags, &e) : SGPU_INVALID_VALUE;
    if (status == SGPU_OK)
        *phEvent = (CUevent)(void *)e;
    return cuda_leave(status);
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
    struct sgpu_context *c;
    struct sgpu_stream *s;
    struct sgpu_event *e;
    CUresult result = cuda_enter_stream(hStream, &c, &s);

    if (result != CUDA_SUCCESS)
        return result;
    e = sgpu_event_find(hEvent);
    if (!e || sgpu_event_context(e) != c)
        return cuda_leave(SGPU_INVALID_HANDLE);
    return cuda_leave(sgpu_event_record(e, s));
}

CUresult cuEventQuery(CUevent hEvent)
{
    struct sgpu_event *e;
    CUresult result = enter_event(hEvent, &e);

    return result != CUDA_SUCCESS ? result : cuda_leave(sgpu_event_query(e));
}

CUresult cuEventSynchronize(CUevent hEvent)
{
    struct sgpu_event *e;
    CUresult result = enter_event(hEvent, &e);

    return result != CUDA_SUCCESS ? result : cuda_leave(sgpu_event_wait(e));
}

CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    struct sgpu_event *from, *to;
    CUresult result = enter_event(hStart, &from);

    if (result != CUDA_SUCCESS)
        return result;
    to = sgpu_event_find(hEnd);
    if (!pMilliseconds || !to)
        return cuda_leave(to ? SGPU_INVALID_VALUE : SGPU_INVALID_HANDLE);
    return cuda_leave(sgpu_event_elapsed(from, to, pMilliseconds));
}

CUresult cuEventDestroy_v2(CUevent hEvent)
{
    struct sgpu_event *e;
    CUresult result = enter_event(hEvent, &e);

    if (result != CUDA_SUCCESS)
        return result;
    sgpu_event_destroy(e);
    return cuda_leave(SGPU_OK);
}
