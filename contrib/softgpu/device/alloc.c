/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Allocating and freeing memory of a device. Owns nothing. */
#include "config.h"

#include <sys/mman.h>

#include "contrib/softgpu/device/device.h"

int sgpu_memory_alloc(struct sgpu_context *c, uint64_t size, uint64_t *address)
{
    struct sgpu_memory range = {.size = size,
                                .kind = SGPU_DEVICE,
                                .context = c,
                                .device = c->device,
                                .accessible = true,
                                .rdma = true};
    int status = sgpu_fault_call(SGPU_FAULT_ALLOC, c->device);

    if (status != SGPU_OK)
        return status;
    if (size == 0)
        return SGPU_INVALID_VALUE;
    if (size > sgpu_config.memory)
        return SGPU_OUT_OF_MEMORY;
    range.length = sgpu_round(size);
    range.storage = sgpu_storage_create(c->device, range.length);
    if (!range.storage)
        return SGPU_OUT_OF_MEMORY;
    range.address = sgpu_reserve(range.length, SGPU_ALIGNMENT);
    if (range.address && sgpu_memory_add(&range)) {
        *address = range.address;
        return SGPU_OK;
    }
    if (range.address)
        sgpu_unreserve(range.address, range.length);
    sgpu_storage_put(range.storage);
    return SGPU_OUT_OF_MEMORY;
}

/* The range can be reused once the operations that use it are done. */
static void memory_release(struct sgpu_memory *m)
{
    if (m->kind == SGPU_PINNED)
        munmap((void *)(uintptr_t)m->address, m->length);
    else if (m->kind != SGPU_REGISTERED)
        sgpu_unreserve(m->address, m->length);
    sgpu_memory_remove(m);
}

int sgpu_memory_free(uint64_t address)
{
    struct sgpu_memory *m = sgpu_memory_find(address);

    if (!m || m->address != address || m->kind != SGPU_DEVICE)
        return SGPU_INVALID_VALUE;
    sgpu_device_wait(m->device);
    /* Another thread may have freed it during the wait. */
    m = sgpu_memory_find(address);
    if (!m || m->address != address || m->kind != SGPU_DEVICE)
        return SGPU_INVALID_VALUE;
    memory_release(m);
    return SGPU_OK;
}

void sgpu_memory_end(const struct sgpu_context *c)
{
    struct sgpu_memory *next;

    for (struct sgpu_memory *m = sgpu_memory_next(NULL); m; m = next) {
        next = sgpu_memory_next(m);
        if (m->context == c)
            memory_release(m);
    }
}
