/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The driver API's contexts. Owns the stack of current contexts of each thread. */
#include "config.h"

#include <stdlib.h>

#include "contrib/softgpu/cuda/cuda_entry.h"

enum { STACK_DEPTH = 64 };
static __thread struct sgpu_context *stack[STACK_DEPTH];
static __thread unsigned depth;

static struct sgpu_context *context_of(CUcontext handle)
{
    return (struct sgpu_context *)(void *)handle;
}

static CUcontext handle_of(struct sgpu_context *c)
{
    return (CUcontext)(void *)c;
}

/* ---- how calls begin ---- */

struct sgpu_context *cuda_current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

CUresult cuda_enter(void)
{
    int status = sgpu_started();

    if (status == SGPU_OK && sgpu_in_callback())
        status = SGPU_NOT_PERMITTED;
    if (status == SGPU_OK)
        sgpu_enter();
    return (CUresult)status;
}

CUresult cuda_leave(int status)
{
    return (CUresult)sgpu_leave(status);
}

CUresult cuda_enter_context(struct sgpu_context **c)
{
    CUresult result = cuda_enter();
    int status;

    if (result != CUDA_SUCCESS)
        return result;
    *c = cuda_current();
    status = *c ? sgpu_context_check(*c) : SGPU_INVALID_CONTEXT;
    return status == SGPU_OK ? CUDA_SUCCESS : cuda_leave(status);
}

CUresult cuda_enter_stream(CUstream handle, struct sgpu_context **c, struct sgpu_stream **s)
{
    CUresult result = cuda_enter_context(c);

    if (result != CUDA_SUCCESS)
        return result;
    *s = sgpu_stream_resolve(*c, handle);
    return *s ? CUDA_SUCCESS : cuda_leave(SGPU_INVALID_HANDLE);
}

/* Locks; OK when there is such a device. */
static CUresult enter_device(CUdevice device)
{
    CUresult result = cuda_enter();

    if (result != CUDA_SUCCESS || sgpu_device_exists(device))
        return result;
    return cuda_leave(SGPU_INVALID_DEVICE);
}

/* ---- primary contexts ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct sgpu_context *c = NULL;
    CUresult result = enter_device(dev);
    int status;

    if (result != CUDA_SUCCESS)
        return result;
    status = !pctx ? SGPU_INVALID_VALUE : sgpu_context_retain(dev, &c);
    if (status == SGPU_OK)
        *pctx = handle_of(c);
    return cuda_leave(status);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    CUresult result = enter_device(dev);

    return result != CUDA_SUCCESS ? result : cuda_leave(sgpu_context_release(dev));
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    CUresult result = enter_device(dev);
    struct sgpu_context *c;

    if (result != CUDA_SUCCESS)
        return result;
    c = sgpu_context_primary(dev);
    if (c)
        c->flags = flags;
    return cuda_leave(c ? SGPU_OK : SGPU_OUT_OF_MEMORY);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    CUresult result = enter_device(dev);
    struct sgpu_context *c;

    if (result != CUDA_SUCCESS)
        return result;
    c = sgpu_context_primary(dev);
    if (!flags || !active || !c)
        return cuda_leave(c ? SGPU_INVALID_VALUE : SGPU_OUT_OF_MEMORY);
    *flags = c->flags;
    *active = c->alive;
    return cuda_leave(SGPU_OK);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    CUresult result = enter_device(dev);
    struct sgpu_context *c;

    if (result != CUDA_SUCCESS)
        return result;
    c = sgpu_context_primary(dev);
    if (c)
        sgpu_context_end(c);
    return cuda_leave(SGPU_OK);
}

/* ---- contexts of the client ---- */

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    CUresult result = enter_device(dev);
    struct sgpu_context *c;
    int status;

    if (result != CUDA_SUCCESS)
        return result;
    status = sgpu_device_check(dev);
    if (status != SGPU_OK || !pctx || depth == STACK_DEPTH)
        return cuda_leave(status != SGPU_OK ? status : SGPU_INVALID_VALUE);
    c = sgpu_context_create(dev, flags);
    if (!c)
        return cuda_leave(SGPU_OUT_OF_MEMORY);
    stack[depth++] = c;
    *pctx = handle_of(c);
    return cuda_leave(SGPU_OK);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
    struct sgpu_context *c = context_of(ctx);
    CUresult result = cuda_enter();

    if (result != CUDA_SUCCESS)
        return result;
    if (!c || !sgpu_context_known(c) || c->primary || !c->alive)
        return cuda_leave(c && sgpu_context_known(c) && !c->primary ? SGPU_CONTEXT_DESTROYED
                                                                    : SGPU_INVALID_CONTEXT);
    sgpu_context_end(c);
    if (cuda_current() == c)
        depth--;
    return cuda_leave(SGPU_OK);
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
    struct sgpu_context *c = context_of(ctx);
    CUresult result = cuda_enter();

    if (result != CUDA_SUCCESS)
        return result;
    if (!c || !sgpu_context_known(c) || depth == STACK_DEPTH)
        return cuda_leave(c && depth == STACK_DEPTH ? SGPU_INVALID_VALUE : SGPU_INVALID_CONTEXT);
    stack[depth++] = c;
    return cuda_leave(SGPU_OK);
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
    CUresult result = cuda_enter();

    if (result != CUDA_SUCCESS)
        return result;
    if (depth == 0)
        return cuda_leave(SGPU_INVALID_CONTEXT);
    depth--;
    if (pctx)
        *pctx = handle_of(stack[depth]);
    return cuda_leave(SGPU_OK);
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
    struct sgpu_context *c = context_of(ctx);
    CUresult result = cuda_enter();

    if (result != CUDA_SUCCESS)
        return result;
    if (c && !sgpu_context_known(c))
        return cuda_leave(SGPU_INVALID_CONTEXT);
    if (depth > 0)
        depth--;
    if (c)
        stack[depth++] = c;
    return cuda_leave(SGPU_OK);
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
    CUresult result = cuda_enter();

    if (result != CUDA_SUCCESS)
        return result;
    if (pctx)
        *pctx = handle_of(cuda_current());
    return cuda_leave(pctx ? SGPU_OK : SGPU_INVALID_VALUE);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);

    if (result != CUDA_SUCCESS)
        return result;
    if (device)
        *device = c->device;
    return cuda_leave(device ? SGPU_OK : SGPU_INVALID_VALUE);
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);

    if (result != CUDA_SUCCESS)
        return result;
    if (flags)
        *flags = c->flags;
    return cuda_leave(flags ? SGPU_OK : SGPU_INVALID_VALUE);
}

/* A context, or the current one for NULL */
static CUresult enter_any_context(CUcontext ctx, struct sgpu_context **c)
{
    CUresult result = cuda_enter();

    if (result != CUDA_SUCCESS)
        return result;
    *c = ctx ? context_of(ctx) : cuda_current();
    return *c && sgpu_context_known(*c) ? CUDA_SUCCESS : cuda_leave(SGPU_INVALID_CONTEXT);
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    struct sgpu_context *c;
    CUresult result = enter_any_context(ctx, &c);

    if (result != CUDA_SUCCESS)
        return result;
    if (ctxId)
        *ctxId = c->id;
    return cuda_leave(ctxId ? SGPU_OK : SGPU_INVALID_VALUE);
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    struct sgpu_context *c;
    CUresult result = enter_any_context(ctx, &c);

    if (result != CUDA_SUCCESS)
        return result;
    if (version)
        *version = 3020;
    return cuda_leave(version ? SGPU_OK : SGPU_INVALID_VALUE);
}

CUresult cuCtxSynchronize(void)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);

    return result != CUDA_SUCCESS ? result : cuda_leave(sgpu_streams_wait(c));
}

/* ---- access to other devices ---- */

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
    struct sgpu_context *c, *peer = context_of(peerContext);
    CUresult result = cuda_enter_context(&c);

    if (result != CUDA_SUCCESS)
        return result;
    if (Flags != 0)
        return cuda_leave(SGPU_INVALID_VALUE);
    if (!peer || !sgpu_context_known(peer) || peer == c)
        return cuda_leave(SGPU_INVALID_CONTEXT);
    if (c->peers & (UINT32_C(1) << peer->device))
        return cuda_leave(SGPU_PEER_ENABLED);
    c->peers |= UINT32_C(1) << peer->device;
    return cuda_leave(SGPU_OK);
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext)
{
    struct sgpu_context *c, *peer = context_of(peerContext);
    CUresult result = cuda_enter_context(&c);

    if (result != CUDA_SUCCESS)
        return result;
    if (!peer || !sgpu_context_known(peer))
        return cuda_leave(SGPU_INVALID_CONTEXT);
    if (!(c->peers & (UINT32_C(1) << peer->device)))
        return cuda_leave(SGPU_PEER_NOT_ENABLED);
    c->peers &= ~(UINT32_C(1) << peer->device);
    return cuda_leave(SGPU_OK);
}
