/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The driver API's virtual memory management. Owns nothing. */
#include "config.h"

#include "contrib/softgpu/cuda/cuda_entry.h"

static bool legal(const CUmemAllocationProp *prop)
{
    return prop && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    CUresult result = cuda_enter();

    if (result != CUDA_SUCCESS)
        return result;
    if (!granularity || !legal(prop) || (unsigned)option > 1)
        return cuda_leave(SGPU_INVALID_VALUE);
    *granularity = SGPU_GRANULARITY;
    return cuda_leave(SGPU_OK);
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags)
{
    CUresult result = cuda_enter();
    uint64_t address = 0;
    int status;

    (void)addr; /* a hint */
    if (result != CUDA_SUCCESS)
        return result;
    status = ptr && flags == 0 ? sgpu_vmm_reserve(size, alignment, &address) : SGPU_INVALID_VALUE;
    if (status == SGPU_OK)
        *ptr = address;
    return cuda_leave(status);
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    CUresult result = cuda_enter();

    return result != CUDA_SUCCESS ? result : cuda_leave(sgpu_vmm_unreserve(ptr, size));
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    CUresult result = cuda_enter();
    uint64_t number = 0;
    int status;

    if (result != CUDA_SUCCESS)
        return result;
    if (!handle || flags != 0 || !legal(prop))
        return cuda_leave(SGPU_INVALID_VALUE);
    if (!sgpu_device_exists(prop->location.id))
        return cuda_leave(SGPU_INVALID_DEVICE);
    if (prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return cuda_leave(SGPU_NOT_SUPPORTED);
    status = sgpu_device_check(prop->location.id);
    if (status == SGPU_OK)
        status = sgpu_vmm_create(prop->location.id, size, prop->allocFlags.gpuDirectRDMACapable,
                                 &number);
    if (status == SGPU_OK)
        *handle = number;
    return cuda_leave(status);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult result = cuda_enter();

    return result != CUDA_SUCCESS ? result : cuda_leave(sgpu_vmm_release(handle));
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    CUresult result = cuda_enter();

    if (result != CUDA_SUCCESS)
        return result;
    /* The documentation requires offset 0. */
    return cuda_leave(offset == 0 && flags == 0 ? sgpu_vmm_map(ptr, size, handle)
                                                : SGPU_INVALID_VALUE);
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    CUresult result = cuda_enter();

    return result != CUDA_SUCCESS ? result : cuda_leave(sgpu_vmm_unmap(ptr, size));
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
    CUresult result = cuda_enter();
    struct sgpu_memory *m;
    int status = SGPU_OK;

    if (result != CUDA_SUCCESS)
        return result;
    m = sgpu_memory_find(ptr);
    if (!m || !desc || count == 0)
        return cuda_leave(SGPU_INVALID_VALUE);
    for (size_t i = 0; i < count && status == SGPU_OK; i++)
        if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            !sgpu_device_exists(desc[i].location.id))
            status = SGPU_INVALID_VALUE;
        else if (desc[i].location.id == m->device)
            status =
                sgpu_vmm_access(ptr, size, desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    return cuda_leave(status);
}
