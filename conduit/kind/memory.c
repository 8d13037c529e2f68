/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of a device as a segment. Owns the list of open segments, under one lock. */
#include "config.h"

#include "base/bits.h"
#include "base/lock.h"
#include "kind/kind.h"

/* The page size in which GPU drivers map memory for other devices. The library's allocations fill
 * whole pages, so that their descriptors cover nothing else. */
enum { device_page = 65536 };

/* Checks the end of the range too: for VMM memory the allocation is the reserved address range, and
 * parts of it may have no memory. */
static enum tk_status is_in_one(const struct tk_kind_memory *memory, struct tk_kind_why *why)
{
    const struct tk_kind_class *class = memory->device->class;
    const struct tk_kind_allocation *holds = &memory->allocation;
    struct tk_kind_allocation other;
    size_t offset = memory->base - holds->base;
    bool is_inside = offset < holds->size && memory->size <= holds->size - offset;
    uintptr_t last = memory->base + memory->size - 1;
    struct tk_kind_why cause;
    enum tk_status status = last < memory->base ? tk_kind_why(&cause, "the range wraps around")
                                                : class->find(memory->device, last, &other, &cause);
    if (status == TK_OK && is_inside)
        return TK_OK;
    if (status == TK_OK)
        return tk_kind_why(why,
                           "[0x%zx, +%zu) is not in one allocation: it begins in [0x%zx, +%zu) "
                           "and ends in [0x%zx, +%zu)",
                           memory->base, memory->size, holds->base, holds->size, other.base,
                           other.size);
    return tk_kind_why(why,
                       "[0x%zx, +%zu) is not in one allocation: it begins in [0x%zx, +%zu) and "
                       "ends outside: %.80s",
                       memory->base, memory->size, holds->base, holds->size, cause.text);
}

static enum tk_status find_holder(struct tk_kind_memory *memory, struct tk_kind_why *why)
{
    const struct tk_kind_class *class = memory->device->class;
    if (class->find(memory->device, memory->base, &memory->allocation, why) != TK_OK)
        return TK_FAIL;
    return is_in_one(memory, why);
}

/* A handle names a whole allocation. Without a handle, neighbours' copies take another path. */
static void get_ipc(struct tk_kind_memory *memory)
{
    struct tk_kind_why why;
    const struct tk_kind_class *class = memory->device->class;
    const uintptr_t base = memory->allocation.base;
    memory->has_ipc = memory->device->facts.has_ipc &&
                      class->ipc_get(memory->device, base, &memory->ipc, &why) == TK_OK;
    memory->ipc.offset = memory->base - base;
}

static tk_lock_t open_lock = TK_LOCK_INIT;
static struct tk_kind_memory *open_ones;

static bool is_same_allocation(const struct tk_kind_memory *a, const struct tk_kind_memory *b)
{
    return a->device == b->device && a->allocation.base == b->allocation.base &&
           a->allocation.size == b->allocation.size && a->allocation.id == b->allocation.id;
}

/* A driver may give a new allocation the address and the IPC handle of a freed one. Other processes
 * tell the two apart by the serial number; segments in one allocation share it. */
static void list_add(struct tk_kind_memory *memory)
{
    static uint32_t last_serial;
    tk_lock(&open_lock);
    const struct tk_kind_memory *other = open_ones;
    while (other && !is_same_allocation(other, memory))
        other = other->next;
    memory->serial = other ? other->serial : ++last_serial;
    memory->next = open_ones;
    open_ones = memory;
    tk_unlock(&open_lock);
}

static void list_remove(const struct tk_kind_memory *memory)
{
    tk_lock(&open_lock);
    struct tk_kind_memory **at = &open_ones;
    while (*at != memory)
        at = &(*at)->next;
    *at = memory->next;
    tk_unlock(&open_lock);
}

static enum tk_status get_address(struct tk_kind_memory *memory, bool *is_argument,
                                  struct tk_kind_why *why)
{
    *is_argument = !memory->is_ours;
    if (!memory->is_ours)
        return find_holder(memory, why);
    if (memory->size > SIZE_MAX - device_page)
        return tk_kind_why(why, "%zu bytes are more than any device has", memory->size);
    memory->size = tk_align_up(memory->size, device_page);
    if (memory->device->class->alloc(memory->device, memory->size, &memory->base, why) != TK_OK)
        return TK_FAIL;
    if (find_holder(memory, why) == TK_OK)
        return TK_OK;
    memory->device->class->free(memory->device, memory->base);
    return TK_FAIL;
}

enum tk_status tk_kind_memory_open(struct tk_kind_memory *memory, struct tk_kind_device *device,
                                   uintptr_t address, size_t size, bool *is_argument,
                                   struct tk_kind_why *why)
{
    *memory = (struct tk_kind_memory){
        .device = device, .base = address, .size = size, .is_ours = address == 0};
    if (get_address(memory, is_argument, why) != TK_OK)
        return TK_FAIL;
    if (device->class->prepare)
        device->class->prepare(device, memory->base);
    get_ipc(memory);
    list_add(memory);
    tk_kind_device_hold(device);
    return TK_OK;
}

void tk_kind_memory_close(struct tk_kind_memory *memory)
{
    list_remove(memory);
    if (memory->is_ours)
        memory->device->class->free(memory->device, memory->base);
    tk_kind_device_put(memory->device);
}

bool tk_kind_memory_is_valid(const struct tk_kind_memory *memory, struct tk_kind_why *why)
{
    struct tk_kind_memory now = *memory;
    if (find_holder(&now, why) != TK_OK)
        return false;
    if (now.allocation.id == memory->allocation.id &&
        now.allocation.base == memory->allocation.base)
        return true;
    tk_kind_why(why, "[0x%zx, +%zu) was freed and belongs to another allocation now", memory->base,
                memory->size);
    return false;
}
