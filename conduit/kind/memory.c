/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of a device as a segment. No state of its own, no lock. */
#include "config.h"

#include "base/bits.h"
#include "kind/kind.h"

/* The page of a GPU that its drivers map for other devices: an allocation of our own fills whole
 * ones, so that a descriptor of it covers nothing else. */
enum { device_page = 65536 };

/* Also of VMM memory, where an allocation is the reserved range of addresses: parts of it may have
 * no memory, so its end is looked at too. */
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

/* A handle is of a whole allocation. Without one neighbours' copies go another path. */
static void get_ipc(struct tk_kind_memory *memory)
{
    struct tk_kind_why why;
    const struct tk_kind_class *class = memory->device->class;
    const uintptr_t base = memory->allocation.base;
    memory->has_ipc = memory->device->facts.has_ipc &&
                      class->ipc_get(memory->device, base, &memory->ipc, &why) == TK_OK;
    memory->ipc.offset = memory->base - base;
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
    tk_kind_device_hold(device);
    return TK_OK;
}

void tk_kind_memory_close(struct tk_kind_memory *memory)
{
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
