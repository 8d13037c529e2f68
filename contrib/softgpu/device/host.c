/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pinned host memory, which the CPU accesses as any other: what matters is that asynchronous copies
 * from and to it are really asynchronous. Owns what it allocates. */
#include "config.h"

#include <sys/mman.h>

#include "contrib/softgpu/device/device.h"

int sgpu_host_alloc(struct sgpu_context *c, uint64_t size, unsigned flags, void **out)
{
    struct sgpu_memory range = {.size = size,
                                .kind = SGPU_PINNED,
                                .context = c,
                                .device = c->device,
                                .flags = flags,
                                .accessible = true};
    int status = sgpu_fault_call(SGPU_FAULT_ALLOC, c->device);
    void *p;

    if (status != SGPU_OK)
        return status;
    if (size == 0 || size > (UINT64_C(1) << 46))
        return size == 0 ? SGPU_INVALID_VALUE : SGPU_OUT_OF_MEMORY;
    range.length = sgpu_round(size);
    p = mmap(NULL, range.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return SGPU_OUT_OF_MEMORY;
    range.address = (uint64_t)(uintptr_t)p;
    if (!sgpu_memory_add(&range)) {
        munmap(p, range.length);
        return SGPU_OUT_OF_MEMORY;
    }
    *out = p;
    return SGPU_OK;
}

/* The memory that begins at the address, after waiting for its device; NULL: none of that kind */
static struct sgpu_memory *host_find(void *address, enum sgpu_memory_kind kind)
{
    uint64_t at = (uint64_t)(uintptr_t)address;
    struct sgpu_memory *m = sgpu_memory_find(at);

    if (!m || m->kind != kind || m->address != at)
        return NULL;
    sgpu_device_wait(m->device);
    m = sgpu_memory_find(at);
    return m && m->kind == kind && m->address == at ? m : NULL;
}

int sgpu_host_free(void *address)
{
    struct sgpu_memory *m = host_find(address, SGPU_PINNED);

    if (!m)
        return SGPU_INVALID_VALUE;
    munmap(address, m->length);
    sgpu_memory_remove(m);
    return SGPU_OK;
}

int sgpu_host_register(struct sgpu_context *c, void *address, uint64_t size, unsigned flags)
{
    struct sgpu_memory range = {.address = (uint64_t)(uintptr_t)address,
                                .size = size,
                                .length = size,
                                .kind = SGPU_REGISTERED,
                                .context = c,
                                .device = c->device,
                                .flags = flags,
                                .accessible = true};
    int status = sgpu_fault_call(SGPU_FAULT_ALLOC, c->device);

    if (status != SGPU_OK)
        return status;
    if (!address || size == 0 || range.address + size < size)
        return SGPU_INVALID_VALUE;
    if (sgpu_memory_overlaps(range.address, size))
        return SGPU_HOST_REGISTERED;
    return sgpu_memory_add(&range) ? SGPU_OK : SGPU_OUT_OF_MEMORY;
}

int sgpu_host_unregister(void *address)
{
    struct sgpu_memory *m = host_find(address, SGPU_REGISTERED);

    if (!m)
        return SGPU_HOST_NOT_REGISTERED;
    sgpu_memory_remove(m);
    return SGPU_OK;
}
