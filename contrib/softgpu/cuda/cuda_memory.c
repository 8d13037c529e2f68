/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The driver API's memory: allocation, pinned memory, dma-bufs, IPC. Owns nothing. */
#include "config.h"

#include <errno.h>
#include <unistd.h>

#include "common/dmabuf_standin.h"
#include "contrib/softgpu/cuda/cuda_entry.h"

/* ---- of the device ---- */

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);

    if (result != CUDA_SUCCESS)
        return result;
    if (free)
        *free = sgpu_config.memory - sgpu_storage_used(c->device);
    if (total)
        *total = sgpu_config.memory;
    return cuda_leave(SGPU_OK);
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);
    uint64_t address = 0;
    int status;

    if (result != CUDA_SUCCESS)
        return result;
    status = dptr ? sgpu_memory_alloc(c, bytesize, &address) : SGPU_INVALID_VALUE;
    if (status == SGPU_OK)
        *dptr = address;
    return cuda_leave(status);
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);

    if (result != CUDA_SUCCESS)
        return result;
    return cuda_leave(dptr ? sgpu_memory_free(dptr) : SGPU_OK);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);
    struct sgpu_memory *m;

    if (result != CUDA_SUCCESS)
        return result;
    m = sgpu_memory_find(dptr);
    if (!m || !sgpu_memory_on_device(m))
        return cuda_leave(SGPU_NOT_FOUND);
    if (pbase)
        *pbase = m->address;
    if (psize)
        *psize = m->size;
    return cuda_leave(SGPU_OK);
}

/* ---- pinned memory ---- */

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);

    if (result != CUDA_SUCCESS)
        return result;
    return cuda_leave(pp && Flags <= 7 ? sgpu_host_alloc(c, bytesize, Flags, pp)
                                       : SGPU_INVALID_VALUE);
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    return cuMemHostAlloc(pp, bytesize, 0);
}

CUresult cuMemFreeHost(void *p)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);

    return result != CUDA_SUCCESS ? result : cuda_leave(sgpu_host_free(p));
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);

    if (result != CUDA_SUCCESS)
        return result;
    if (Flags & CU_MEMHOSTREGISTER_IOMEMORY)
        return cuda_leave(SGPU_NOT_SUPPORTED);
    return cuda_leave(sgpu_host_register(c, p, bytesize, Flags));
}

CUresult cuMemHostUnregister(void *p)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);

    return result != CUDA_SUCCESS ? result : cuda_leave(sgpu_host_unregister(p));
}

/* Locks and finds pinned memory. */
static CUresult enter_pinned(const void *p, struct sgpu_memory **m)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);

    if (result != CUDA_SUCCESS)
        return result;
    *m = sgpu_memory_find((uint64_t)(uintptr_t)p);
    return *m && !sgpu_memory_on_device(*m) ? CUDA_SUCCESS : cuda_leave(SGPU_INVALID_VALUE);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    struct sgpu_memory *m;
    CUresult result = enter_pinned(p, &m);

    if (result != CUDA_SUCCESS)
        return result;
    if (!pdptr || Flags != 0)
        return cuda_leave(SGPU_INVALID_VALUE);
    *pdptr = (CUdeviceptr)(uintptr_t)p;
    return cuda_leave(SGPU_OK);
}

CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
    struct sgpu_memory *m;
    CUresult result = enter_pinned(p, &m);

    if (result != CUDA_SUCCESS)
        return result;
    if (pFlags)
        *pFlags = m->flags;
    return cuda_leave(pFlags ? SGPU_OK : SGPU_INVALID_VALUE);
}

/* ---- for HCAs ---- */

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size,
                                       CUmemRangeHandleType handleType, unsigned long long flags)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);
    int fd = -1, status;

    if (result != CUDA_SUCCESS)
        return result;
    if (!handle || handleType != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags != 0)
        return cuda_leave(SGPU_INVALID_VALUE);
    status = sgpu_export(dptr, size, true, &fd);
    if (status == SGPU_OK)
        *(int *)handle = fd;
    return cuda_leave(status);
}

/* ---- of other processes ---- */

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);

    if (result != CUDA_SUCCESS)
        return result;
    return cuda_leave(pHandle ? sgpu_ipc_make(dptr, pHandle) : SGPU_INVALID_VALUE);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);
    uint64_t address = 0;
    int status;

    if (result != CUDA_SUCCESS)
        return result;
    if (!pdptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return cuda_leave(SGPU_INVALID_VALUE);
    status = sgpu_ipc_open(c, &handle, &address);
    if (status == SGPU_OK)
        *pdptr = address;
    return cuda_leave(status);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    struct sgpu_context *c;
    CUresult result = cuda_enter_context(&c);

    return result != CUDA_SUCCESS ? result : cuda_leave(sgpu_ipc_close(dptr));
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
    (void)pHandle;
    (void)event;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
    (void)phEvent;
    (void)handle;
    return CUDA_ERROR_NOT_SUPPORTED;
}
