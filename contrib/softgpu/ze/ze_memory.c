/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Level Zero's memory. No state, no lock. */
#include "config.h"

#include "contrib/softgpu/ze/ze_entry.h"

static uint64_t number(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* ---- allocation ---- */

/* The beginning of all descriptors */
struct extension {
    ze_structure_type_t stype;
    const void *next;
};

static const void *find_extension(const void *chain, ze_structure_type_t type)
{
    const struct extension *e = chain;

    while (e && e->stype != type)
        e = e->next;
    return e;
}

static int alloc_checked(ze_context_handle_t context, int device, size_t size, bool exported,
                         void **out)
{
    struct sgpu_context *c;
    uint64_t address;
    int status = ze_context_of(context, device, &c);

    if (status == SGPU_OK && exported && sgpu_config.no_dmabuf)
        status = SGPU_NOT_SUPPORTED;
    if (status == SGPU_OK)
        status = sgpu_memory_alloc(c, size, &address);
    if (status != SGPU_OK)
        return status;
    sgpu_memory_find(address)->flags = exported ? ZE_MEMORY_FOR_EXPORT : 0;
    *out = (void *)(uintptr_t)address;
    return SGPU_OK;
}

static bool legal_alignment(size_t alignment)
{
    return (alignment & (alignment - 1)) == 0 && alignment <= SGPU_ALIGNMENT;
}

ze_result_t zeMemAllocDevice(ze_context_handle_t hContext,
                             const ze_device_mem_alloc_desc_t *device_desc, size_t size,
                             size_t alignment, ze_device_handle_t hDevice, void **pptr)
{
    const ze_external_memory_export_desc_t *e;
    ze_result_t result = ze_enter();

    if (result != ZE_RESULT_SUCCESS)
        return result;
    if (!device_desc || !pptr || !legal_alignment(alignment))
        return ze_leave(SGPU_INVALID_VALUE);
    e = find_extension(device_desc->pNext, ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC);
    if (e && e->flags != ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF)
        return ze_leave(SGPU_NOT_SUPPORTED);
    return ze_leave(alloc_checked(hContext, ze_device(hDevice), size, e != NULL, pptr));
}

ze_result_t zeMemAllocHost(ze_context_handle_t hContext, const ze_host_mem_alloc_desc_t *host_desc,
                           size_t size, size_t alignment, void **pptr)
{
    struct sgpu_context *c;
    ze_result_t result = ze_enter();
    int status;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    if (!host_desc || !pptr || !legal_alignment(alignment) || alignment > sgpu_round(1))
        return ze_leave(SGPU_INVALID_VALUE);
    status = ze_context_of(hContext, 0, &c);
    return ze_leave(status == SGPU_OK ? sgpu_host_alloc(c, size, 0, pptr) : status);
}

ze_result_t zeMemFree(ze_context_handle_t hContext, void *ptr)
{
    ze_result_t result = ze_enter();
    struct sgpu_memory *m;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    m = sgpu_memory_find(number(ptr));
    if (!ze_context_known(hContext) || !ze_context_holds(hContext, m))
        return ze_leave(SGPU_INVALID_VALUE);
    if (!sgpu_memory_on_device(m))
        return ze_leave(sgpu_host_free(ptr));
    ze_dmabuf_forget(hContext, m->address);
    return ze_leave(sgpu_memory_free(number(ptr)));
}

/* ---- addresses ---- */

ze_result_t zeMemGetAllocProperties(ze_context_handle_t hContext, const void *ptr,
                                    ze_memory_allocation_properties_t *pMemAllocProperties,
                                    ze_device_handle_t *phDevice)
{
    ze_memory_allocation_properties_t *p = pMemAllocProperties;
    ze_result_t result = ze_enter();
    const void *e;
    struct sgpu_memory *m;
    bool device;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    if (!ze_context_known(hContext) || !ptr || !p)
        return ze_leave(p ? SGPU_INVALID_HANDLE : SGPU_INVALID_VALUE);
    m = sgpu_memory_find(number(ptr));
    m = ze_context_holds(hContext, m) ? m : NULL;
    device = m && sgpu_memory_on_device(m);
    p->type = device ? ZE_MEMORY_TYPE_DEVICE : m ? ZE_MEMORY_TYPE_HOST : ZE_MEMORY_TYPE_UNKNOWN;
    p->id = m ? m->id : 0;
    p->pageSize = m ? sgpu_round(1) : 0;
    if (phDevice)
        *phDevice = device ? ze_device_handle(m->device) : NULL;
    e = find_extension(p->pNext, ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD);
    if (!e)
        return ze_leave(SGPU_OK);
    return ze_leave(device ? ze_dmabuf_export(hContext, m,
                                              &((ze_external_memory_export_fd_t *)(uintptr_t)e)->fd)
                           : SGPU_INVALID_VALUE);
}

ze_result_t zeMemGetAddressRange(ze_context_handle_t hContext, const void *ptr, void **pBase,
                                 size_t *pSize)
{
    ze_result_t result = ze_enter();
    struct sgpu_memory *m;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    m = sgpu_memory_find(number(ptr));
    if (!ze_context_known(hContext) || !ze_context_holds(hContext, m))
        return ze_leave(SGPU_INVALID_VALUE);
    if (pBase)
        *pBase = (void *)(uintptr_t)m->address;
    if (pSize)
        *pSize = m->size;
    return ze_leave(SGPU_OK);
}
