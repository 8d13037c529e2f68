/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Virtual memory management (cuMemCreate, cuMemMap): addresses and memory that the client joins by
 * itself. Owns the lists of reservations and of handles; what is mapped is in the table of memory,
 * and belongs to no context. */
#include "config.h"

#include <stdlib.h>

#include "contrib/softgpu/device/device.h"

struct reservation {
    struct reservation *next;
    uint64_t address, length;
};

struct physical {
    struct physical *next;
    uint64_t handle;
    struct sgpu_storage *storage;
    bool rdma;
};

static struct reservation *reservations;
static struct physical *physicals;

static bool granular(uint64_t size)
{
    return size > 0 && size % SGPU_GRANULARITY == 0;
}

/* ---- addresses ---- */

int sgpu_vmm_reserve(uint64_t size, uint64_t alignment, uint64_t *address)
{
    struct reservation *r;

    if (!granular(size) || (alignment & (alignment - 1)) != 0)
        return SGPU_INVALID_VALUE;
    if (alignment < SGPU_GRANULARITY)
        alignment = SGPU_GRANULARITY;
    r = malloc(sizeof *r);
    if (!r)
        return SGPU_OUT_OF_MEMORY;
    *r = (struct reservation){reservations, sgpu_reserve(size, alignment), size};
    if (!r->address) {
        free(r);
        return SGPU_OUT_OF_MEMORY;
    }
    reservations = r;
    *address = r->address;
    return SGPU_OK;
}

int sgpu_vmm_unreserve(uint64_t address, uint64_t size)
{
    struct reservation **at = &reservations, *r;

    while (*at && (*at)->address != address)
        at = &(*at)->next;
    r = *at;
    if (!r || r->length != size || sgpu_memory_overlaps(address, size))
        return SGPU_INVALID_VALUE;
    *at = r->next;
    sgpu_unreserve(address, size);
    free(r);
    return SGPU_OK;
}

static bool reserved(uint64_t address, uint64_t size)
{
    for (const struct reservation *r = reservations; r; r = r->next)
        if (address - r->address < r->length && size <= r->length - (address - r->address))
            return true;
    return false;
}

/* ---- memory ---- */

int sgpu_vmm_create(int device, uint64_t size, bool rdma, uint64_t *handle)
{
    int status = sgpu_fault_call(SGPU_FAULT_ALLOC, device);
    struct physical *p;

    if (status != SGPU_OK)
        return status;
    if (!granular(size))
        return SGPU_INVALID_VALUE;
    p = malloc(sizeof *p);
    if (!p)
        return SGPU_OUT_OF_MEMORY;
    *p = (struct physical){physicals, sgpu_next_id(),
                           size <= sgpu_config.memory ? sgpu_storage_create(device, size) : NULL,
                           rdma};
    if (!p->storage) {
        free(p);
        return SGPU_OUT_OF_MEMORY;
    }
    physicals = p;
    *handle = p->handle;
    return SGPU_OK;
}

static struct physical **physical_find(uint64_t handle)
{
    struct physical **at = &physicals;

    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    return at;
}

int sgpu_vmm_release(uint64_t handle)
{
    struct physical **at = physical_find(handle), *p = *at;

    if (!p)
        return SGPU_INVALID_VALUE;
    *at = p->next;
    sgpu_storage_put(p->storage); /* Mappings keep it. */
    free(p);
    return SGPU_OK;
}

/* ---- mappings ---- */

int sgpu_vmm_map(uint64_t address, uint64_t size, uint64_t handle)
{
    struct physical *p = *physical_find(handle);
    struct sgpu_memory range;

    if (!p || !granular(size) || address % SGPU_GRANULARITY != 0 || size > p->storage->length ||
        !reserved(address, size) || sgpu_memory_overlaps(address, size))
        return SGPU_INVALID_VALUE;
    range = (struct sgpu_memory){.address = address,
                                 .size = size,
                                 .length = size,
                                 .storage = p->storage,
                                 .kind = SGPU_MAPPED,
                                 .device = p->storage->device,
                                 .rdma = p->rdma};
    if (!sgpu_memory_add(&range))
        return SGPU_OUT_OF_MEMORY;
    p->storage->refs++;
    return SGPU_OK;
}

/* The mapping at `address`, if the range up to `end` consists of whole mappings; NULL: it does
 * not. */
static struct sgpu_memory *mapping(uint64_t address, uint64_t end)
{
    struct sgpu_memory *m = sgpu_memory_find(address);

    return m && m->kind == SGPU_MAPPED && m->address == address && m->size <= end - address ? m
                                                                                            : NULL;
}

static bool whole_mappings(uint64_t address, uint64_t size)
{
    uint64_t end = address + size;
    struct sgpu_memory *m;

    for (; address < end; address += m->size) {
        m = mapping(address, end);
        if (!m)
            return false;
    }
    return size > 0;
}

int sgpu_vmm_unmap(uint64_t address, uint64_t size)
{
    if (!whole_mappings(address, size))
        return SGPU_INVALID_VALUE;
    sgpu_device_wait(sgpu_memory_find(address)->device);
    if (!whole_mappings(address, size))
        return SGPU_INVALID_VALUE;
    for (uint64_t end = address + size, length; address < end; address += length) {
        struct sgpu_memory *m = sgpu_memory_find(address);

        length = m->size;
        sgpu_memory_remove(m);
    }
    return SGPU_OK;
}

int sgpu_vmm_access(uint64_t address, uint64_t size, bool accessible)
{
    if (!whole_mappings(address, size))
        return SGPU_INVALID_VALUE;
    for (uint64_t end = address + size; address < end;) {
        struct sgpu_memory *m = sgpu_memory_find(address);

        m->accessible = accessible;
        address += m->size;
    }
    return SGPU_OK;
}
