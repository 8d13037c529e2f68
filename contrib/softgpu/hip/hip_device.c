/* SPDX-License-Identifier: BSD-3-Clause
 *
 * HIP's start, errors, devices and contexts. Owns the devices of threads: the top of a stack, as
 * the old functions for contexts have it. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "contrib/softgpu/device/place.h"
#include "contrib/softgpu/hip/hip_entry.h"

enum { STACK_DEPTH = 64 };
static __thread int stack[STACK_DEPTH]; /* devices; the lowest is always there */
static __thread unsigned depth;         /* above the lowest */
static __thread hipError_t last_error;
static bool retained[SGPU_DEVICES_MAX];

/* ---- how calls begin and end ---- */

hipError_t hip_result(int status)
{
    if (status != SGPU_OK)
        last_error = (hipError_t)status;
    return (hipError_t)status;
}

hipError_t hip_leave(int status)
{
    sgpu_leave(status);
    return hip_result(status);
}

hipError_t hip_enter(void)
{
    int status = sgpu_start();

    if (status == SGPU_OK)
        sgpu_enter();
    return hip_result(status);
}

static struct sgpu_context *context_of(int device, int *status)
{
    struct sgpu_context *c = sgpu_context_primary(device);

    *status = c ? SGPU_OK : SGPU_OUT_OF_MEMORY;
    if (c && (!retained[device] || !c->alive))
        *status = sgpu_context_retain(device, &c);
    retained[device] = *status == SGPU_OK;
    return c;
}

hipError_t hip_enter_context(struct sgpu_context **c)
{
    hipError_t result = hip_enter();
    int status;

    if (result != hipSuccess)
        return result;
    *c = context_of(stack[depth], &status);
    if (status == SGPU_OK)
        status = sgpu_context_check(*c);
    return status == SGPU_OK ? hipSuccess : hip_leave(status);
}

hipError_t hip_enter_stream(hipStream_t handle, struct sgpu_context **c, struct sgpu_stream **s)
{
    hipError_t result = hip_enter_context(c);

    if (result != hipSuccess)
        return result;
    *s = sgpu_stream_resolve(*c, handle);
    return *s ? hipSuccess : hip_leave(SGPU_INVALID_HANDLE);
}

/* ---- start and errors ---- */

hipError_t hipInit(unsigned int flags)
{
    return hip_result(flags != 0 ? SGPU_INVALID_VALUE : sgpu_start());
}

static hipError_t version(int *out)
{
    if (!out)
        return hip_result(SGPU_INVALID_VALUE);
    *out = HIP_VERSION_MAJOR * 10000000 + HIP_VERSION_MINOR * 100000;
    return hipSuccess;
}

hipError_t hipDriverGetVersion(int *driverVersion)
{
    return version(driverVersion);
}

hipError_t hipRuntimeGetVersion(int *runtimeVersion)
{
    return version(runtimeVersion);
}

hipError_t hipPeekAtLastError(void)
{
    return last_error;
}

hipError_t hipGetLastError(void)
{
    hipError_t error = last_error;

    last_error = hipSuccess;
    return error;
}

const char *hipGetErrorName(hipError_t hip_error)
{
    const struct sgpu_status_text *t = sgpu_status_text((int)hip_error);

    return t ? t->hip : "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t hipError)
{
    const struct sgpu_status_text *t = sgpu_status_text((int)hipError);

    return t ? t->text : "unknown error";
}

/* ---- devices ---- */

/* Device queries need no lock: the properties of a device never change. */
static hipError_t check(int device, const void *out)
{
    int status = sgpu_start();

    if (status == SGPU_OK && !out)
        status = SGPU_INVALID_VALUE;
    if (status == SGPU_OK && !sgpu_device_exists(device))
        status = SGPU_INVALID_DEVICE;
    return hip_result(status);
}

hipError_t hipGetDeviceCount(int *count)
{
    hipError_t result = check(0, count);

    if (result == hipSuccess)
        *count = (int)sgpu_config.devices;
    return result;
}

hipError_t hipSetDevice(int deviceId)
{
    hipError_t result = check(deviceId, &deviceId);

    if (result == hipSuccess)
        stack[depth] = deviceId;
    return result;
}

hipError_t hipGetDevice(int *deviceId)
{
    hipError_t result = check(0, deviceId);

    if (result == hipSuccess)
        *deviceId = stack[depth];
    return result;
}

hipError_t hipDeviceGet(hipDevice_t *device, int ordinal)
{
    hipError_t result = check(ordinal, device);

    if (result == hipSuccess)
        *device = ordinal;
    return result;
}

static hipError_t fill(char *out, int len, int device,
                       void (*text)(char *out, size_t n, int device))
{
    hipError_t result = check(device, out);

    if (result != hipSuccess || len <= 0)
        return result != hipSuccess ? result : hip_result(SGPU_INVALID_VALUE);
    text(out, (size_t)len, device);
    return hipSuccess;
}

hipError_t hipDeviceGetName(char *name, int len, hipDevice_t device)
{
    return fill(name, len, device, sgpu_device_name);
}

hipError_t hipDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
    return fill(pciBusId, len, device, sgpu_device_pci);
}

hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device)
{
    hipError_t result = check(device, uuid);

    if (result == hipSuccess)
        sgpu_device_uuid(uuid->bytes, device);
    return result;
}

hipError_t hipDeviceGetByPCIBusId(int *device, const char *pciBusId)
{
    hipError_t result = check(0, device);
    char text[32];

    if (result != hipSuccess || !pciBusId)
        return result != hipSuccess ? result : hip_result(SGPU_INVALID_VALUE);
    for (int i = 0; sgpu_device_exists(i); i++) {
        sgpu_device_pci(text, sizeof text, i);
        if (strcasecmp(text, pciBusId) == 0) {
            *device = i;
            return hipSuccess;
        }
    }
    return hip_result(SGPU_INVALID_VALUE);
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device)
{
    hipError_t result = check(device, bytes);

    if (result == hipSuccess)
        *bytes = sgpu_config.memory;
    return result;
}

hipError_t hipDeviceGetAttribute(int *pi, hipDeviceAttribute_t attr, int deviceId)
{
    hipError_t result = check(deviceId, pi);

    if (result != hipSuccess)
        return result;
    switch (attr) {
    case hipDeviceAttributePciBusId:
        *pi = SGPU_PCI_BUS + deviceId;
        break;
    case hipDeviceAttributePciDeviceId:
        *pi = SGPU_PCI_SLOT;
        break;
    case hipDeviceAttributePciDomainID:
        *pi = SGPU_PCI_DOMAIN;
        break;
    case hipDeviceAttributeUnifiedAddressing:
        *pi = !sgpu_config.no_uva;
        break;
    case hipDeviceAttributeWarpSize:
        *pi = 64;
        break;
    case hipDeviceAttributeIsLargeBar:
        *pi = sgpu_config.bar == 0;
        break;
    case hipDeviceAttributeIntegrated:
        *pi = 0;
        break;
    case hipDeviceAttributeAsyncEngineCount:
    case hipDeviceAttributeCanMapHostMemory:
    case hipDeviceAttributeMultiprocessorCount:
        *pi = 1;
        break;
    default:
        return hip_result(SGPU_INVALID_VALUE);
    }
    return hipSuccess;
}

hipError_t hipDeviceSynchronize(void)
{
    struct sgpu_context *c;
    hipError_t result = hip_enter_context(&c);

    return result != hipSuccess ? result : hip_leave(sgpu_streams_wait(c));
}

hipError_t hipDeviceReset(void)
{
    hipError_t result = hip_enter();
    struct sgpu_context *c;

    if (result != hipSuccess)
        return result;
    c = sgpu_context_primary(stack[depth]);
    if (c)
        sgpu_context_end(c);
    return hip_leave(SGPU_OK);
}

hipError_t hipDeviceCanAccessPeer(int *canAccessPeer, int deviceId, int peerDeviceId)
{
    hipError_t result = check(deviceId, canAccessPeer);

    if (result == hipSuccess)
        result = check(peerDeviceId, canAccessPeer);
    if (result == hipSuccess)
        *canAccessPeer = deviceId != peerDeviceId;
    return result;
}

static hipError_t enter_peer(int peer, struct sgpu_context **c)
{
    hipError_t result = hip_enter_context(c);

    if (result != hipSuccess)
        return result;
    return sgpu_device_exists(peer) && peer != (*c)->device ? hipSuccess
                                                            : hip_leave(SGPU_INVALID_DEVICE);
}

hipError_t hipDeviceEnablePeerAccess(int peerDeviceId, unsigned int flags)
{
    struct sgpu_context *c;
    hipError_t result = enter_peer(peerDeviceId, &c);

    if (result != hipSuccess)
        return result;
    if (flags != 0)
        return hip_leave(SGPU_INVALID_VALUE);
    if (c->peers & (UINT32_C(1) << peerDeviceId))
        return hip_leave(SGPU_PEER_ENABLED);
    c->peers |= UINT32_C(1) << peerDeviceId;
    return hip_leave(SGPU_OK);
}

hipError_t hipDeviceDisablePeerAccess(int peerDeviceId)
{
    struct sgpu_context *c;
    hipError_t result = enter_peer(peerDeviceId, &c);

    if (result != hipSuccess)
        return result;
    if (!(c->peers & (UINT32_C(1) << peerDeviceId)))
        return hip_leave(SGPU_PEER_NOT_ENABLED);
    c->peers &= ~(UINT32_C(1) << peerDeviceId);
    return hip_leave(SGPU_OK);
}

/* ---- contexts ---- */

static hipError_t current(hipCtx_t *ctx, unsigned at)
{
    hipError_t result = hip_enter();
    int status;

    if (result != hipSuccess)
        return result;
    if (!ctx)
        return hip_leave(SGPU_INVALID_VALUE);
    *ctx = (hipCtx_t)(void *)context_of(stack[at], &status);
    return hip_leave(status);
}

hipError_t hipCtxGetCurrent(hipCtx_t *ctx)
{
    return current(ctx, depth);
}

static hipError_t make_current(hipCtx_t ctx, unsigned at)
{
    struct sgpu_context *c = (struct sgpu_context *)(void *)ctx;
    hipError_t result = hip_enter();

    if (result != hipSuccess)
        return result;
    if (!c || !sgpu_context_known(c) || at == STACK_DEPTH)
        return hip_leave(SGPU_INVALID_CONTEXT);
    stack[at] = c->device;
    depth = at;
    return hip_leave(SGPU_OK);
}

hipError_t hipCtxSetCurrent(hipCtx_t ctx)
{
    return make_current(ctx, depth);
}

hipError_t hipCtxPushCurrent(hipCtx_t ctx)
{
    return make_current(ctx, depth + 1);
}

hipError_t hipCtxPopCurrent(hipCtx_t *ctx)
{
    hipCtx_t ignored;
    hipError_t result =
        depth > 0 ? current(ctx ? ctx : &ignored, depth) : hip_result(SGPU_INVALID_CONTEXT);

    if (result == hipSuccess)
        depth--;
    return result;
}

hipError_t hipCtxGetDevice(hipDevice_t *device)
{
    return hipGetDevice(device);
}

hipError_t hipCtxSynchronize(void)
{
    return hipDeviceSynchronize();
}

hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *pctx, hipDevice_t dev)
{
    struct sgpu_context *c = NULL;
    hipError_t result = check(dev, pctx);

    if (result == hipSuccess)
        result = hip_enter();
    if (result != hipSuccess)
        return result;
    result = hip_leave(sgpu_context_retain(dev, &c));
    if (result == hipSuccess)
        *pctx = (hipCtx_t)(void *)c;
    return result;
}

hipError_t hipDevicePrimaryCtxRelease(hipDevice_t dev)
{
    hipError_t result = check(dev, &dev);

    if (result == hipSuccess)
        result = hip_enter();
    return result != hipSuccess ? result : hip_leave(sgpu_context_release(dev));
}

hipError_t hipDevicePrimaryCtxGetState(hipDevice_t dev, unsigned int *flags, int *active)
{
    hipError_t result = check(dev, flags && active ? active : NULL);
    struct sgpu_context *c;

    if (result == hipSuccess)
        result = hip_enter();
    if (result != hipSuccess)
        return result;
    c = sgpu_context_primary(dev);
    *flags = c ? c->flags : 0;
    *active = c && c->alive;
    return hip_leave(SGPU_OK);
}
