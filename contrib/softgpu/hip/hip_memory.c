/* SPDX-License-Identifier: BSD-3-Clause
 *
 * HIP's memory: allocation, pinned memory, addresses, IPC. Owns nothing. */
#include "config.h"

#include "contrib/softgpu/hip/hip_entry.h"

static uint64_t number(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* ---- of the device ---- */

hipError_t hipMemGetInfo(size_t *free, size_t *total)
{
    struct sgpu_context *c;
    hipError_t result = hip_enter_context(&c);

    if (result != hipSuccess)
        return result;
    if (free)
        *free = sgpu_config.memory - sgpu_storage_used(c->device);
    if (total)
        *total = sgpu_config.memory;
    return hip_leave(SGPU_OK);
}

hipError_t hipMalloc(void **ptr, size_t size)
{
    struct sgpu_context *c;
    hipError_t result = hip_enter_context(&c);
    uint64_t address = 0;
    int status;

    if (result != hipSuccess)
        return result;
    if (!ptr)
        return hip_leave(SGPU_INVALID_VALUE);
    status = size > 0 ? sgpu_memory_alloc(c, size, &address) : SGPU_OK;
    if (status == SGPU_OK)
        *ptr = pointer(address);
    return hip_leave(status);
}

hipError_t hipFree(void *ptr)
{
    struct sgpu_context *c;
    hipError_t result = hip_enter_context(&c);

    if (result != hipSuccess)
        return result;
    return hip_leave(ptr ? sgpu_memory_free(number(ptr)) : SGPU_OK);
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t *pbase, size_t *psize, hipDeviceptr_t dptr)
{
    struct sgpu_context *c;
    hipError_t result = hip_enter_context(&c);
    struct sgpu_memory *m;

    if (result != hipSuccess)
        return result;
    m = sgpu_memory_find(number(dptr));
    if (!m || !sgpu_memory_on_device(m))
        return hip_leave(SGPU_INVALID_VALUE);
    if (pbase)
        *pbase = pointer(m->address);
    if (psize)
        *psize = m->size;
    return hip_leave(SGPU_OK);
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *ptr)
{
    hipError_t result = hip_enter();
    struct sgpu_memory *m;
    bool device;

    if (result != hipSuccess)
        return result;
    m = sgpu_memory_find(number(ptr));
    if (!attributes || !m)
        return hip_leave(SGPU_INVALID_VALUE);
    device = sgpu_memory_on_device(m);
    *attributes = (hipPointerAttribute_t){
        .memoryType = device ? hipMemoryTypeDevice : hipMemoryTypeHost,
        .device = m->device,
        .devicePointer = pointer(number(ptr)),
        .hostPointer = device ? NULL : pointer(number(ptr)),
        .allocationFlags = m->flags,
    };
    return hip_leave(SGPU_OK);
}

/* ---- pinned memory ---- */

hipError_t hipHostMalloc(void **ptr, size_t size, unsigned int flags)
{
    struct sgpu_context *c;
    hipError_t result = hip_enter_context(&c);

    if (result != hipSuccess)
        return result;
    return hip_leave(ptr ? sgpu_host_alloc(c, size, flags, ptr) : SGPU_INVALID_VALUE);
}

hipError_t hipHostFree(void *ptr)
{
    struct sgpu_context *c;
    hipError_t result = hip_enter_context(&c);

    if (result != hipSuccess)
        return result;
    return hip_leave(ptr ? sgpu_host_free(ptr) : SGPU_OK);
}

hipError_t hipHostRegister(void *hostPtr, size_t sizeBytes, unsigned int flags)
{
    struct sgpu_context *c;
    hipError_t result = hip_enter_context(&c);

    if (result != hipSuccess)
        return result;
    if (flags & hipHostRegisterIoMemory)
        return hip_leave(SGPU_NOT_SUPPORTED);
    return hip_leave(sgpu_host_register(c, hostPtr, sizeBytes, flags));
}

hipError_t hipHostUnregister(void *hostPtr)
{
    struct sgpu_context *c;
    hipError_t result = hip_enter_context(&c);

    return result != hipSuccess ? result : hip_leave(sgpu_host_unregister(hostPtr));
}

hipError_t hipHostGetDevicePointer(void **devPtr, void *hstPtr, unsigned int flags)
{
    hipError_t result = hip_enter();
    struct sgpu_memory *m;

    if (result != hipSuccess)
        return result;
    m = sgpu_memory_find(number(hstPtr));
    if (!devPtr || flags != 0 || !m || sgpu_memory_on_device(m))
        return hip_leave(SGPU_INVALID_VALUE);
    *devPtr = hstPtr;
    return hip_leave(SGPU_OK);
}

/* ---- of other processes ---- */

hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *devPtr)
{
    struct sgpu_context *c;
    hipError_t result = hip_enter_context(&c);

    if (result != hipSuccess)
        return result;
    return hip_leave(handle ? sgpu_ipc_make(number(devPtr), handle) : SGPU_INVALID_VALUE);
}

hipError_t hipIpcOpenMemHandle(void **devPtr, hipIpcMemHandle_t handle, unsigned int flags)
{
    struct sgpu_context *c;
    hipError_t result = hip_enter_context(&c);
    uint64_t address = 0;
    int status;

    if (result != hipSuccess)
        return result;
    if (!devPtr || flags > 1) /* The flag is 0 in ROCm 5, and 1 in newer versions. */
        return hip_leave(SGPU_INVALID_VALUE);
    status = sgpu_ipc_open(c, &handle, &address);
    if (status == SGPU_OK)
        *devPtr = pointer(address);
    return hip_leave(status);
}

hipError_t hipIpcCloseMemHandle(void *devPtr)
{
    struct sgpu_context *c;
    hipError_t result = hip_enter_context(&c);

    return result != hipSuccess ? result : hip_leave(sgpu_ipc_close(number(devPtr)));
}
