/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the driver API says about addresses. Owns nothing. */
#include "config.h"

#include <string.h>

#include "contrib/softgpu/cuda/cuda_entry.h"

/* The size of the answer in bytes; 0: softgpu does not know the attribute. */
static size_t attribute_size(CUpointer_attribute attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        return sizeof(void *);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        return sizeof(CUdeviceptr);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        return sizeof(size_t);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        return sizeof(unsigned long long);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return sizeof(unsigned);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return sizeof(int);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        return sizeof(_Bool);
    default:
        return 0;
    }
}

static uint64_t answer(const struct sgpu_memory *m, CUpointer_attribute attribute, uint64_t address)
{
    bool device = sgpu_memory_on_device(m);

    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        return (uint64_t)(uintptr_t)m->context;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        return address;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        return device ? 0 : address;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        return m->address;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        return m->size;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        return m->id;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        return (uint64_t)m->device;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        return m->sync_memops;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        return m->kind == SGPU_DEVICE && !sgpu_config.no_ipc;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        return m->accessible;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        return device && !m->storage->foreign && !(sgpu_config.no_dmabuf && sgpu_config.no_peermem);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return m->accessible ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : 0;
    default:
        return 0;
    }
}

/* Does the attribute have a value here? Device memory has no host pointer. */
static bool has_answer(const struct sgpu_memory *m, CUpointer_attribute attribute)
{
    return m && !(attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER && sgpu_memory_on_device(m));
}

/* Stores the answer in the attribute's own type, so it is right for either byte order. */
static void store(void *out, CUpointer_attribute attribute, uint64_t value)
{
    size_t size = attribute_size(attribute);
    uint32_t small = (uint32_t)value;
    _Bool truth = value != 0;

    if (size == sizeof(uint64_t))
        memcpy(out, &value, sizeof value);
    else if (size == sizeof(uint32_t))
        memcpy(out, &small, sizeof small);
    else
        memcpy(out, &truth, sizeof truth);
}

/* For an address that CUDA does not know: zero, except for the device ordinal, which is then
 * invalid. */
static uint64_t no_answer(CUpointer_attribute attribute)
{
    return attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? (uint64_t)CU_DEVICE_INVALID : 0;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    CUresult result = cuda_enter();
    struct sgpu_memory *m;

    if (result != CUDA_SUCCESS)
        return result;
    m = sgpu_memory_find(ptr);
    if (!data || attribute_size(attribute) == 0 || !has_answer(m, attribute))
        return cuda_leave(SGPU_INVALID_VALUE);
    store(data, attribute, answer(m, attribute, ptr));
    return cuda_leave(SGPU_OK);
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes,
                                void **data, CUdeviceptr ptr)
{
    CUresult result = cuda_enter();
    struct sgpu_memory *m;

    if (result != CUDA_SUCCESS)
        return result;
    m = sgpu_memory_find(ptr);
    if (numAttributes == 0 || !attributes || !data)
        return cuda_leave(SGPU_INVALID_VALUE);
    for (unsigned i = 0; i < numAttributes; i++)
        if (attribute_size(attributes[i]) == 0)
            return cuda_leave(SGPU_INVALID_VALUE);
    for (unsigned i = 0; i < numAttributes; i++)
        store(data[i], attributes[i],
              has_answer(m, attributes[i]) ? answer(m, attributes[i], ptr)
                                           : no_answer(attributes[i]));
    return cuda_leave(SGPU_OK);
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    CUresult result = cuda_enter();
    struct sgpu_memory *m;

    if (result != CUDA_SUCCESS)
        return result;
    m = sgpu_memory_find(ptr);
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !m || m->kind != SGPU_DEVICE)
        return cuda_leave(SGPU_INVALID_VALUE);
    m->sync_memops = *(const unsigned char *)value != 0;
    return cuda_leave(SGPU_OK);
}
